// Goal: a snapshot makes exactly what was there durable, in each of the ways to take one. Method: random changes on a
// simulated disk; after a discard, a power cut or a close, the reopened heap must hold the bytes of the last snapshot.
#include "../support.hpp"
#include "tests/files_on.hpp"
#include "tests/stats.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class snapshot_test : public testing::Test {
protected:
    void open(ty_open_options options) { ASSERT_OK(ty_open(heap_path, &options, &heap, &report)); }
    void open() { open(files.options()); }
    ~snapshot_test() override { EXPECT_OK(ty_discard(heap)); }

    disk files;
    ty_heap *heap = nullptr;
    ty_report report{};
};

TEST_F(snapshot_test, close_and_reopen_keeps_everything) {
    open();
    EXPECT_TRUE(report.created);
    EXPECT_EQ(TY_RECOVERY_CREATED, report.found);
    scribbler(1).change(heap, 500);
    content before = content_of(heap);
    ASSERT_OK(ty_close(heap));
    open();
    EXPECT_EQ(TY_RECOVERY_CLOSED, report.found) << report.text;
    EXPECT_EQ(before, content_of(heap));
    expect_sound(heap);
}

TEST_F(snapshot_test, discard_goes_back_to_the_last_snapshot) {
    open();
    scribbler s(2);
    content last;
    for (int round = 0; round < 10; ++round) {
        s.change(heap, 200);
        ASSERT_OK(ty_snapshot(heap));
        last = content_of(heap);
        if (round % 3 == 0) {
            ASSERT_OK(ty_run_background_work(heap));
        }
        s.change(heap, 200);
        ASSERT_OK(ty_discard(heap));
        open();
        ASSERT_EQ(last, content_of(heap)) << "round " << round;
        expect_sound(heap);
        s.forget_others(heap);
    }
}

TEST_F(snapshot_test, one_flush_makes_it_durable) {
    open();
    scribbler s(3);
    s.change(heap, 300);
    ASSERT_OK(ty_snapshot(heap)); // the first of an open makes the files name it, and the journal longer
    s.change(heap, 30);
    uint64_t flushes = os::sim_operation_count(files.get(), os::sim_op_flush);
    ASSERT_OK(ty_snapshot(heap));
    EXPECT_EQ(flushes + 1, os::sim_operation_count(files.get(), os::sim_op_flush));
    content last = content_of(heap);
    disk cut(files.cut(os::sim_cut::drop_all));
    ASSERT_OK(ty_discard(heap));
    ty_open_options options = cut.options();
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(last, content_of(heap));
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
}

TEST_F(snapshot_test, without_changes_nothing_is_written) {
    open();
    scribbler(4).change(heap, 10);
    ASSERT_OK(ty_snapshot(heap));
    uint64_t events = os::sim_event_count(files.get()), epoch = ty_heap_epoch(heap);
    ASSERT_OK(ty_snapshot(heap));
    EXPECT_EQ(events, os::sim_event_count(files.get()));
    EXPECT_EQ(epoch, ty_heap_epoch(heap));
}

TEST_F(snapshot_test, start_holds_what_was_there_at_the_start) {
    open();
    scribbler s(5);
    s.change(heap, 300);
    content at_start = content_of(heap);
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(heap, &epoch));
    s.change(heap, 300); // belongs to the next one
    ASSERT_OK(ty_snapshot_wait(heap, epoch));
    EXPECT_EQ(epoch, ty_heap_epoch(heap));
    ASSERT_OK(ty_discard(heap));
    open();
    EXPECT_EQ(at_start, content_of(heap));
}

TEST_F(snapshot_test, pages_written_back_early_that_change_again_are_saved_as_they_are_at_the_snapshot) {
    open();
    scribbler s(6);
    for (int round = 0; round < 5; ++round) {
        s.change(heap, 300);
        ASSERT_OK(ty_write_back_early(heap, round % 2 ? 0 : 7));
        s.change(heap, 50);
        ASSERT_OK(ty_write_back_early(heap, 0));
        s.change(heap, 50);
        ASSERT_OK(ty_snapshot(heap));
        content last = content_of(heap);
        s.change(heap, 50);
        ASSERT_OK(ty_write_back_early(heap, 0)); // of a batch that is never completed
        ASSERT_OK(ty_discard(heap));
        open();
        ASSERT_EQ(last, content_of(heap)) << "round " << round;
        s.forget_others(heap);
    }
}

// With TY_BACKGROUND_CALLS nobody else would write the chunks, and the next snapshot would have all of them to write.
TEST_F(snapshot_test, early_write_back_by_itself) {
    open();
    if (report.tracking == TY_TRACK_CONTENT)
        GTEST_SKIP() << "only the snapshot's pause is a moment to collect at";
    scribbler s(7);
    s.change(heap, 300);
    uint64_t writes = os::sim_operation_count(files.get(), os::sim_op_write);
    ASSERT_OK(ty_write_back_early(heap, 0));
    EXPECT_GT(os::sim_operation_count(files.get(), os::sim_op_write), writes);
}

