// Goal: ty_each_internal_block reports each block that the library has in a heap, once, and no other; whether undo is
// attached or not, and what is damaged is reported and does no harm. Method: heaps of each kind, whose other live
// blocks are those that the test knows.
#include "tests/undo/support.hpp"

#include "src/undo/undo.hpp"
#include "src/undo/undo_layout.hpp"
#include <algorithm>

namespace taiyen::test {
namespace {

using addresses = std::vector<char *>;

bool add_block(const ty_block *block, void *context) {
    static_cast<addresses *>(context)->push_back(static_cast<char *>(block->address));
    return true;
}

addresses internal_blocks_of(ty_heap *heap) {
    addresses found;
    EXPECT_OK(ty_each_internal_block(heap, add_block, &found));
    return found;
}

// Those that are live and none of the library's.
addresses others_of(ty_heap *heap) {
    addresses all, own = internal_blocks_of(heap), others;
    EXPECT_OK(ty_each_block(heap, add_block, &all));
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()) &&
                std::includes(all.begin(), all.end(), own.begin(), own.end()));
    EXPECT_TRUE(std::adjacent_find(own.begin(), own.end()) == own.end());
    std::set_difference(all.begin(), all.end(), own.begin(), own.end(), std::back_inserter(others));
    return others;
}

addresses sorted(addresses blocks) {
    std::sort(blocks.begin(), blocks.end());
    return blocks;
}

size_t steps_of(ty_heap *heap) {
    size_t count = 0;
    auto step = [](const ty_undo_step *, void *context) {
        ++*static_cast<size_t *>(context);
        return true;
    };
    EXPECT_OK(ty_undo_history(heap, step, &count));
    return count;
}

ty_status internal_blocks_status(ty_heap *heap) {
    addresses found;
    return ty_each_internal_block(heap, add_block, &found);
}

TEST(internal_blocks, a_heap_without_any) {
    undo_heap heap;
    EXPECT_TRUE(internal_blocks_of(heap).empty());
    heap.block(100);
    EXPECT_TRUE(internal_blocks_of(heap).empty());
}

TEST(internal_blocks, of_undo_attached_or_not) {
    undo_heap heap;
    addresses blocks = {heap.block(100), heap.block(30000), heap.block(200000), heap.block(77)};
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    EXPECT_EQ(internal_blocks_of(heap).size(), 1u);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, blocks[0]));
    ASSERT_EQ(ty_undo_resize(heap, blocks[2], 50000), blocks[2]); // its tail is kept
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, blocks[3]));
    auto *made = static_cast<char *>(ty_undo_alloc(heap, 5000));
    ASSERT_OK(ty_undo_end(heap));
    const addresses live = sorted({blocks[1], blocks[2], made});
    EXPECT_EQ(internal_blocks_of(heap).size(), 4u);
    EXPECT_EQ(others_of(heap), live);
    ASSERT_OK(ty_undo_begin(heap, nullptr)); // an open transaction holds, too
    ASSERT_OK(ty_undo_free(heap, blocks[1]));
    EXPECT_EQ(others_of(heap), sorted({blocks[2], made}));
    heap.close();
    heap.open();
    EXPECT_EQ(others_of(heap), sorted({blocks[2], made}));
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_cancel(heap));
    EXPECT_EQ(others_of(heap), live);
    ASSERT_OK(ty_undo(heap)); // in a cycle redo holds what was allocated
    EXPECT_EQ(others_of(heap), sorted({blocks[1], blocks[2], blocks[3]}));
    ASSERT_OK(ty_undo_detach(heap, true));
    EXPECT_EQ(others_of(heap), sorted({blocks[1], blocks[2], blocks[3]}));
    heap.close();

    ty_open_options options = heap.files.options();
    options.mode = TY_OPEN_READ_ONLY;
    ASSERT_OK(ty_open(heap_path, &options, &heap.heap, nullptr));
    EXPECT_EQ(others_of(heap), sorted({blocks[1], blocks[2], blocks[3]}));
    EXPECT_EQ(internal_blocks_of(heap).size(), 4u);
    const ty_undo_stats looked_at = stats_of(heap);
    const size_t steps = steps_of(heap);
    EXPECT_GT(looked_at.redoable, 0u);
    EXPECT_EQ(steps, looked_at.undoable + looked_at.redoable);
    heap.close();
    heap.open();
    ASSERT_OK(ty_undo_attach(heap, nullptr)); // nothing was changed by looking
    const ty_undo_stats attached = stats_of(heap);
    EXPECT_EQ(attached.undoable, looked_at.undoable);
    EXPECT_EQ(attached.redoable, looked_at.redoable);
    EXPECT_EQ(attached.undo_bytes, looked_at.undo_bytes);
    EXPECT_EQ(attached.undo_size, looked_at.undo_size);
    EXPECT_EQ(attached.kept_bytes, looked_at.kept_bytes);
    EXPECT_EQ(steps_of(heap), steps);
    ASSERT_OK(ty_redo(heap));
    ASSERT_OK(ty_undo_detach(heap, false));
    EXPECT_TRUE(internal_blocks_of(heap).empty());
}

