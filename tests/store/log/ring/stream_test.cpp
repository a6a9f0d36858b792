// Goal: a log of several log streams gives back what was appended, in the order of the LSNs, up to the first one
// that is missing, and after it what is independent; what was acknowledged is never left out without a word (L8, L9,
// L10). Method: two to eight rings in memory or on a simulated disk; frames taken away, damaged, or moved.
#include "src/store/log/ring/ring_runtime.hpp"
#include "streams.hpp"

#include <algorithm>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

TEST(stream_test, records_come_back_in_the_order_of_their_lsns) {
    multi_stream_log log(3);
    for (uint64_t n = 1; n <= 500; ++n)
        log.append(static_cast<uint32_t>(n * n % 3), n);
    ASSERT_OK(log_wait(log.get(), 500));
    EXPECT_EQ(500u, log_durable(log.get()));
    multi_stream_reading read = log.read();
    ASSERT_OK(read.status);
    ASSERT_EQ(500u, read.records.size());
    for (uint64_t n = 1; n <= 500; ++n) {
        EXPECT_EQ(n, read.records[n - 1].lsn);
        EXPECT_EQ(record_of(n), read.records[n - 1].bytes);
        EXPECT_EQ(n * n % 3, read.records[n - 1].stream);
    }
    EXPECT_EQ(500u, read.contents.end.lsn);
    EXPECT_EQ(0u, read.contents.left_out);
}

TEST(stream_test, what_is_after_a_missing_one_is_left_out_but_for_independent_ones) {
    multi_stream_log log(2);
    for (uint64_t n : {1, 2, 3})
        log.append(0, n);
    ASSERT_OK(log_wait(log.get(), 3));
    log.append(1, 4); // is never written
    log.append(0, 5);
    log.append(0, 6, true);
    log.append(0, 7);
    log.append(0, 8, true);
    ASSERT_OK(log_wait_stream(log.get(), 0, 8));
    EXPECT_EQ(3u, log_durable(log.get()));
    multi_stream_reading read = log.read();
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{1, 2, 3, 6, 8}), read.lsns());
    EXPECT_EQ(3u, read.contents.end.lsn);
    EXPECT_EQ(8u, read.contents.highest);
    EXPECT_EQ(2u, read.contents.left_out);
    EXPECT_EQ(2u, read.contents.after_gap);
    EXPECT_TRUE(read.records[3].independent);
    EXPECT_FALSE(read.records[2].independent);
}

TEST(stream_test, who_waits_waits_for_what_is_before_it_in_all_streams) {
    multi_stream_log log(4);
    for (uint64_t n = 1; n <= 4; ++n)
        log.append(static_cast<uint32_t>(n - 1), n);
    EXPECT_EQ(0u, log_durable(log.get()));
    ASSERT_OK(log_wait(log.get(), 3, 2));
    EXPECT_EQ(3u, log_durable(log.get()));
    EXPECT_EQ(3u, log.read().contents.end.lsn);
}

TEST(stream_test, one_with_nothing_to_write_holds_nobody_up) {
    multi_stream_log log(8);
    log.append(5, 1);
    ASSERT_OK(log_wait(log.get(), 1, 5));
    const uint64_t written = log.writes();
    EXPECT_EQ(1u, log_durable(log.get()));
    log.append(5, 2);
    ASSERT_OK(log_wait(log.get(), 2, 5));
    EXPECT_EQ(written + 1, log.writes()) << "a lone committer writes its own frame";
    EXPECT_EQ(2u, log_durable(log.get()));
}

// L10.
TEST(stream_test, an_lsn_that_is_taken_holds_the_durable_one_back) {
    multi_stream_log log(2);
    uint8_t *place = nullptr;
    ASSERT_OK(log_append_begin(log.get(), 1, 3, &place));
    memcpy(place, "one", 3); // with LSN 1, but not yet
    std::thread([&] {
        log.append(0, 2);
        EXPECT_OK(log_wait_stream(log.get(), 0, 2));
        EXPECT_EQ(0u, log_durable(log.get()));
    }).join();
    log_append_end(log.get(), 1, 3, 1);
    EXPECT_EQ(0u, log_durable(log.get()));
    ASSERT_OK(log_wait(log.get(), 2));
    EXPECT_EQ(2u, log_durable(log.get()));
}

