// Goal: what a replica must not take, and what a heap that receives must not do, is refused, with nothing changed
// (LK5, LK7). Method: copies of a source_model's heap; records left out, doubled, changed; writes of all kinds; copies
// that went on by themselves.
#include "copy_model.hpp"
#include "tests/files_on.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class receive_refused : public testing::Test {
protected:
    receive_refused() : source_(11, files_, of_source(files_, false, 1)) {
        source_.transactions(10);
        base_ = source_.copy();
        source_.transactions(10);
        source_.close();
    }
    ty_replica_options how() const {
        ty_replica_options options = TY_REPLICA_OPTIONS_INIT;
        options.copied_lsn = copied_;
        return options;
    }
    // The copy, open as the test wants it.
    ty_heap *open_base(disk &files, ty_kind kind = TY_KIND_DEFAULT, bool concurrent = false) {
        copied_ = copied(files).lsn;
        ty_open_options options = files.options();
        options.kind = kind;
        options.concurrent = concurrent;
        return open_heap(options);
    }

    disk files_;
    source_model source_;
    os::sim_disk *base_ = nullptr;
    uint64_t copied_ = 0;
};

TEST_F(receive_refused, records_that_are_not_the_next_ones) {
    replica_model copy(source_, base_, false, source_.options());
    std::vector<ty_feed_record> all;
    for (const ty_feed_record *record : source_.after(0))
        all.push_back(*record);
    const auto take = [&](std::initializer_list<size_t> order) {
        std::vector<ty_feed_record> some;
        for (size_t n : order)
            some.push_back(all[n]);
        const ty_status status = ty_replica_apply(copy.replica(), some.data(), some.size());
        copy.expect_state();
        return status;
    };
    const uint64_t before = copy.last();
    EXPECT_EQ(TY_E_MISMATCH, take({1}));
    EXPECT_EQ(TY_E_MISMATCH, take({0, 2}));
    EXPECT_EQ(TY_E_MISMATCH, take({0, 1, 1}));
    std::string bytes(static_cast<const char *>(all[2].bytes), all[2].size_bytes);
    const ty_feed_record good = all[2];
    for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] ^= 1;
        all[2].bytes = bytes.data();
        ASSERT_EQ(TY_E_DAMAGED, take({0, 1, 2})) << i;
        bytes[i] ^= 1;
    }
    all[2] = good;
    all[2].hash ^= 1;
    EXPECT_EQ(TY_E_DAMAGED, take({0, 1, 2}));
    all[2] = good;
    EXPECT_EQ(before, copy.last());
    EXPECT_OK(take({0, 1, 2}));
    ASSERT_OK(ty_replica_apply(copy.replica(), all.data() + 3, all.size() - 3));
    EXPECT_TRUE(copy.done());
    copy.expect_state();
}

// LK7.
TEST_F(receive_refused, writes_of_others) {
    disk files(base_);
    ty_heap *heap = open_base(files, TY_TRANSACTIONAL, true);
    const ty_feed_position position = source_.first();
    const ty_replica_options options = how();
    ty_replica *replica = nullptr, *second = nullptr;
    ASSERT_OK(ty_replica_begin(heap, &position, &options, &replica));
    EXPECT_EQ(TY_E_BUSY, ty_replica_begin(heap, &position, &options, &second));
    EXPECT_EQ(TY_E_BUSY, ty_close(heap));
    EXPECT_EQ(TY_E_BUSY, ty_discard(heap));
    EXPECT_EQ(TY_E_BUSY, ty_promote(heap));
    for (bool again : {false, true}) {
        ty_txn *txn = nullptr;
        ty_atomic_options reads = TY_ATOMIC_OPTIONS_INIT;
        reads.reads_only = true;
        const auto body = [](ty_atomic_txn *, void *) { return TY_OK; };
        ASSERT_EQ(TY_E_PERMISSION, ty_begin(heap, nullptr, &txn));
        EXPECT_EQ(nullptr, ty_reserve(heap, 8));
        EXPECT_EQ(TY_E_PERMISSION, ty_atomically(heap, nullptr, body, nullptr, nullptr));
        EXPECT_OK(ty_atomically(heap, &reads, body, nullptr, nullptr));
        EXPECT_EQ(nullptr, ty_alloc(heap, 8));
        EXPECT_OK(ty_read_begin(heap));
        EXPECT_EQ(TY_E_ARGUMENT, ty_replica_begin(heap, &position, &options, &second));
        ty_read_end(heap);
        if (again)
            break;
        ty_replica_end(replica);
        ASSERT_OK(ty_close(heap));
        ty_open_options plain = files.options();
        plain.kind = TY_SNAPSHOT; // without its log anybody could write
        EXPECT_EQ(TY_E_PERMISSION, ty_open(heap_path, &plain, &heap, nullptr));
        heap = open_base(files, TY_TRANSACTIONAL, true);
    }
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_OK(ty_read_info(heap_path, files_on(files.storage()), &info));
    EXPECT_NE(nullptr, strstr(info.open_text, "receives the transactions of another heap")) << info.open_text;
    ASSERT_OK(ty_promote(heap));
    ASSERT_OK(ty_read_info(heap_path, files_on(files.storage()), &info));
    EXPECT_EQ(nullptr, strstr(info.open_text, "receives")) << info.open_text;
    EXPECT_EQ(TY_E_ARGUMENT, ty_promote(heap));
    EXPECT_EQ(TY_E_MISMATCH, ty_replica_begin(heap, &position, &options, &replica)); // though it is as it was
    ASSERT_OK(change(heap, 1));
    EXPECT_EQ(TY_E_MISMATCH, ty_replica_begin(heap, &position, &options, &replica));
    ASSERT_OK(ty_close(heap));
    heap = open_base(files);
    EXPECT_EQ(TY_E_MISMATCH, ty_replica_begin(heap, &position, &options, &replica));
    ASSERT_OK(change(heap, 2));
    ASSERT_OK(ty_close(heap));
}