// The recorded bytes lie elsewhere; what undo holds, and its block for the rest, are in the heap, as long as it is
// attached.
TEST(internal_blocks, of_volatile_buffers) {
    undo_heap heap;
    addresses blocks = {heap.block(100), heap.block(30000)};
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.volatile_buffers = true;
    ASSERT_OK(ty_undo_attach(heap, &options));
    const size_t buffers = internal_blocks_of(heap).size();
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, blocks[0]));
    auto *made = static_cast<char *>(ty_undo_alloc(heap, 5000));
    ASSERT_OK(ty_undo_end(heap));
    EXPECT_EQ(internal_blocks_of(heap).size(), buffers + 1);
    EXPECT_EQ(others_of(heap), sorted({blocks[1], made}));
    ASSERT_OK(ty_undo(heap));
    EXPECT_EQ(others_of(heap), sorted(blocks));
    ASSERT_OK(ty_redo(heap));
    EXPECT_EQ(others_of(heap), sorted({blocks[1], made}));
    ASSERT_OK(ty_undo_detach(heap, false));
    EXPECT_TRUE(internal_blocks_of(heap).empty());
    EXPECT_EQ(others_of(heap), sorted({blocks[1], made}));
}

TEST(internal_blocks, the_walk_ends_when_the_callback_says) {
    undo_heap heap;
    char *block = heap.block(100);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, block));
    int calls = 0;
    auto once = [](const ty_block *, void *context) { return ++*static_cast<int *>(context) < 1; };
    EXPECT_OK(ty_each_internal_block(heap, once, &calls));
    EXPECT_EQ(calls, 1);
}

TEST(internal_blocks, damaged_buffers_and_roots_are_reported) {
    undo_heap heap;
    char *freed = heap.block(100), *block = heap.block(4000, 0);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, freed));
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo_detach(heap, true));
    void *root = heap_service_root(heap);
    auto *bytes = static_cast<unsigned char *>(root);
    for (size_t at = 0; at < sizeof(undo_control) + 3 * sizeof(undo_entry); at++) {
        for (int flip : {0x01, 0x80}) {
            bytes[at] = static_cast<unsigned char>(bytes[at] ^ flip);
            static_cast<void>(internal_blocks_status(heap)); // whatever it says, it ends
            bytes[at] = static_cast<unsigned char>(bytes[at] ^ flip);
        }
    }
    EXPECT_EQ(internal_blocks_of(heap).size(), 2u);
    ASSERT_OK(ty_free(freed)); // after undo's back
    EXPECT_EQ(internal_blocks_status(heap), TY_E_DAMAGED);
    heap_set_service_root(heap, block); // no magic
    EXPECT_EQ(internal_blocks_status(heap), TY_E_DAMAGED);
    heap_set_service_root(heap, block + 8); // inside
    EXPECT_EQ(internal_blocks_status(heap), TY_E_DAMAGED);
    heap_set_service_root(heap, freed); // none
    EXPECT_EQ(internal_blocks_status(heap), TY_E_DAMAGED);

    auto *words = reinterpret_cast<uint64_t *>(block); // a list of reserved blocks
    const uint64_t word = static_cast<uint64_t>(block - static_cast<char *>(heap_base(heap))) / 8;
    heap_set_service_root(heap, block);
    words[0] = reservations_magic;
    EXPECT_EQ(internal_blocks_of(heap), addresses{block});
    words[1] = word; // a ring
    EXPECT_EQ(internal_blocks_status(heap), TY_E_DAMAGED);
    words[1] = UINT64_MAX;
    EXPECT_EQ(internal_blocks_status(heap), TY_E_DAMAGED);
    words[1] = 0;
    words[5] = word + 1; // no block starts there
    EXPECT_EQ(internal_blocks_status(heap), TY_E_DAMAGED);
    words[5] = static_cast<uint64_t>(heap.block(50) - static_cast<char *>(heap_base(heap))) / 8;
    EXPECT_EQ(internal_blocks_of(heap).size(), 2u);
    words[5] = 0;
    words[0] = 0;
    heap_set_service_root(heap, root);
    ASSERT_OK(ty_undo_detach(heap, false));
}