// L9: bit rot in a log stream that has been still for long must not take what came after for not acknowledged.
TEST(stream_test, a_lost_frame_is_distinguished_from_one_that_was_not_written) {
    multi_stream_log log(2);
    log.append(1, 1);
    ASSERT_OK(log_wait(log.get(), 1, 1));
    log.append(0, 2);
    ASSERT_OK(log_wait(log.get(), 2)); // says that 1 was durable
    log.damage(1, 1);                  // after the generation's start
    multi_stream_reading read = log.read();
    EXPECT_EQ(TY_E_DAMAGED, read.status);
    EXPECT_NE(std::string::npos, std::string(ty_error_text()).find("transaction 1 was written")) << ty_error_text();
}

// The last frame of all may have been in flight, whatever it holds.
TEST(stream_test, the_last_frame_may_be_missing) {
    multi_stream_log log(2);
    log.append(1, 1);
    ASSERT_OK(log_wait(log.get(), 1, 1));
    log.append(0, 2);
    ASSERT_OK(log_wait(log.get(), 2));
    log.damage(0, 1);
    multi_stream_reading read = log.read();
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{1}), read.lsns());
}

// L8.
TEST(stream_test, a_frame_of_one_is_not_valid_in_another) {
    for (int again = 0; again < 300; ++again) { // what it looks like is chance
        multi_stream_log log(2, false, log_bytes_min(64, 2));
        log.append(0, 1);
        ASSERT_OK(log_wait(log.get(), 1));
        log.copy_ring(0, 1);
        multi_stream_reading read = log.read();
        ASSERT_OK(read.status);
        ASSERT_EQ((std::vector<uint64_t>{1}), read.lsns());
        ASSERT_EQ(2u, read.contents.frames);
    }
}

// A sink that is used again holds what an earlier log left, at the ring's front, too.
TEST(stream_test, frames_of_an_earlier_log_are_none_of_this_one) {
    memory_log memory(log_bytes_min(64, 1));
    for (uint64_t n = 1; n <= 300; ++n) {
        log_identity identity = test_identity;
        identity.log = n;
        ASSERT_OK(log_format(*memory.sink(), identity));
        reading read = read_log(*memory.sink(), {}, identity);
        ASSERT_OK(read.status);
        ASSERT_EQ(0u, read.contents.frames);
        log_options options{};
        options.sink = memory.sink();
        options.name = log_path;
        options.identity = identity;
        taiyen::log *l = nullptr;
        ASSERT_OK(log_start(options, &l));
        log_owner owner(l);
        ASSERT_OK(append(l, "one"));
        ASSERT_OK(log_wait(l, 1));
    }
}

TEST(stream_test, an_lsn_in_two_streams_is_damage) {
    multi_stream_log log(2);
    log.append(0, 1);
    log.append(0, 2);
    log.append(1, 2);
    ASSERT_OK(log_wait(log.get(), 2));
    EXPECT_EQ(TY_E_DAMAGED, log.read().status);
}

TEST(stream_test, lsns_may_lie_far_apart_in_a_stream) {
    multi_stream_log log(2);
    log.append(1, 1);
    for (uint64_t n = 2; n <= 40000; ++n)
        log.append(0, n);
    log.append(1, 40001, true);
    log.append(1, 40002);
    ASSERT_OK(log_wait(log.get(), 40002, 1));
    multi_stream_reading read = log.read();
    ASSERT_OK(read.status);
    ASSERT_EQ(40002u, read.records.size());
    EXPECT_EQ(record_of(40001), read.records[40000].bytes);
    EXPECT_TRUE(read.records[40000].independent);
}

