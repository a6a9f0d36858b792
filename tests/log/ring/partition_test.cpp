// Goal: a log of several partitions gives back what was appended, in the order of the sequences, up to the first one
// that is missing, and behind it what is marked; what was acknowledged is never left out without a word (L8, L9, L10).
// Method: two to eight rings in memory or on a simulated disk; frames taken away, damaged, or moved.
#include "partitions.hpp"

#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

TEST(partition_test, records_come_back_in_the_order_of_their_sequences) {
    partitioned_log log(3);
    for (uint64_t n = 1; n <= 500; ++n)
        log.append(static_cast<uint32_t>(n * n % 3), n);
    ASSERT_OK(log_wait(log.get(), 500));
    EXPECT_EQ(500u, log_stable(log.get()));
    partitioned_reading read = log.read();
    ASSERT_OK(read.status);
    ASSERT_EQ(500u, read.records.size());
    for (uint64_t n = 1; n <= 500; ++n) {
        EXPECT_EQ(n, read.records[n - 1].sequence);
        EXPECT_EQ(record_of(n), read.records[n - 1].bytes);
        EXPECT_EQ(n * n % 3, read.records[n - 1].partition);
    }
    EXPECT_EQ(500u, read.contents.end.stamp);
    EXPECT_EQ(0u, read.contents.left_out);
}

TEST(partition_test, what_is_behind_a_missing_one_is_left_out_but_for_marked_ones) {
    partitioned_log log(2);
    for (uint64_t n : {1, 2, 3})
        log.append(0, n);
    ASSERT_OK(log_wait(log.get(), 3));
    log.append(1, 4); // is never written
    log.append(0, 5);
    log.append(0, 6, true);
    log.append(0, 7);
    log.append(0, 8, true);
    ASSERT_OK(log_wait_partition(log.get(), 0, 8));
    EXPECT_EQ(3u, log_stable(log.get()));
    partitioned_reading read = log.read();
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{1, 2, 3, 6, 8}), read.sequences());
    EXPECT_EQ(3u, read.contents.end.stamp);
    EXPECT_EQ(8u, read.contents.highest);
    EXPECT_EQ(2u, read.contents.left_out);
    EXPECT_EQ(2u, read.contents.behind_gap);
    EXPECT_TRUE(read.records[3].marked);
    EXPECT_FALSE(read.records[2].marked);
}

TEST(partition_test, who_waits_waits_for_what_is_before_it_in_all_partitions) {
    partitioned_log log(4);
    for (uint64_t n = 1; n <= 4; ++n)
        log.append(static_cast<uint32_t>(n - 1), n);
    EXPECT_EQ(0u, log_stable(log.get()));
    ASSERT_OK(log_wait(log.get(), 3, 2));
    EXPECT_EQ(3u, log_stable(log.get()));
    EXPECT_EQ(3u, log.read().contents.end.stamp);
}

TEST(partition_test, one_with_nothing_to_write_holds_nobody_up) {
    partitioned_log log(8);
    log.append(5, 1);
    ASSERT_OK(log_wait(log.get(), 1, 5));
    const uint64_t written = log.writes();
    EXPECT_EQ(1u, log_stable(log.get()));
    log.append(5, 2);
    ASSERT_OK(log_wait(log.get(), 2, 5));
    EXPECT_EQ(written + 1, log.writes()) << "a lone committer writes its own frame";
    EXPECT_EQ(2u, log_stable(log.get()));
}

// L9: bit rot in a partition that has been still for long must not take what came after for not acknowledged.
TEST(partition_test, a_lost_frame_is_told_from_one_that_was_not_written) {
    partitioned_log log(2);
    log.append(1, 1);
    ASSERT_OK(log_wait(log.get(), 1, 1));
    log.append(0, 2);
    ASSERT_OK(log_wait(log.get(), 2)); // says that 1 was stable
    log.damage(1, 1);                  // behind the session's start
    partitioned_reading read = log.read();
    EXPECT_EQ(TY_E_DAMAGED, read.status);
    EXPECT_NE(std::string::npos, std::string(ty_error_text()).find("transaction 1 was written")) << ty_error_text();
}

