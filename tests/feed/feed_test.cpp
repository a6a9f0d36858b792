// Goal: a change feed delivers every committed transaction once, in order, with what proves it; goes on from any
// position it gave; and says where it cannot (LK1 to LK4). Method: heaps of one writer on a simulated disk, open or
// closed; a mirror that takes the records; copies of the files that go on elsewhere.
#include "support.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

bool ignore(const ty_feed_record *, void *) {
    return true;
}

TEST(feed_test, all_is_reported_a_heap_in_use_and_of_a_closed_one) {
    disk files;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    const feed_owner within = follow(options, heap), beside = follow(options);
    const ty_feed_position base = base_of(beside.get());
    ty_feed_position first = base, second = base;
    mirror one(base), other(base);
    for (uint64_t n = 1; n <= 60; ++n) {
        ASSERT_OK(change(heap, n));
        if (n % 7 == 0) {
            ASSERT_OK(read_into(one, within.get(), &first));
            EXPECT_EQ(n, one.taken);
            one.expect_like(heap);
        }
        if (n == 30) {
            ASSERT_OK(ty_snapshot(heap));
        }
    }
    ASSERT_OK(read_into(one, within.get(), &first));
    ASSERT_OK(read_into(other, beside.get(), &second));
    EXPECT_EQ(60u, one.taken);
    EXPECT_EQ(60u, other.taken);
    EXPECT_EQ(first.hash, second.hash);
    other.expect_like(heap);
    ASSERT_OK(ty_close(heap));
    ASSERT_OK(read_into(other, beside.get(), &second)); // nothing more
    EXPECT_EQ(60u, other.taken);
    ty_feed_position again = base;
    mirror late(base);
    const ty_status status = read_into(late, beside.get(), &again);
    EXPECT_TRUE(status == TY_OK) << ty_error_text();
    EXPECT_EQ(60u, late.taken);
}

// LK1, LK2: one record a call, by change feeds made anew, over closes, opens and deaths of the writer.
TEST(feed_test, it_goes_on_from_any_position) {
    disk files;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    ty_feed_position place = base_of(follow(options).get());
    mirror to(place);
    to.most = 1;
    uint64_t committed = 0;
    for (int round = 0; round < 12; ++round) {
        for (uint64_t n = 0; n < 9; ++n)
            ASSERT_OK(change(heap, ++committed));
        for (int i = 0; i < 8; ++i) // one stays behind, over what happens to the heap
            ASSERT_OK(read_into(to, follow(options, round % 2 ? heap : nullptr).get(), &place));
        if (round % 3 == 0) {
            ASSERT_OK(ty_close(heap));
            heap = open_heap(options);
        } else if (round % 3 == 1) {
            ASSERT_OK(ty_discard(heap));
            heap = open_heap(options);
        }
        ASSERT_OK(read_into(to, follow(options).get(), &place));
        ASSERT_EQ(committed, to.taken);
    }
    to.expect_like(heap);
    ASSERT_OK(ty_discard(heap));
}

// LK3.
TEST(feed_test, one_that_fell_behind_has_to_begin_with_a_base) {
    disk files;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    const feed_owner feed = follow(options);
    ASSERT_OK(change(heap, 1));
    ty_feed_position place = base_of(feed.get());
    mirror to(place);
    ASSERT_OK(read_into(to, feed.get(), &place));
    const ty_feed_position before = place;
    uint64_t committed = 1;
    ty_status status = TY_OK;
    ty_feed_position base{};
    while (committed < 5000) { // a frame is a block at the least: the ring is round after 250
        ASSERT_OK(change(heap, ++committed));
        if (committed % 100 == 0) {
            ASSERT_OK(ty_snapshot(heap));
            ty_feed_position from = before;
            uint64_t reported = 0;
            status = ty_feed_read(
                feed.get(), &from,
                [](const ty_feed_record *, void *context) {
                    ++*static_cast<uint64_t *>(context);
                    return true;
                },
                &reported, &base);
            if (status)
                break;
            ASSERT_EQ(committed - 1, reported);
        }
    }
    ASSERT_EQ(TY_E_NOT_FOUND, status) << ty_error_text();
    EXPECT_EQ(committed, base.lsn);
    ASSERT_OK(change(heap, ++committed));
    mirror again(base);
    ASSERT_OK(read_into(again, feed.get(), &base));
    EXPECT_EQ(1u, again.taken);
    again.expect_like(heap);
    ASSERT_OK(ty_close(heap));
}

