// Goal: what the library has in a heap for itself is not packed (PK4): undo's buffers and held blocks, reserved blocks.
// And a heap that somebody uses in a way that does not allow it is refused.
#include "packages/pack/tests/support.hpp"

#include <atomic>
#include <taiyen/concurrent.h>
#include <thread>

namespace taiyen::test {
namespace {

ty_heap *open_heap(const folder &where, ty_kind kind, ty_open_mode mode = TY_OPEN_OR_CREATE) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = mode == TY_OPEN_READ_ONLY ? TY_KIND_DEFAULT : kind;
    options.mode = mode;
    options.limit_bytes = size_t{64} << 20;
    options.log_bytes = size_t{1} << 20;
    ty_heap *heap = nullptr;
    EXPECT_OK(ty_open(where.path("own.ty").c_str(), &options, &heap, nullptr));
    return heap;
}

// The stream's blocks, unpacked elsewhere.
size_t blocks_in(const packed &stream) {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.kind = TY_VOLATILE;
    options.place = TY_PLACE_OTHER;
    options.force = true;
    ty_heap *copy = nullptr;
    EXPECT_OK(unpack(stream.text(), options, &copy));
    size_t count = content_of(copy).size();
    EXPECT_OK(ty_heap_destroy(copy));
    return count;
}

TEST(pack_internal_blocks, undo) {
    folder where;
    ty_heap *heap = open_heap(where, TY_SNAPSHOT);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    void *kept = ty_undo_alloc(heap, 100), *freed = ty_undo_alloc(heap, 100);
    ASSERT_OK(ty_undo_end(heap));
    memcpy(freed, "secret of undo", 15);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, freed));
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_root_set(heap, "kept", kept));
    packed attached(heap, TY_CODEC_NONE);
    EXPECT_EQ(1u, attached.report.live_blocks);
    EXPECT_EQ(2u, attached.report.internal_blocks);
    EXPECT_EQ(std::string::npos, attached.text().find("secret of undo"));
    EXPECT_EQ(1u, blocks_in(attached));
    ASSERT_OK(ty_close(heap));
    heap = open_heap(where, TY_SNAPSHOT, TY_OPEN_READ_ONLY); // undo is not attached
    packed closed(heap, TY_CODEC_NONE);
    EXPECT_EQ(1u, closed.report.live_blocks);
    ASSERT_OK(ty_close(heap));
}

TEST(pack_internal_blocks, reserved) {
    folder where;
    ty_heap *heap = open_heap(where, TY_TRANSACTIONAL);
    void *published = ty_reserve(heap, 100), *reserved = ty_reserve(heap, 100);
    memcpy(reserved, "secret of a reserve", 20);
    ty_txn *txn;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    ASSERT_OK(ty_publish(txn, &published, 1));
    EXPECT_EQ(TY_E_BUSY, ty_pack_descriptor(heap, -1, nullptr, nullptr)); // in a transaction
    ASSERT_OK(ty_commit(txn));
    packed stream(heap, TY_CODEC_NONE);
    EXPECT_EQ(1u, stream.report.live_blocks);
    EXPECT_EQ(std::string::npos, stream.text().find("secret of a reserve"));
    ASSERT_OK(ty_cancel(reserved));
    ASSERT_OK(ty_close(heap));
}

// Transactions of other threads wait for a packing, and it for them: each stream has a whole one.
TEST(pack_internal_blocks, beside_transactions) {
    folder where;
    ty_heap *heap = open_heap(where, TY_TRANSACTIONAL);
    ty_txn *txn;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    auto *numbers = static_cast<uint64_t *>(ty_txn_alloc(txn, 2048));
    ASSERT_OK(ty_txn_root_set(txn, "numbers", numbers));
    ASSERT_OK(ty_commit(txn));
    std::atomic<bool> ends{false};
    std::thread writer([&] {
        for (uint64_t n = 1; !ends; n++) {
            ty_txn *own;
            ASSERT_OK(ty_begin(heap, nullptr, &own));
            ASSERT_OK(ty_declare(own, numbers, 2048));
            for (size_t i = 0; i < 256; i++)
                numbers[i] = n;
            ASSERT_NE(nullptr, ty_txn_alloc(own, 64));
            ASSERT_OK(ty_commit_async(own, nullptr));
        }
    });
    for (int i = 0; i < 50; i++) {
        packed stream(heap);
        ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
        options.kind = TY_VOLATILE;
        options.place = TY_PLACE_OTHER;
        options.force = true;
        ty_heap *copy;
        ASSERT_OK(unpack(stream.text(), options, &copy));
        auto *seen = static_cast<uint64_t *>(ty_root(copy, "numbers"));
        for (size_t at = 1; at < 256; at++)
            ASSERT_EQ(seen[0], seen[at]);
        EXPECT_OK(ty_heap_destroy(copy));
    }
    ends = true;
    writer.join();
    ASSERT_OK(ty_close(heap));
}

TEST(pack_internal_blocks, a_checked_heap_is_refused) {
    volatile_heap heap;
    ty_check_options checks = TY_CHECK_OPTIONS_INIT;
    checks.checks = TY_CHECK_BOUNDS;
    ASSERT_OK(ty_heap_start_checks(heap, &checks));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_pack_descriptor(heap, -1, nullptr, nullptr)) << ty_error_text();
}

// Threads that allocate wait; a volatile heap's blocks that nobody writes to are packed whole.
TEST(pack_internal_blocks, beside_allocations) {
    volatile_heap heap;
    std::mt19937 dice(3);
    fill_at_random(heap, dice, 500);
    std::atomic<bool> ends{false};
    std::thread other([&] {
        while (!ends)
            ASSERT_OK(ty_free(ty_alloc(heap, 500)));
    });
    size_t least = content_of(heap).size() - 1;
    for (int i = 0; i < 30; i++) {
        packed stream(heap);
        EXPECT_GE(stream.report.live_blocks, least);
    }
    ends = true;
    other.join();
}

// CD11: a reader's words lead to its own code, and the record to where they led before.
TEST(pack_internal_blocks, words_that_a_reader_repointed) {
    const folder where;
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    options.code = TY_CODE_MAPPED;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(where.path("own.ty").c_str(), &options, &heap, nullptr));
    const packed by_writer(heap);
    ASSERT_OK(ty_close(heap));
    options.mode = TY_OPEN_READ_ONLY;
    for (const ty_code code : {TY_CODE_DEFAULT, TY_CODE_COMPATIBLE, TY_CODE_IGNORED}) {
        options.code = code;
        ASSERT_OK(ty_open(where.path("own.ty").c_str(), &options, &heap, nullptr));
        EXPECT_EQ(code == TY_CODE_IGNORED ? TY_OK : TY_E_UNSUPPORTED,
                  ty_pack_file(heap, where.path("packed").c_str(), nullptr, nullptr));
        ASSERT_OK(ty_close(heap));
    }
}

} // namespace
} // namespace taiyen::test
