// What the tests of undo share: a snapshot heap on a simulated disk, and figures.
#pragma once

#include "src/store/image/image.hpp"
#include "tests/stats.hpp"
#include "tests/store/image/support.hpp"

namespace taiyen::test {

inline ty_undo_stats stats_of(ty_heap *heap) {
    const ty_undo_stats stats = undo_stats_of(heap);
    if (image_kind(heap) == TY_VOLATILE)
        return stats;
    undo_metrics_of reported{};
    EXPECT_TRUE(image_read_undo(heap, &reported));
    if (reported.attached && !stats.open) { // U7: what others see is what is there
        EXPECT_EQ(reported.undoable, stats.undoable);
        EXPECT_EQ(reported.redoable, stats.redoable);
        EXPECT_EQ(reported.kept_blocks, stats.kept_blocks);
        EXPECT_EQ(reported.kept_bytes, stats.kept_bytes);
    }
    return stats;
}

inline uint64_t live_blocks(ty_heap *heap) {
    return heap_stats_of(heap).live_blocks;
}

struct undo_heap {
    disk files;
    ty_heap *heap = nullptr;
    size_t limit = small_limit;

    explicit undo_heap(size_t limit_bytes = small_limit) : limit(limit_bytes) { open(); }
    ~undo_heap() { EXPECT_OK(ty_discard(heap)); }
    void open() {
        ty_open_options options = files.options();
        options.limit_bytes = limit;
        options.kind = TY_SNAPSHOT;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    }
    void close() {
        ASSERT_OK(ty_close(heap));
        heap = nullptr;
    }
    void discard() {
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
    }
    operator ty_heap *() const { return heap; }

    char *block(size_t bytes, int fill = 1) {
        auto *made = static_cast<char *>(ty_alloc(heap, bytes));
        EXPECT_NE(nullptr, made) << ty_error_text();
        memset(made, fill, bytes);
        return made;
    }
    // Changes bytes with a record.
    void write(char *address, size_t bytes, int fill) {
        ASSERT_OK(ty_undo_record(heap, address, bytes));
        memset(address, fill, bytes);
    }
    // The same as a transaction.
    void change(char *address, size_t bytes, int fill, const char *label = nullptr) {
        ASSERT_OK(ty_undo_begin(heap, label));
        write(address, bytes, fill);
        ASSERT_OK(ty_undo_end(heap));
    }
};

inline bool all_are(const char *bytes, size_t count, int value) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != static_cast<char>(value))
            return false;
    return true;
}

} // namespace taiyen::test