// The last frame of all may have been in flight, whatever it holds.
TEST(partition_test, the_last_frame_may_be_missing) {
    partitioned_log log(2);
    log.append(1, 1);
    ASSERT_OK(log_wait(log.get(), 1, 1));
    log.append(0, 2);
    ASSERT_OK(log_wait(log.get(), 2));
    log.damage(0, 1);
    partitioned_reading read = log.read();
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{1}), read.sequences());
}

// L8.
TEST(partition_test, a_frame_of_one_is_not_valid_in_another) {
    partitioned_log log(2);
    log.append(0, 1);
    ASSERT_OK(log_wait(log.get(), 1));
    log.copy_ring(0, 1);
    partitioned_reading read = log.read();
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{1}), read.sequences());
    EXPECT_EQ(2u, read.contents.frames);
}

TEST(partition_test, sequences_may_lie_far_apart_in_a_partition) {
    partitioned_log log(2);
    log.append(1, 1);
    for (uint64_t n = 2; n <= 40000; ++n)
        log.append(0, n);
    log.append(1, 40001, true);
    log.append(1, 40002);
    ASSERT_OK(log_wait(log.get(), 40002, 1));
    partitioned_reading read = log.read();
    ASSERT_OK(read.status);
    ASSERT_EQ(40002u, read.records.size());
    EXPECT_EQ(record_of(40001), read.records[40000].bytes);
    EXPECT_TRUE(read.records[40000].marked);
}

TEST(partition_test, an_append_that_is_given_up_leaves_no_trace) {
    partitioned_log log(2);
    uint8_t *place = nullptr;
    ASSERT_OK(log_append_begin(log.get(), 1, 100, &place));
    log_append_end(log.get(), 1, 0, 0);
    log.append(0, 1);
    ASSERT_OK(log_wait(log.get(), 1));
    EXPECT_EQ(1u, log_stable(log.get()));
}

TEST(partition_test, who_does_not_want_to_wait_is_told_that_another_appends) {
    partitioned_log log(2);
    uint8_t *place = nullptr, *other = nullptr;
    ASSERT_OK(log_append_begin(log.get(), 1, 100, &place));
    std::thread([&] {
        EXPECT_EQ(TY_E_BUSY, log_append_begin(log.get(), 1, 100, &other, log_turn::try_once));
        EXPECT_OK(log_append_begin(log.get(), 0, 100, &other, log_turn::try_once));
        log_append_end(log.get(), 0, 0, 0);
    }).join();
    log_append_end(log.get(), 1, 0, 0);
}

TEST(partition_test, a_full_one_does_not_fill_the_others) {
    partitioned_log log(2);
    uint64_t n = 0;
    uint8_t *place = nullptr;
    ty_status status = TY_OK;
    while (!(status = log_append_begin(log.get(), 0, 1000, &place))) {
        memset(place, 'x', 1000);
        log_append_end(log.get(), 0, 1000, ++n);
    }
    EXPECT_EQ(TY_E_SPACE, status);
    log.append(1, ++n);
    ASSERT_OK(log_wait(log.get(), n, 1));
    const log_figures figures = log_get_figures(log.get());
    EXPECT_EQ(2 * log_partition_figures(log.get(), 0).used_bytes, figures.fullest_bytes);
    EXPECT_LT(figures.used_bytes, figures.fullest_bytes);
    log_release(log.get(), log_marks_now(log.get()));
    log.append(0, ++n);
    ASSERT_OK(log_wait(log.get(), n));
}