TEST_F(receive_refused, copies_that_are_none) {
    disk files(base_);
    ty_heap *heap = open_base(files);
    ty_feed_position position = source_.first();
    ty_replica_options options = how();
    ty_replica *replica = nullptr;
    options.copied_lsn -= 1;
    EXPECT_EQ(TY_E_MISMATCH, ty_replica_begin(heap, &position, &options, &replica));
    options.copied_lsn += 1;
    ty_feed_position damaged = position;
    damaged.hash += 1;
    EXPECT_EQ(TY_E_ARGUMENT, ty_replica_begin(heap, &damaged, &options, &replica));
    ty_feed_position of_other = position;
    of_other.heap_identity[3] ^= 1;
    seal_position(of_other);
    EXPECT_EQ(TY_E_ARGUMENT, ty_replica_begin(heap, &of_other, &options, &replica)); // base is not said
    options.base = static_cast<char *>(ty_heap_base(heap)) + 4096;
    EXPECT_EQ(TY_E_ADDRESS, ty_replica_begin(heap, &of_other, &options, &replica));
    EXPECT_EQ(TY_E_ADDRESS, ty_replica_begin(heap, &position, &options, &replica));
    options.base = ty_heap_base(heap);
    ASSERT_OK(ty_replica_begin(heap, &position, &options, &replica));
    ty_replica_end(replica);
    EXPECT_EQ(TY_E_MISMATCH, ty_replica_begin(heap, &of_other, &options, &replica));
    ty_feed_position later = position;
    later.lsn = copied_ + 1;
    later.has_record = 1;
    seal_position(later);
    EXPECT_EQ(TY_E_MISMATCH, ty_replica_begin(heap, &later, &options, &replica));
    ASSERT_OK(ty_close(heap));
}

// It has as many transactions as the source then, but its own.
TEST_F(receive_refused, a_copy_that_was_written_to) {
    disk files(base_);
    ty_heap *heap = open_base(files);
    const ty_feed_position position = source_.first();
    const ty_replica_options options = how();
    ty_replica *replica = nullptr;
    ASSERT_OK(change(heap, 1));
    EXPECT_EQ(TY_E_MISMATCH, ty_replica_begin(heap, &position, &options, &replica));
    ASSERT_OK(ty_close(heap));
}

TEST(feed_copied, is_of_copies_alone) {
    disk files;
    ty_heap *heap = open_heap(transactional(files));
    ty_feed_position position{};
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_copied(heap, &position));
    ASSERT_OK(change(heap, 1));
    ASSERT_OK(ty_close(heap));
    position = copied(files);
    EXPECT_EQ(1u, position.lsn);
    const ty_open_options options = transactional(files);
    const feed_owner feed = follow(options);
    mirror to(position);
    ASSERT_OK(read_into(to, feed.get(), &position));
    EXPECT_EQ(0u, to.taken);
    heap = open_heap(options);
    ASSERT_OK(change(heap, 2));
    ASSERT_OK(read_into(to, feed.get(), &position));
    EXPECT_EQ(1u, to.taken);
    ASSERT_OK(ty_close(heap));
}

} // namespace