TEST(stream_test, an_append_that_is_given_up_leaves_no_trace) {
    multi_stream_log log(2);
    uint8_t *place = nullptr;
    ASSERT_OK(log_append_begin(log.get(), 1, 100, &place));
    log_append_end(log.get(), 1, 0, 0);
    log.append(0, 1);
    ASSERT_OK(log_wait(log.get(), 1));
    EXPECT_EQ(1u, log_durable(log.get()));
}

TEST(stream_test, a_caller_that_does_not_wait_gets_busy_while_another_appends) {
    multi_stream_log log(2);
    uint8_t *place = nullptr, *other = nullptr;
    ASSERT_OK(log_append_begin(log.get(), 1, 100, &place));
    std::thread([&] {
        EXPECT_EQ(TY_E_BUSY, log_append_begin(log.get(), 1, 100, &other, log_turn::try_once));
        EXPECT_OK(log_append_begin(log.get(), 0, 100, &other, log_turn::try_once));
        log_append_end(log.get(), 0, 0, 0);
    }).join();
    log_append_end(log.get(), 1, 0, 0);
}

TEST(stream_test, a_full_one_does_not_fill_the_others) {
    multi_stream_log log(2);
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
    const log_metrics figures = log_get_metrics(log.get());
    EXPECT_EQ(2 * log_stream_metrics(log.get(), 0).used_bytes, figures.fullest_bytes);
    EXPECT_LT(figures.used_bytes, figures.fullest_bytes);
    log_release(log.get(), log_positions_now(log.get()));
    log.append(0, ++n);
    ASSERT_OK(log_wait(log.get(), n));
}

// Marks are taken one ring after the other, while others append: what is up to the LSN is not read again.
TEST(stream_test, what_a_snapshot_holds_after_its_redo_point_is_skipped) {
    multi_stream_log log(2);
    log.append(0, 1);
    log.append(1, 2);
    log_positions redo_points = log_positions_now(log.get());
    log.append(0, 3); // the snapshot holds these as well
    log.append(1, 4);
    redo_points.lsn = 4;
    log.append(1, 5);
    log.append(0, 6);
    ASSERT_OK(log_wait(log.get(), 6));
    log_release(log.get(), redo_points);
    multi_stream_reading read = log.read(redo_points);
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{5, 6}), read.lsns());
    EXPECT_EQ(6u, read.contents.end.lsn);
}

// A snapshot makes durable what it holds, wherever that lies.
TEST(stream_test, a_durable_snapshot_makes_all_up_to_its_stamp_durable) {
    multi_stream_log log(3);
    log.append(0, 1);
    log.append(1, 2);
    log_positions redo_points = log_positions_now(log.get());
    log.append(2, 3);
    redo_points.lsn = 3;
    log_release(log.get(), redo_points);
    EXPECT_EQ(3u, log_durable(log.get()));
    log.append(2, 4);
    EXPECT_EQ(3u, log_durable(log.get()));
    ASSERT_OK(log_wait(log.get(), 4));
    EXPECT_EQ(4u, log_durable(log.get()));
}

TEST(stream_test, a_snapshot_in_place_of_a_write_starts_generations_that_say_so) {
    multi_stream_log log(2);
    log.append(0, 1);
    log.append(1, 2);
    ASSERT_OK(log_wait(log.get(), 2));
    log_positions old = log_positions_now(log.get());
    log_positions redo_points = old;
    redo_points.lsn = 3; // that one the snapshot alone holds
    log_continue(log.get(), redo_points);
    EXPECT_EQ(3u, log_last(log.get()));
    EXPECT_EQ(3u, log_durable(log.get()));
    log.append(1, 4);
    log.append(0, 5);
    ASSERT_OK(log_wait(log.get(), 5));
    multi_stream_reading read = log.read(redo_points);
    ASSERT_OK(read.status);
    EXPECT_EQ((std::vector<uint64_t>{4, 5}), read.lsns());
    EXPECT_EQ(TY_E_DAMAGED, log.read(old).status);
}

