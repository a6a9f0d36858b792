// taiyen's concurrent heaps: the words are one block.
#include "oltp_store.hpp"

#include <array>

namespace bench {

namespace {

constexpr size_t spare_bytes = size_t{128} << 20; // for the heap's own tables
constexpr size_t expected_at_once = 64;

void must(ty_status status, const char *what) {
    if (status != TY_OK)
        check(status, what);
}

template <bool hinted>
class taiyen_store : public oltp_store {
public:
    explicit taiyen_store(const oltp_settings &settings) : settings_(settings) {}

    void open() override {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = settings_.words * sizeof(uint64_t) + spare_bytes;
        options.concurrent = true;
        must(ty_heap_create(&options, &heap_), "cannot create a heap");
        table_ = static_cast<uint64_t *>(ty_alloc(heap_, settings_.words * sizeof *table_));
        if (!table_)
            throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
        std::fill_n(table_, settings_.words, first_value);
    }

    void close() override { must(ty_heap_destroy(heap_), "cannot destroy a heap"); }

    void add(const addition &what) override {
        job mine = {table_, what};
        must(ty_atomically(heap_, nullptr, add_all, &mine, nullptr), "cannot commit");
    }

    uint64_t sum() override { return sum_of(table_, settings_.words); }

    oltp_counts counts() override {
        ty_atomic_stats stats = {};
        stats.struct_size = sizeof stats;
        must(ty_get_atomic_stats(heap_, &stats), "cannot get statistics");
        return {.conflicts = static_cast<double>(stats.conflicts_locked + stats.conflicts_changed +
                                                 stats.conflicts_alone + stats.conflicts_forgotten)};
    }

private:
    struct job {
        uint64_t *table;
        const addition &what;
    };

    static ty_status add_all(ty_atomic_txn *txn, void *context) {
        const job &mine = *static_cast<job *>(context);
        std::span<const uint64_t> places = mine.what.places;
        for (size_t at = 0; at < places.size(); at += expected_at_once) {
            std::span<const uint64_t> part = places.subspan(at, std::min(expected_at_once, places.size() - at));
            if (hinted)
                expect(txn, mine.table, part);
            for (uint64_t place : part)
                if (ty_status status = add_at(txn, mine.table + place, mine.what))
                    return status;
        }
        return TY_OK;
    }

    static void expect(ty_atomic_txn *txn, uint64_t *table, std::span<const uint64_t> places) {
        std::array<const void *, expected_at_once> addresses;
        for (size_t at = 0; at < places.size(); at++)
            addresses[at] = table + places[at];
        ty_atomic_expect(txn, addresses.data(), places.size());
    }

    static ty_status add_at(ty_atomic_txn *txn, uint64_t *word, const addition &what) {
        if (what.range_bytes == sizeof *word) {
            uint64_t value = 0;
            if (ty_status status = ty_atomic_load(txn, word, &value, sizeof value))
                return status;
            value += what.amount;
            return ty_atomic_store(txn, word, &value, sizeof value);
        }
        char copy[most_range_bytes];
        if (ty_status status = ty_atomic_load(txn, word, copy, what.range_bytes))
            return status;
        add_to_range(copy, what.range_bytes, what.amount);
        return ty_atomic_store(txn, word, copy, what.range_bytes);
    }

    oltp_settings settings_;
    ty_heap *heap_ = nullptr;
    uint64_t *table_ = nullptr;
};

} // namespace

extern const oltp_kind taiyen_oltp, taiyen_unhinted_oltp;
const oltp_kind taiyen_oltp = {self, make_oltp<taiyen_store<true>>};
const oltp_kind taiyen_unhinted_oltp = {"taiyen-unhinted", make_oltp<taiyen_store<false>>};

} // namespace bench
