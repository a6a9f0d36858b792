// What the tests of change feeds share: heaps of counters whose changes a mirror takes from records alone.
#pragma once

#include "src/feed/position.hpp"
#include "src/store/log/records/record_decode.hpp"
#include "tests/store/image/support.hpp"

#include <memory>

namespace taiyen::test {

inline constexpr size_t counters = 4096; // a block

inline ty_open_options transactional(const disk &files, uint32_t streams = 1) {
    ty_open_options options = files.options();
    options.kind = TY_TRANSACTIONAL;
    options.log_bytes = size_t{1} << 20;
    options.concurrent = streams > 1;
    options.log_streams = streams;
    if (streams > 1) {
        options.log_bytes = size_t{4} << 20;
        options.background = TY_BACKGROUND_THREAD;
    }
    return options;
}

inline ty_heap *open_heap(const ty_open_options &options, const char *path = heap_path) {
    ty_heap *heap = nullptr;
    EXPECT_OK(ty_open(path, &options, &heap, nullptr));
    return heap;
}

inline uint64_t *block_of(ty_heap *heap) {
    return static_cast<uint64_t *>(ty_root(heap, "counters"));
}

// Adds to some counters, and to the first one, which thereby counts them.
inline ty_status change(ty_heap *heap, uint64_t seed, bool wait = true) {
    ty_txn *txn = nullptr;
    if (ty_status status = ty_begin(heap, nullptr, &txn))
        return status;
    uint64_t *block = block_of(heap);
    if (!block) {
        block = static_cast<uint64_t *>(ty_txn_alloc(txn, counters * sizeof *block));
        if (ty_status status = block ? ty_txn_root_set(txn, "counters", block) : TY_E_MEMORY) {
            ty_rollback(txn);
            return status;
        }
    }
    for (uint64_t at : {uint64_t{0}, 1 + seed % 4095, 1 + seed * 7 % 4095}) {
        if (ty_status status = ty_declare(txn, block + at, sizeof *block)) {
            ty_rollback(txn);
            return status;
        }
        block[at] += 1 + seed % 1000;
    }
    return wait ? ty_commit(txn) : ty_commit_async(txn, nullptr);
}

// Takes records as a replica does, and keeps what they store.
class mirror {
public:
    explicit mirror(const ty_feed_position &base) : position(base) {}

    static bool take(const ty_feed_record *record, void *context) {
        return static_cast<mirror *>(context)->take(*record);
    }
    bool take(const ty_feed_record &record) {
        EXPECT_OK(ty_feed_check(&position, &record));
        EXPECT_EQ(TY_OK, record_decode(static_cast<const uint8_t *>(record.bytes), record.size_bytes,
                                       record_scope{0, UINT64_MAX}, *this));
        ++taken;
        return ++in_call < most;
    }
    // All bytes that records stored are what is in the heap; of others it knows nothing, as it has no base.
    void expect_like(ty_heap *heap) const {
        const auto *base = static_cast<const uint64_t *>(ty_heap_base(heap));
        const uint64_t *block = block_of(heap);
        for (auto [place, known] : stored_) {
            if (base + place >= block && base + place < block + counters) {
                EXPECT_EQ(known.value, base[place] & known.mask);
            }
        }
        EXPECT_FALSE(stored_.empty());
    }

    ty_feed_position position;
    uint64_t taken = 0;
    uint64_t in_call = 0;
    uint64_t most = UINT64_MAX; // in a call

    // For record_decode.
    ty_status word(uint64_t place, uint64_t mask, uint64_t value) {
        bytes &now = stored_[place];
        now.value = (now.value & ~mask) | (value & mask);
        now.mask |= mask;
        return TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *from) {
        for (uint64_t i = 0; i < count; ++i) {
            uint64_t value;
            memcpy(&value, from + 8 * i, 8);
            stored_[first + i] = {value, UINT64_MAX};
        }
        return TY_OK;
    }
    ty_status zeros(uint64_t first, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
            stored_[first + i] = {0, UINT64_MAX};
        return TY_OK;
    }
    ty_status operation(const record_operation &) { return TY_OK; }

private:
    struct bytes {
        uint64_t value = 0;
        uint64_t mask = 0;
    };
    std::map<uint64_t, bytes> stored_;
};

struct feed_end {
    void operator()(ty_feed *feed) const { ty_feed_close(feed); }
};
using feed_owner = std::unique_ptr<ty_feed, feed_end>;

inline feed_owner follow(const ty_open_options &open, ty_heap *heap = nullptr, const char *path = heap_path) {
    ty_feed_options options = TY_FEED_OPTIONS_INIT;
    options.open = &open;
    options.heap = heap;
    ty_feed *made = nullptr;
    EXPECT_OK(ty_feed_open(path, &options, &made));
    return feed_owner(made);
}

inline ty_feed_position base_of(ty_feed *feed) {
    ty_feed_position base{};
    EXPECT_OK(ty_feed_base(feed, &base, nullptr));
    return base;
}

inline ty_status read_into(mirror &to, ty_feed *feed, ty_feed_position *position, ty_feed_position *base = nullptr) {
    to.in_call = 0;
    ty_status status = ty_feed_read(feed, position, mirror::take, &to, base);
    if (!status) {
        EXPECT_EQ(position->lsn, to.position.lsn);
        EXPECT_EQ(position->hash, to.position.hash);
    }
    return status;
}

} // namespace taiyen::test