TEST(stream_test, a_failed_write_breaks_all_and_a_snapshot_repairs_all) {
    multi_stream_log log(2);
    log.append(0, 1);
    log.append(1, 2);
    log.fail_writes(true);
    EXPECT_EQ(TY_E_IO, log_wait(log.get(), 2));
    EXPECT_TRUE(log_broken(log.get()));
    uint8_t *place = nullptr;
    for (uint32_t p : {0u, 1u})
        EXPECT_EQ(TY_E_IO, log_append_begin(log.get(), p, 10, &place));
    log.fail_writes(false);
    log_positions redo_points = log_positions_now(log.get());
    log_continue(log.get(), redo_points);
    log.append(1, 3);
    ASSERT_OK(log_wait(log.get(), 3, 1));
    EXPECT_EQ((std::vector<uint64_t>{3}), log.read(redo_points).lsns());
}

TEST(stream_test, a_log_too_small_is_refused_and_says_how_large) {
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

TEST(stream_test, a_place_in_a_log_of_other_streams_is_refused) {
    multi_stream_log log(2);
    EXPECT_EQ(TY_E_MISMATCH, log.read(log_positions{0, 3}).status);
}

// Each appends to whatever log stream it chooses and waits, for all or, independent, for its own; a snapshot is taken
// by the way. What is acknowledged is there after a power cut, in order.
void commit_from_threads(bool library_threads) {
    constexpr uint32_t streams = 3;
    constexpr int committers = 6, commits = 300;
    disk_owner disk(os::sim_create());
    ty_log_sink *sink = nullptr;
    ASSERT_OK(file_sink_create(log_path, uint64_t{16} << 20, *os::sim_storage(disk.get()), &sink));
    sink_owner owner(sink);
    ASSERT_OK(log_format(*sink, test_identity, {}, streams));
    log_options options{};
    options.sink = sink;
    options.name = log_path;
    options.identity = test_identity;
    options.start = options.end = options.tail = log_positions{0, streams};
    options.thread = library_threads;
    taiyen::log *l = nullptr;
    ASSERT_OK(log_start(options, &l));
    log_owner log(l);
    std::atomic<uint64_t> clock{0};
    std::atomic<int> lost{0};
    std::vector<std::thread> all;
    for (int t = 0; t < committers; ++t)
        all.emplace_back([&, t] {
            for (int i = 0; i < commits; ++i) {
                const auto stream = static_cast<uint32_t>(t + i) % streams;
                const bool independent = i % 5 == 0;
                uint8_t *place = nullptr;
                EXPECT_OK(log_append_begin(l, stream, 300, &place));
                const uint64_t lsn = clock.fetch_add(1) + 1;
                const std::string record = record_of(lsn, 30 + lsn % 200);
                memcpy(place, record.data(), record.size());
                log_append_end(l, stream, record.size(), lsn, independent);
                if (independent)
                    lost += log_wait_stream(l, stream, lsn) != TY_OK;
                else if (i % 3 == 0)
                    lost += log_wait(l, lsn, stream) != TY_OK || log_durable(l) < lsn;
            }
        });
    std::vector<uint64_t> stables;
    for (int i = 0; i < 200; ++i)
        stables.push_back(log_durable(l));
    log_positions redo_points = log_positions_now(l);
    redo_points.lsn = clock.load();
    for (std::thread &one : all)
        one.join();
    EXPECT_EQ(0, lost);
    EXPECT_TRUE(std::is_sorted(stables.begin(), stables.end()));
    ASSERT_OK(log_wait(l, clock));
    EXPECT_EQ(clock, log_durable(l));
    disk_owner after(os::sim_power_cut(disk.get(), UINT64_MAX, os::sim_cut::drop_all, 1));
    for (const log_positions &from : {log_positions{0, streams}, redo_points}) {
        multi_stream_reading read = read_streams(*open_log(after.get()), from);
        ASSERT_OK(read.status);
        ASSERT_EQ(clock - from.lsn, read.records.size());
        for (size_t i = 0; i < read.records.size(); ++i)
            ASSERT_EQ(record_of(from.lsn + i + 1, 30 + (from.lsn + i + 1) % 200), read.records[i].bytes);
    }
}

TEST(stream_test, many_committers) {
    commit_from_threads(false);
}

TEST(stream_test, many_committers_and_the_library_s_threads) {
    commit_from_threads(true);
}

// What the other log streams hold up to the LSN is written at the same time, not one after the other: each write
// waits until all have begun.
TEST(stream_test, streams_are_written_at_the_same_time) {
    constexpr uint32_t streams = 4;
    memory_log memory(uint64_t{8} << 20);
    ASSERT_OK(log_format(*memory.sink(), test_identity, {}, streams));
    watched_sink watched(memory.sink());
    std::atomic<unsigned> begun{0};
    watched.at_write = [&](unsigned) {
        for (begun += 1; begun < streams;)
            std::this_thread::yield();
        return TY_OK;
    };
    log_options options{};
    options.sink = &watched.table;
    options.name = log_path;
    options.identity = test_identity;
    options.start = options.end = options.tail = log_positions{0, streams};
    options.thread = true;
    taiyen::log *l = nullptr;
    ASSERT_OK(log_start(options, &l));
    log_owner log(l);
    for (uint32_t p = 0; p < streams; ++p)
        append_to(l, p, p + 1);
    ASSERT_OK(log_wait(l, streams));
}

// L5: a reader of a single ring counts from its redo point.
TEST(stream_test, a_redo_point_of_a_single_ring_says_the_lsn_at_its_place) {
    multi_stream_log log(1);
    std::atomic<bool> done{false};
    std::thread appender([&] {
        for (uint64_t n = 1; !done; ++n) {
            log.append(0, n);
            if (n % 100 == 0) {
                EXPECT_OK(log_wait(log.get(), n));
                log_release(log.get(), log_positions_now(log.get()));
            }
        }
    });
    for (uint64_t looks = 0; !HasFailure() && (looks < 20000 || log_last(log.get()) < 2000); ++looks) {
        const log_positions redo_points = log_positions_now(log.get());
        EXPECT_EQ(redo_points.at[0].lsn, redo_points.lsn);
    }
    done = true;
    appender.join();
}

// An append that is given up leaves a frame without records: nobody writes that, so nobody may wait for it.
TEST(stream_test, nobody_waits_for_a_frame_without_records) {
    memory_log memory(uint64_t{8} << 20);
    ASSERT_OK(log_format(*memory.sink(), test_identity, {}, 2));
    watched_sink watched(memory.sink());
    std::atomic<bool> holds{false}, begun{false}, goes_on{false};
    watched.at_write = [&](unsigned) {
        if (holds && !begun.exchange(true))
            while (!goes_on)
                std::this_thread::yield();
        return TY_OK;
    };
    log_options options{};
    options.sink = &watched.table;
    options.name = log_path;
    options.identity = test_identity;
    options.start = options.end = options.tail = log_positions{0, 2};
    taiyen::log *l = nullptr;
    ASSERT_OK(log_start(options, &l));
    log_owner log(l);
    append_to(l, 0, 1);
    ASSERT_OK(log_wait(l, 1, 0)); // the generation has begun
    holds = true;
    append_to(l, 0, 2);
    std::thread first([&] { EXPECT_OK(log_wait(l, 2, 0)); });
    while (!begun)
        std::this_thread::yield();
    uint8_t *place = nullptr;
    ASSERT_OK(log_append_begin(l, 0, 100, &place));
    log_append_end(l, 0, 0, 0);
    append_to(l, 1, 3);
    std::thread second([&] { EXPECT_OK(log_wait(l, 3, 1)); });
    for (bool waits = false; !waits; std::this_thread::yield()) {
        os::lock_guard guard(l->rings[0].lock);
        for (const slot &each : l->rings[0].slots)
            waits |= each.waited;
    }
    goes_on = true;
    first.join();
    second.join();
    EXPECT_EQ(3u, log_durable(l));
}

} // namespace