// A transaction that is too large for the log is in a snapshot alone.
TEST(feed_test, what_only_a_snapshot_holds_is_reported) {
    for (bool close : {false, true}) {
        disk files;
        const ty_open_options options = transactional(files);
        ty_heap *heap = open_heap(options);
        const feed_owner feed = follow(options);
        ASSERT_OK(change(heap, 1));
        ty_feed_position place = base_of(feed.get()), base{};
        mirror to(place);
        ASSERT_OK(read_into(to, feed.get(), &place));
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        void *large = ty_txn_alloc(txn, size_t{1} << 20);
        ASSERT_TRUE(large);
        std::mt19937_64 random;
        for (size_t i = 0; i < size_t{1} << 17; ++i)
            static_cast<uint64_t *>(large)[i] = random();
        ASSERT_OK(ty_commit(txn));
        if (close) {
            ASSERT_OK(ty_close(heap));
        } else {
            ASSERT_OK(change(heap, 2));
        }
        bool more = false;
        ASSERT_OK(ty_feed_wait(follow(options).get(), &place, 1'000'000'000, &more));
        EXPECT_TRUE(more);
        ASSERT_EQ(TY_E_NOT_FOUND, read_into(to, feed.get(), &place, &base)) << ty_error_text();
        EXPECT_EQ(place.lsn + 1, base.lsn);
        ASSERT_OK(ty_feed_read(feed.get(), &base, ignore, nullptr, nullptr));
        EXPECT_EQ(place.lsn + (close ? 1 : 2), base.lsn);
        if (!close) {
            ASSERT_OK(ty_close(heap));
        }
    }
}

// LK4.
TEST(feed_test, a_position_of_another_heap_or_history_is_refused) {
    disk files;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    ASSERT_OK(change(heap, 1));
    ty_feed_position place = base_of(follow(options).get());
    ASSERT_OK(ty_feed_read(follow(options).get(), &place, ignore, nullptr, nullptr));
    const ty_feed_position common = place;

    disk elsewhere(files.cut(os::sim_cut::keep_all));
    const ty_open_options there = transactional(elsewhere);
    ASSERT_OK(ty_discard(heap));
    heap = open_heap(options);
    ASSERT_OK(change(heap, 2));
    ASSERT_OK(ty_feed_read(follow(options).get(), &place, ignore, nullptr, nullptr));
    // An older copy, and one that went on by itself.
    ty_feed_position moved = place;
    EXPECT_EQ(TY_E_MISMATCH, ty_feed_read(follow(there).get(), &moved, ignore, nullptr, nullptr));
    ASSERT_OK(ty_discard(heap));
    ty_heap *copy = open_heap(there);
    ASSERT_OK(change(copy, 3));
    ASSERT_OK(ty_snapshot(copy)); // which is as far
    EXPECT_EQ(TY_E_MISMATCH, ty_feed_read(follow(there).get(), &moved, ignore, nullptr, nullptr));
    for (int i = 0; i < 4; ++i) {
        ASSERT_OK(ty_discard(copy));
        copy = open_heap(there);
        ASSERT_OK(change(copy, 4));
        EXPECT_NE(TY_OK, ty_feed_read(follow(there).get(), &moved, ignore, nullptr, nullptr));
    }
    EXPECT_EQ(0, memcmp(&place, &moved, sizeof place));
    moved = common; // of both
    ASSERT_OK(ty_feed_read(follow(there).get(), &moved, ignore, nullptr, nullptr));
    EXPECT_EQ(common.lsn + 5, moved.lsn);
    ASSERT_OK(ty_discard(copy));

    disk third;
    const ty_open_options others = transactional(third);
    ty_heap *other = open_heap(others);
    EXPECT_EQ(TY_E_MISMATCH, ty_feed_read(follow(others).get(), &moved, ignore, nullptr, nullptr));
    ASSERT_OK(ty_close(other));
}

// A position comes from outside.
TEST(feed_test, a_damaged_position_is_refused) {
    disk files;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    ASSERT_OK(change(heap, 1));
    const feed_owner feed = follow(options);
    const ty_feed_position base = base_of(feed.get());
    std::mt19937_64 random(5);
    for (size_t bit = 0; bit < 8 * sizeof base; ++bit) {
        ty_feed_position bad = base;
        reinterpret_cast<unsigned char *>(&bad)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        ASSERT_EQ(TY_E_ARGUMENT, ty_feed_read(feed.get(), &bad, ignore, nullptr, nullptr)) << bit;
    }
    int refused = 0;
    for (int i = 0; i < 2000; ++i) { // whole, and nonsense
        ty_feed_position bad = base;
        for (int n = 0; n < 3; ++n)
            bad.log_positions[random() % 6] = random() >> random() % 64;
        bad.lsn = random() % 3 ? base.lsn : random() >> random() % 64;
        bad.has_record = random() % 2;
        seal_position(bad);
        refused += ty_feed_read(feed.get(), &bad, ignore, nullptr, nullptr) != TY_OK;
    }
    EXPECT_LT(0, refused);
    ASSERT_OK(ty_close(heap));
}

// LK1.
TEST(feed_test, a_replica_sees_what_is_missing_or_changed) {
    disk files;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    for (uint64_t n = 1; n <= 5; ++n)
        ASSERT_OK(change(heap, n));
    struct kept {
        ty_feed_record record;
        std::string bytes;
    };
    std::vector<kept> all;
    const feed_owner feed = follow(options);
    const ty_feed_position base = base_of(feed.get());
    ty_feed_position place = base;
    ASSERT_OK(ty_feed_read(
        feed.get(), &place,
        [](const ty_feed_record *record, void *context) {
            static_cast<std::vector<kept> *>(context)->push_back(
                {*record, std::string(static_cast<const char *>(record->bytes), record->size_bytes)});
            return true;
        },
        &all, nullptr));
    for (kept &one : all)
        one.record.bytes = one.bytes.data();
    ASSERT_EQ(5u, all.size());
    const auto take = [&](std::initializer_list<size_t> order) {
        ty_feed_position at = base;
        ty_status status = TY_OK;
        for (size_t n : order)
            status = status ? status : ty_feed_check(&at, &all[n].record);
        return status;
    };
    EXPECT_EQ(TY_OK, take({0, 1, 2, 3, 4}));
    EXPECT_EQ(TY_E_MISMATCH, take({0, 2}));
    EXPECT_EQ(TY_E_MISMATCH, take({1}));
    EXPECT_EQ(TY_E_MISMATCH, take({0, 1, 1}));
    for (size_t i = 0; i < all[1].bytes.size(); ++i) {
        all[1].bytes[i] ^= 4;
        EXPECT_EQ(TY_E_DAMAGED, take({0, 1}));
        all[1].bytes[i] ^= 4;
    }
    all[1].record.size_bytes -= 1;
    EXPECT_EQ(TY_E_DAMAGED, take({0, 1}));
    ASSERT_OK(ty_close(heap));
}

// What nobody waited for is delivered, too, after a snapshot or a close that holds it.
TEST(feed_test, what_had_grouped_before_a_snapshot_is_reported) {
    for (bool close : {false, true}) {
        disk files;
        const ty_open_options options = transactional(files);
        ty_heap *heap = open_heap(options);
        const feed_owner feed = follow(options);
        ASSERT_OK(change(heap, 1));
        ty_feed_position place = base_of(feed.get());
        mirror to(place);
        for (uint64_t n = 2; n <= 9; ++n)
            ASSERT_OK(change(heap, n, false));
        ASSERT_OK(close ? ty_close(heap) : ty_snapshot(heap));
        ASSERT_OK(read_into(to, feed.get(), &place));
        EXPECT_EQ(9u, to.taken);
        if (!close) {
            ASSERT_OK(ty_close(heap));
        }
    }
}

// LK2: what is appended and not yet durable is not delivered, though it may be read.
TEST(feed_test, nothing_is_reported_before_it_is_durable) {
    disk files;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    ASSERT_OK(change(heap, 1));
    const feed_owner feed = follow(options, heap);
    ty_feed_position place = base_of(feed.get());
    mirror to(place);
    ASSERT_OK(change(heap, 2, false));
    ASSERT_OK(read_into(to, feed.get(), &place));
    EXPECT_EQ(1u, to.taken);
    ASSERT_OK(change(heap, 3));
    ASSERT_OK(read_into(to, feed.get(), &place));
    EXPECT_EQ(3u, to.taken);
    ASSERT_OK(ty_close(heap));
}

// LK2: what an open finds in the log of a process that died is not known to be durable until something is written; it
// was acknowledged, and delivered, all the same.
TEST(feed_test, what_was_acknowledged_before_a_death_is_reported_at_once) {
    for (bool reported_before : {true, false}) {
        disk files;
        ty_heap *heap = open_heap(transactional(files));
        ASSERT_OK(change(heap, 1));
        const ty_open_options before = transactional(files);
        ty_feed_position place = base_of(follow(before).get());
        mirror to(place);
        for (uint64_t n = 2; n <= 5; ++n)
            ASSERT_OK(change(heap, n));
        if (reported_before) {
            ASSERT_OK(read_into(to, follow(before, heap).get(), &place));
            EXPECT_EQ(5u, to.taken);
        }
        disk after(files.cut(os::sim_cut::drop_all));
        ASSERT_OK(ty_discard(heap));
        const ty_open_options options = transactional(after);
        heap = open_heap(options);
        const feed_owner feed = follow(options, heap);
        bool more = false;
        ASSERT_OK(ty_feed_wait(feed.get(), &place, reported_before ? 1 : UINT32_MAX, &more));
        EXPECT_EQ(!reported_before, more);
        ASSERT_OK(read_into(to, feed.get(), &place)) << ty_error_text();
        EXPECT_EQ(5u, to.taken);
        disk later(after.cut(os::sim_cut::drop_all)); // it is durable
        ASSERT_OK(change(heap, 6));
        ASSERT_OK(ty_feed_wait(feed.get(), &place, UINT32_MAX, &more));
        EXPECT_TRUE(more);
        ASSERT_OK(read_into(to, feed.get(), &place));
        EXPECT_EQ(6u, to.taken);
        to.expect_like(heap);
        ASSERT_OK(ty_close(heap));
        const ty_open_options left = transactional(later);
        heap = open_heap(left);
        EXPECT_EQ(5u + 1 + 2 + 3 + 4 + 5, block_of(heap)[0]);
        ASSERT_OK(ty_close(heap));
    }
}

// A log in memory whose writes end when the test lets them.
struct held_log {
    held_log() {
        EXPECT_OK(ty_memory_log_create(memory, sizeof memory, nullptr, &below));
        table = *below;
        table.context = this;
        table.read = [](void *context, uint64_t offset, void *buffer, size_t bytes) {
            auto &self = *static_cast<held_log *>(context);
            std::lock_guard guard(self.lock);
            return self.below->read(self.below->context, offset, buffer, bytes);
        };
        table.write = [](void *context, uint64_t offset, const void *buffer, size_t bytes) {
            auto &self = *static_cast<held_log *>(context);
            std::unique_lock guard(self.lock);
            const ty_status status = self.below->write(self.below->context, offset, buffer, bytes);
            ++self.written;
            self.changed.notify_all();
            self.changed.wait(guard, [&] { return !self.held; });
            return status;
        };
    }
    ~held_log() { ty_log_sink_destroy(below); }
    void hold(bool holds) {
        std::lock_guard guard(lock);
        held = holds;
        before = written;
        changed.notify_all();
    }
    void wait_for_write() { // since it was held
        std::unique_lock guard(lock);
        changed.wait(guard, [&] { return written > before; });
    }

    alignas(64) char memory[TY_LOG_BYTES_MIN] = {};
    ty_log_sink *below = nullptr;
    ty_log_sink table{};
    std::mutex lock;
    std::condition_variable changed;
    bool held = false;
    unsigned written = 0, before = 0;
};

// LK2: the frame can be read, and its write has not returned.
TEST(feed_test, what_is_being_written_is_not_reported) {
    disk files;
    const auto log = std::make_unique<held_log>();
    ty_open_options options = transactional(files);
    options.log = &log->table;
    ty_heap *heap = open_heap(options);
    ASSERT_OK(change(heap, 1));
    const feed_owner feed = follow(options, heap);
    ty_feed_position place = base_of(feed.get());
    mirror to(place);
    ASSERT_OK(read_into(to, feed.get(), &place));
    const uint64_t before = to.taken;
    log->hold(true);
    std::thread committer([&] { EXPECT_OK(change(heap, 2)); });
    log->wait_for_write();
    EXPECT_OK(read_into(to, feed.get(), &place));
    EXPECT_EQ(before, to.taken);
    log->hold(false);
    committer.join();
    ASSERT_OK(read_into(to, feed.get(), &place));
    EXPECT_EQ(before + 1, to.taken);
    ASSERT_OK(ty_close(heap));
}

// LK2: of files alone. A disk that does not keep its word on writes does when it is asked to flush.
TEST(feed_test, what_was_reported_survives_a_power_cut) {
    disk files;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    ASSERT_OK(change(heap, 1));
    const feed_owner feed = follow(options);
    ty_feed_position place = base_of(feed.get());
    os::sim_set_broken_durable_write(files.get(), true);
    ASSERT_OK(change(heap, 2));
    ASSERT_OK(ty_feed_read(feed.get(), &place, ignore, nullptr, nullptr));
    disk after(files.cut(os::sim_cut::drop_all));
    ASSERT_OK(ty_discard(heap));
    const ty_open_options left = transactional(after);
    heap = open_heap(left);
    ASSERT_OK(ty_feed_read(follow(left).get(), &place, ignore, nullptr, nullptr));
    EXPECT_EQ(1u + 1 + 1 + 2, block_of(heap)[0]);
    ASSERT_OK(ty_close(heap));
}

TEST(feed_test, who_waits_is_woken_by_a_commit) {
    for (bool within : {true, false}) {
        disk files;
        const ty_open_options options = transactional(files);
        ty_heap *heap = open_heap(options);
        ASSERT_OK(change(heap, 1));
        const feed_owner feed = follow(options, within ? heap : nullptr);
        ty_feed_position place = base_of(feed.get());
        bool more = false;
        ASSERT_OK(ty_feed_wait(feed.get(), &place, 0, &more));
        EXPECT_TRUE(more);
        ASSERT_OK(ty_feed_read(feed.get(), &place, ignore, nullptr, nullptr));
        ASSERT_OK(ty_feed_wait(feed.get(), &place, 1, &more));
        EXPECT_FALSE(more);
        std::thread waiter([&] { ASSERT_OK(ty_feed_wait(feed.get(), &place, 1'000'000'000, &more)); });
        ASSERT_OK(change(heap, 2));
        waiter.join();
        EXPECT_TRUE(more);
        const uint64_t before = place.lsn;
        ASSERT_OK(ty_feed_read(feed.get(), &place, ignore, nullptr, nullptr));
        EXPECT_EQ(before + 1, place.lsn);
        ASSERT_OK(ty_close(heap));
    }
}

TEST(feed_test, wrong_arguments_are_refused) {
    disk files, others;
    const ty_open_options options = transactional(files);
    ty_heap *heap = open_heap(options);
    ty_feed *made = nullptr;
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_open(nullptr, nullptr, &made));
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_open(heap_path, nullptr, nullptr));
    ty_feed_options wrong = TY_FEED_OPTIONS_INIT;
    wrong.open = &options;
    wrong.heap = heap;
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_open("other.ty", &wrong, &made));
    const feed_owner feed = follow(options, heap);
    ty_feed_position place = base_of(feed.get());
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_read(nullptr, &place, ignore, nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_read(feed.get(), nullptr, ignore, nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_read(feed.get(), &place, nullptr, nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_wait(feed.get(), &place, 0, nullptr));
    ASSERT_OK(ty_close(heap));
    EXPECT_EQ(TY_E_ARGUMENT, ty_feed_read(feed.get(), &place, ignore, nullptr, nullptr));
    ty_open_options plain = others.options();
    plain.kind = TY_SNAPSHOT;
    heap = open_heap(plain);
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_feed_base(follow(plain).get(), &place, nullptr));
    ASSERT_OK(ty_close(heap));
}

} // namespace
