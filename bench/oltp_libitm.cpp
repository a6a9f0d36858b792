// GCC's transactional memory. Compiled with -fgnu-tm if the compiler has it; else the subject reports that it is
// missing.
#include "oltp_store.hpp"
#include "travel.hpp"

namespace bench {

namespace {

#ifdef TAIYEN_BENCH_GNU_TM

TAIYEN_BENCH_IN_TRANSACTION void add_all(uint64_t *table, const uint64_t *places, size_t count, const addition &what) {
    size_t bytes = what.range_bytes;
    for (size_t at = 0; at < count; at++) {
        uint64_t *word = table + places[at];
        if (bytes == sizeof *word) {
            *word += what.amount_at(at);
            continue;
        }
        char copy[most_range_bytes];
        std::memcpy(copy, word, bytes);
        add_to_range(copy, bytes, what.amount_at(at));
        std::memcpy(word, copy, bytes);
    }
}

template <bool hinted>
class libitm_store : public oltp_store {
public:
    explicit libitm_store(const oltp_settings &settings) : settings_(settings), memory_(settings, false) {}

    void open() override { std::fill_n(words(), settings_.words, settings_.first); }

    uint64_t add(const addition &what, commit_how) override {
        uint64_t *table = words();
        const uint64_t *places = what.places.data();
        size_t count = what.places.size();
        for (size_t at = 0; hinted && at < count; at++)
            __builtin_prefetch(table + places[at], 1);
        __transaction_atomic {
            add_all(table, places, count, what);
        }
        return 0;
    }

    uint64_t read_all() override {
        const uint64_t *table = words();
        uint64_t sum = 0;
        __transaction_atomic {
            sum = sum_of(table, settings_.words);
        }
        return sum;
    }

    travel_outcome travel(const travel_request &request, commit_how) override {
        uint64_t *table = words();
        int64_t more = 0;
        __transaction_atomic {
            plain_memory memory;
            more = travel_agency<plain_memory>(memory, table).serve(request);
        }
        return {.more_reservations = more};
    }

    const uint64_t *table() override { return words(); }

private:
    uint64_t *words() { return memory_.words(); }

    oltp_settings settings_;
    word_memory memory_;
};

template <bool hinted>
std::unique_ptr<oltp_store> make(const oltp_settings &settings) {
    return make_oltp<libitm_store<hinted>>(settings);
}

#else

template <bool>
std::unique_ptr<oltp_store> make(const oltp_settings &) {
    throw unavailable("the compiler that built this program has no -fgnu-tm");
}

#endif

} // namespace

extern const oltp_kind libitm_oltp, libitm_hinted_oltp;
const oltp_kind libitm_oltp = {"libitm", make<false>};
const oltp_kind libitm_hinted_oltp = {"libitm-hinted", make<true>};

} // namespace bench