TEST_F(snapshot_test, staging_smaller_than_the_dirty_set) {
    ty_open_options options = files.options();
    options.staging_bytes = 1; // two slots
    open(options);
    auto *block = static_cast<char *>(ty_alloc(heap, 20 << 20));
    for (size_t i = 0; i < 20u << 20; i += 512)
        block[i] = char(i / 512 % 251);
    content before = content_of(heap);
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_discard(heap));
    open(options);
    EXPECT_EQ(before, content_of(heap));
}

TEST_F(snapshot_test, the_journal_is_bounded_and_its_space_reused) {
    ty_open_options options = files.options();
    options.journal_limit_bytes = 3 << 20;
    open(options);
    scribbler s(7);
    for (int round = 0; round < 60; ++round) {
        s.change(heap, 150);
        ASSERT_OK(ty_snapshot(heap));
        const ty_snapshot_stats stats = snapshot_stats_of(heap);
        ASSERT_LE(stats.pending_bytes, options.journal_limit_bytes + stats.last_bytes);
        if (round % 7 == 0) {
            content last = content_of(heap);
            ASSERT_OK(ty_discard(heap));
            open(options);
            ASSERT_EQ(last, content_of(heap));
            s.forget_others(heap);
        }
    }
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_OK(ty_read_info(heap_path, files_on(files.storage()), &info));
    EXPECT_LT(info.journal_bytes, 16u << 20);
}

TEST_F(snapshot_test, bytes_written_are_little_more_than_the_dirty_pages) {
    open();
    auto *block = static_cast<char *>(ty_alloc(heap, 40 << 20));
    ASSERT_OK(ty_snapshot(heap));
    for (size_t i = 0; i < 1000; ++i)
        block[i * 37 % 10000 * 4096] = char(i + 1);
    uint64_t dirty = 0;
    ASSERT_OK(ty_dirty_count(heap, &dirty));
    EXPECT_EQ(1000u, dirty);
    ASSERT_OK(ty_snapshot(heap));
    const ty_snapshot_stats stats = snapshot_stats_of(heap);
    EXPECT_LE(stats.last_bytes, 1000u * 4096 * 101 / 100);
    ASSERT_OK(ty_dirty_count(heap, &dirty));
    EXPECT_EQ(0u, dirty);
}

TEST_F(snapshot_test, dirty_bitmap_has_a_bit_for_each_page_written) {
    open();
    auto *block = static_cast<char *>(ty_alloc_aligned(heap, 1 << 20, 4096));
    ASSERT_OK(ty_snapshot(heap));
    const ty_heap_stats stats = heap_stats_of(heap);
    uint64_t first = uint64_t(block - static_cast<char *>(stats.base)) / 4096;
    for (int page : {0, 3, 70, 255})
        block[page * 4096] = 1;
    uint64_t bits[4] = {~0ull, ~0ull, ~0ull, ~0ull};
    ASSERT_OK(ty_dirty_bitmap(heap, first, 256, bits));
    EXPECT_EQ(0x9u, bits[0]);
    EXPECT_EQ(uint64_t{1} << 6, bits[1]);
    EXPECT_EQ(0u, bits[2]);
    EXPECT_EQ(uint64_t{1} << 63, bits[3]);
    EXPECT_EQ(TY_E_ARGUMENT, ty_dirty_bitmap(heap, small_limit / 4096, 1, bits));
}

TEST_F(snapshot_test, pages_of_a_failed_snapshot_stay_dirty_and_a_reader_sees_what_waits) {
    open();
    auto *block = static_cast<char *>(ty_alloc_aligned(heap, 1 << 20, 4096));
    memset(block, 1, 1 << 20);
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_run_background_work(heap));
    for (int page : {1, 5, 9})
        block[page * 4096] = 2;
    os::sim_set_fault(files.get(), {os::sim_op_flush, 0, false, TY_E_IO});
    EXPECT_EQ(TY_E_IO, ty_snapshot(heap));
    os::sim_set_fault(files.get(), {});
    auto first = uint64_t(block - static_cast<char *>(ty_heap_base(heap))) / 4096;
    uint64_t pages = 0, bits = 0;
    ASSERT_OK(ty_dirty_count(heap, &pages)); // the kernel has forgotten them
    EXPECT_EQ(3u, pages);
    ASSERT_OK(ty_dirty_bitmap(heap, first, 16, &bits));
    EXPECT_EQ(0x222u, bits);
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_discard(heap));
    ty_open_options options = files.options();
    options.mode = TY_OPEN_READ_ONLY;
    open(options);
    ASSERT_OK(ty_dirty_count(heap, &pages));
    EXPECT_EQ(3u, pages);
    ASSERT_OK(ty_dirty_bitmap(heap, first, 16, &bits));
    EXPECT_EQ(0x222u, bits);
}