// Marks are taken one ring after the other, while others append: what is up to the stamp is not read again.
TEST(partition_test, what_a_snapshot_holds_behind_its_marks_is_skipped) {
    partitioned_log log(2);
    log.append(0, 1);
    log.append(1, 2);
    log_marks marks = log_marks_now(log.get());
    log.append(0, 3); // the snapshot holds these as well
    log.append(1, 4);
    marks.stamp = 4;
    log.append(1, 5);
    log.append(0, 6);
    ASSERT_OK(log_wait(log.get(), 6));
    log_release(log.get(), marks);
    partitioned_reading read = log.read(marks);
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{5, 6}), read.sequences());
    EXPECT_EQ(6u, read.contents.end.stamp);
}

// A snapshot makes stable what it holds, wherever that lies.
TEST(partition_test, a_durable_snapshot_makes_all_up_to_its_stamp_stable) {
    partitioned_log log(3);
    log.append(0, 1);
    log.append(1, 2);
    log_marks marks = log_marks_now(log.get());
    log.append(2, 3);
    marks.stamp = 3;
    log_release(log.get(), marks);
    EXPECT_EQ(3u, log_stable(log.get()));
    log.append(2, 4);
    EXPECT_EQ(3u, log_stable(log.get()));
    ASSERT_OK(log_wait(log.get(), 4));
    EXPECT_EQ(4u, log_stable(log.get()));
}

TEST(partition_test, a_snapshot_in_place_of_a_write_starts_sessions_that_say_so) {
    partitioned_log log(2);
    log.append(0, 1);
    log.append(1, 2);
    ASSERT_OK(log_wait(log.get(), 2));
    log_marks old = log_marks_now(log.get());
    log_marks marks = old;
    marks.stamp = 3; // that one the snapshot alone holds
    log_continue(log.get(), marks);
    EXPECT_EQ(3u, log_last(log.get()));
    EXPECT_EQ(3u, log_stable(log.get()));
    log.append(1, 4);
    log.append(0, 5);
    ASSERT_OK(log_wait(log.get(), 5));
    partitioned_reading read = log.read(marks);
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{4, 5}), read.sequences());
    EXPECT_EQ(TY_E_DAMAGED, log.read(old).status);
}

TEST(partition_test, a_failed_write_breaks_all_and_a_snapshot_mends_all) {
    partitioned_log log(2);
    log.append(0, 1);
    log.append(1, 2);
    log.fail_writes(true);
    EXPECT_EQ(TY_E_IO, log_wait(log.get(), 2));
    EXPECT_TRUE(log_broken(log.get()));
    uint8_t *place = nullptr;
    for (uint32_t p : {0u, 1u})
        EXPECT_EQ(TY_E_IO, log_append_begin(log.get(), p, 10, &place));
    log.fail_writes(false);
    log_marks marks = log_marks_now(log.get());
    log_continue(log.get(), marks);
    log.append(1, 3);
    ASSERT_OK(log_wait(log.get(), 3, 1));
    EXPECT_EQ((std::vector<uint64_t>{3}), log.read(marks).sequences());
}

TEST(partition_test, a_log_too_small_is_refused_and_says_how_large) {
    const uint64_t least = log_bytes_min(64, 4);
    std::vector<char> memory(least + 64);
    void *at = memory.data();
    size_t room = memory.size();
    char *aligned = static_cast<char *>(std::align(64, least, at, room));
    for (uint64_t bytes : {least, least - 64}) {
        ty_log_sink *sink = nullptr;
        ASSERT_OK(memory_sink_create(aligned, bytes, false, 0, &sink));
        EXPECT_EQ(bytes < least ? TY_E_ARGUMENT : TY_OK, log_format(*sink, test_identity, {}, 4));
        if (bytes < least) {
            EXPECT_NE(std::string::npos, std::string(ty_error_text()).find(std::to_string(least)));
        }
        sink_destroy(sink);
    }
}

TEST(partition_test, a_place_in_a_log_of_other_partitions_is_refused) {
    partitioned_log log(2);
    EXPECT_EQ(TY_E_MISMATCH, log.read(log_marks{0, 3}).status);
}

} // namespace
