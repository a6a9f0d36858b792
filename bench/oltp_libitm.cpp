// GCC's transactional memory. Compiled with -fgnu-tm where the compiler has it; else the subject says so.
#include "kernel_probe.hpp"
#include "oltp_store.hpp"

namespace bench {

namespace {

#ifdef TAIYEN_BENCH_GNU_TM

TAIYEN_BENCH_IN_TRANSACTION void add_all(uint64_t *table, const uint64_t *places, size_t count, size_t bytes,
                                         uint64_t amount) {
    for (size_t at = 0; at < count; at++) {
        if (bytes == sizeof *table) {
            table[places[at]] += amount;
            continue;
        }
        char copy[most_range_bytes];
        std::memcpy(copy, table + places[at], bytes);
        add_to_range(copy, bytes, amount);
        std::memcpy(table + places[at], copy, bytes);
    }
}

template <bool hinted>
class libitm_store : public oltp_store {
public:
    explicit libitm_store(const oltp_settings &settings)
        : words_(settings.words), memory_(mapping::touched_memory(settings.words * sizeof(uint64_t))) {}

    void open() override { std::fill_n(table(), words_, first_value); }

    uint64_t add(const addition &what, commit_how) override {
        uint64_t *words = table();
        const uint64_t *places = what.places.data();
        size_t count = what.places.size(), bytes = what.range_bytes;
        uint64_t amount = what.amount;
        for (size_t at = 0; hinted && at < count; at++)
            __builtin_prefetch(words + places[at], 1);
        __transaction_atomic {
            add_all(words, places, count, bytes, amount);
        }
        return 0;
    }

    uint64_t sum() override { return sum_of(table(), words_); }

private:
    uint64_t *table() { return reinterpret_cast<uint64_t *>(memory_.data()); }

    size_t words_;
    mapping memory_;
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