TEST(internal_blocks, of_reservations) {
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_TRANSACTIONAL;
    options.log_bytes = size_t{1} << 20;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_TRUE(internal_blocks_of(heap).empty());
    void *published = ty_reserve(heap, 100), *reserved = ty_reserve(heap, 20000);
    ASSERT_TRUE(published != nullptr && reserved != nullptr);
    EXPECT_EQ(internal_blocks_of(heap).size(), 3u); // and the list
    EXPECT_TRUE(others_of(heap).empty());
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    ASSERT_OK(ty_publish(txn, &published, 1));
    ASSERT_OK(ty_commit(txn));
    EXPECT_EQ(others_of(heap), addresses{static_cast<char *>(published)});
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_discard(heap));

    ty_open_options read_only = files.options();
    read_only.mode = TY_OPEN_READ_ONLY;
    ASSERT_OK(ty_open(heap_path, &read_only, &heap, nullptr));
    EXPECT_EQ(others_of(heap), addresses{static_cast<char *>(published)});
    ASSERT_OK(ty_close(heap));
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_EQ(internal_blocks_of(heap).size(), 1u);
    EXPECT_EQ(others_of(heap), addresses{static_cast<char *>(published)});
    ASSERT_OK(ty_close(heap));
}

TEST(internal_blocks, what_a_concurrent_heap_has_not_given_back) {
    disk files;
    ty_heap *heaps[2] = {};
    ty_open_options options = files.options();
    options.kind = TY_TRANSACTIONAL;
    options.concurrent = true;
    options.log_bytes = size_t{1} << 20;
    ASSERT_OK(ty_open(heap_path, &options, &heaps[0], nullptr));
    ty_heap_options volatile_options = TY_HEAP_OPTIONS_INIT;
    volatile_options.concurrent = true;
    volatile_options.limit_bytes = size_t{64} << 20;
    ASSERT_OK(ty_heap_create(&volatile_options, &heaps[1]));
    for (ty_heap *heap : heaps) {
        EXPECT_TRUE(internal_blocks_of(heap).empty());
        void *blocks[2];
        auto make = [](ty_atomic_txn *txn, void *context) {
            for (int i = 0; i < 2; i++)
                static_cast<void **>(context)[i] = ty_atomic_alloc(txn, 100);
            return TY_OK;
        };
        auto drop = [](ty_atomic_txn *txn, void *context) { return ty_atomic_free(txn, context); };
        ASSERT_OK(ty_atomically(heap, nullptr, make, blocks, nullptr));
        ASSERT_OK(ty_atomically(heap, nullptr, drop, blocks[0], nullptr));
        EXPECT_EQ(others_of(heap), addresses{static_cast<char *>(blocks[1])});
    }
    ASSERT_OK(ty_close(heaps[0]));
    ASSERT_OK(ty_heap_destroy(heaps[1]));
}

} // namespace
} // namespace taiyen::test