TEST_F(snapshot_test, free_pages_are_not_written) {
    open();
    void *block = ty_alloc(heap, 8 << 20);
    memset(block, 1, 8 << 20);
    ASSERT_OK(ty_free(block));
    ASSERT_OK(ty_snapshot(heap));
    const ty_snapshot_stats stats = snapshot_stats_of(heap);
    EXPECT_LT(stats.last_bytes, 1u << 20);
}

TEST_F(snapshot_test, all_ways_of_tracking_and_of_background_work) {
    for (ty_tracking tracking : {TY_TRACK_KERNEL, TY_TRACK_SIGNAL, TY_TRACK_CONTENT})
        for (ty_background background : {TY_BACKGROUND_THREAD, TY_BACKGROUND_CALLS}) {
            disk own;
            ty_open_options options = own.options();
            options.tracking = tracking;
            options.background = background;
            scribbler s(8);
            ty_status status = ty_open(heap_path, &options, &heap, &report);
            if (status == TY_E_UNSUPPORTED && tracking == TY_TRACK_KERNEL)
                continue; // this kernel has not got it
            ASSERT_OK(status);
            EXPECT_EQ(tracking, report.tracking);
            for (int round = 0; round < 20; ++round) {
                s.change(heap, 100);
                ASSERT_OK(ty_snapshot(heap));
            }
            ASSERT_OK(ty_run_background_work(heap));
            ASSERT_OK(ty_background_work_status(heap));
            content last = content_of(heap);
            s.change(heap, 100);
            ASSERT_OK(ty_discard(heap));
            ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
            EXPECT_EQ(last, content_of(heap));
            ASSERT_OK(ty_close(heap));
            heap = nullptr;
        }
}

TEST_F(snapshot_test, purge_gives_clean_pages_back_and_keeps_their_content) {
    open();
    scribbler s(9);
    s.change(heap, 2000);
    ASSERT_OK(ty_close(heap));
    open(); // now its pages show the file
    s.change(heap, 1000);
    ASSERT_OK(ty_snapshot(heap));
    s.change(heap, 20); // dirty pages stay
    content before = content_of(heap);
    size_t released = 0;
    ASSERT_OK(ty_heap_purge(heap, &released));
    EXPECT_GT(released, 50u * 4096);
    EXPECT_EQ(before, content_of(heap));
    s.change(heap, 100);
    before = content_of(heap);
    ASSERT_OK(ty_close(heap));
    open();
    EXPECT_EQ(before, content_of(heap));
}

// I4. Pages of a snapshot that failed, or that was only begun, are not in the image, although nobody wrote to them
// since.
TEST_F(snapshot_test, purge_keeps_pages_that_no_durable_snapshot_holds) {
    for (uint32_t fails : {os::sim_op_flush, os::sim_op_write})
        for (bool written_early : {false, true}) {
            SCOPED_TRACE(testing::Message() << "operation " << fails << " written back early " << written_early);
            open();
            auto *block = static_cast<char *>(ty_alloc_aligned(heap, 1 << 20, 4096));
            memset(block, 1, 1 << 20);
            ASSERT_OK(ty_close(heap));
            open(); // now its pages show the file
            memset(block, 2, 1 << 19);
            if (written_early) {
                ASSERT_OK(ty_write_back_early(heap, 0));
                ASSERT_OK(ty_heap_purge(heap, nullptr));
            }
            memset(block + (1 << 19), 3, 1 << 18);
            EXPECT_EQ(2, block[0]) << "purged while the batch was open";
            const content before = content_of(heap);
            os::sim_set_fault(files.get(), {fails, 0, false, TY_E_IO});
            ASSERT_EQ(TY_E_IO, ty_snapshot(heap));
            os::sim_set_fault(files.get(), {});
            ASSERT_OK(ty_heap_purge(heap, nullptr));
            EXPECT_TRUE(before == content_of(heap));
            ASSERT_OK(ty_snapshot(heap));
            ASSERT_OK(ty_heap_purge(heap, nullptr));
            EXPECT_TRUE(before == content_of(heap));
            ASSERT_OK(ty_discard(heap));
            open();
            EXPECT_TRUE(before == content_of(heap));
            ASSERT_OK(ty_free(block));
            ASSERT_OK(ty_close(heap));
            heap = nullptr;
        }
}

TEST_F(snapshot_test, roots_are_found_again) {
    open();
    void *block = ty_alloc(heap, 100);
    ASSERT_OK(ty_root_set(heap, "atlas", block));
    ASSERT_OK(ty_close(heap));
    open();
    EXPECT_EQ(block, ty_root(heap, "atlas"));
    EXPECT_EQ(nullptr, ty_root(heap, "other"));
}

} // namespace
