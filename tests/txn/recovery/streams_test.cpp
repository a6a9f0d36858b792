// Goal: a heap whose log has several log streams is opened, recovered, read and closed as any other; a record that was
// left out after a missing one never comes back, and what is committed afterwards stays.
// Method: transactions by ty_begin, and records that a test appends to any log stream itself, as transactions of many
// threads do; power cuts at each event of the disk.
#include "stamped_heap.hpp"
#include "tests/effort.hpp"
#include "tests/files_on.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class streams_test : public testing::TestWithParam<uint32_t> {};

TEST_P(streams_test, lives_of_a_heap) {
    disk files;
    ledger book{4};
    ty_heap *heap = nullptr;
    ty_report report{};
    ty_open_options options = with_streams(files, GetParam());
    options.log_bytes = size_t{8} << 20;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(GetParam(), log_streams(runtime_of(heap)->log));
    for (int i = 0; i < 20; ++i)
        ASSERT_OK(book.run(heap));
    ASSERT_OK(ty_discard(heap));
    options.log_streams = 0; // as it has
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(20u, report.replayed_transactions);
    EXPECT_EQ(20u, report.lsn);
    book.check(heap, 20);
    book.forget_others(heap);
    ASSERT_OK(book.run(heap));
    ASSERT_OK(ty_rebuild(&heap, &options, &report));
    EXPECT_EQ(21u, report.lsn);
    ASSERT_OK(ty_close(heap));
    options.mode = TY_OPEN_READ_ONLY;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    book.check(heap, 21);
    ASSERT_OK(ty_close(heap));
    options.mode = TY_OPEN_OR_CREATE;
    options.kind = TY_SNAPSHOT;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.log_detached);
    ASSERT_OK(ty_close(heap));
    options.kind = TY_TRANSACTIONAL;
    options.log_streams = GetParam();
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.log_attached);
    EXPECT_EQ(GetParam(), log_streams(runtime_of(heap)->log));
    book.forget_others(heap);
    ASSERT_OK(book.run(heap));
    ASSERT_OK(ty_discard(heap));
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    book.check(heap, 22);
    ASSERT_OK(ty_close(heap));
}

INSTANTIATE_TEST_SUITE_P(counts, streams_test, testing::Values(2u, 3u, 8u));

TEST(streams, their_number_changes_when_the_heap_was_closed_in_order) {
    disk files;
    ledger book{4};
    ty_heap *heap = nullptr;
    ty_report report{};
    ty_open_options options = with_streams(files, 1);
    for (uint32_t streams : {1u, 4u, 2u, 1u}) {
        options.log_streams = streams;
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        EXPECT_EQ(streams, log_streams(runtime_of(heap)->log));
        EXPECT_EQ(!report.created,
                  std::string(report.text).find("made anew with other log streams") != std::string::npos)
            << report.text;
        book.forget_others(heap);
        const uint64_t count = ledger::count(heap);
        ASSERT_OK(book.run(heap));
        ASSERT_OK(ty_discard(heap));
        options.log_streams = streams % 4 + 1;
        EXPECT_EQ(TY_E_UNSUPPORTED, ty_open(heap_path, &options, &heap, &report));
        EXPECT_NE(std::string::npos, std::string(ty_error_text()).find("close it first")) << ty_error_text();
        options.log_streams = 0;
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        book.check(heap, count + 1);
        EXPECT_EQ(count + 1, report.lsn) << "transactions keep their numbers";
        ASSERT_OK(ty_close(heap));
        EXPECT_EQ(size_t{3} << 20, files.read_file(log_path).size());
    }
}

TEST(streams, a_log_too_small_for_them_is_refused) {
    disk files;
    ty_heap *heap = nullptr;
    ty_open_options options = with_streams(files, 8);
    EXPECT_EQ(TY_E_ARGUMENT, ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_NE(std::string::npos, std::string(ty_error_text()).find(std::to_string(log_bytes_min(4096, 8))));
    options.log_streams = 9;
    EXPECT_EQ(TY_E_ARGUMENT, ty_open(heap_path, &options, &heap, nullptr));
    options.log_streams = 1;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_close(heap));
    const std::string before = files.read_file(log_path);
    options.log_bytes = 0;
    options.log_streams = 8;
    EXPECT_EQ(TY_E_ARGUMENT, ty_open(heap_path, &options, &heap, nullptr)) << "it keeps its size";
    EXPECT_TRUE(before == files.read_file(log_path));
}

// X21. The power failed while one of three commits had not been written: one that vouched for itself is there, one that
// did not is left out. Neither is in doubt any more when the open returns.
TEST(streams, what_was_left_out_does_not_come_back) {
    stamped_heap h(2);
    h.store(0, 1, 11);
    ASSERT_OK(log_wait(h.log(), h.clock));
    h.store(1, 2, 22); // is never written
    h.store(0, 3, 33);
    const uint64_t independent = h.store(0, 4, 44, true);
    ASSERT_OK(log_wait_stream(h.log(), 0, independent));
    for (int round = 0; round < 2; ++round) {
        h.crash();
        EXPECT_EQ(11u, h.block[1]);
        EXPECT_EQ(0u, h.block[2]);
        EXPECT_EQ(0u, h.block[3]);
        EXPECT_EQ(44u, h.block[4]);
        EXPECT_EQ(round == 0, std::string(h.report.text).find("1 not acknowledged left out") != std::string::npos)
            << h.report.text;
        EXPECT_LT(independent - 1, h.clock);
    }
    const uint64_t next = h.store(1, 5, 55);
    EXPECT_EQ(independent + 1, next);
    ASSERT_OK(log_wait(h.log(), next));
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(h.heap, nullptr, &txn));
    ASSERT_OK(ty_declare(txn, h.block + 6, 8));
    h.block[6] = 66;
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(0u, h.block[3]) << "a later recovery brought it back";
    EXPECT_EQ(55u, h.block[5]);
    EXPECT_EQ(66u, h.block[6]);
}

// An independent record alone, checkpointed after a gap: what comes after it must not be after the gap as well.
TEST(streams, commits_after_a_gap_with_an_independent_record_are_there) {
    stamped_heap h(2);
    h.store(1, 1, 11); // is never written
    const uint64_t independent = h.store(0, 2, 22, true);
    ASSERT_OK(log_wait_stream(h.log(), 0, independent));
    h.crash();
    const uint64_t next = h.store(1, 3, 33);
    ASSERT_OK(log_wait(h.log(), next));
    h.crash();
    EXPECT_EQ(0u, h.block[1]);
    EXPECT_EQ(22u, h.block[2]);
    EXPECT_EQ(33u, h.block[3]);
}

// An open makes durable what it believed, in all log streams: an independent commit waits for its own alone, and may
// rest on what is in another one.
TEST(streams, what_an_open_believed_is_durable_when_it_returns) {
    stamped_heap h(2);
    h.store(1, 1, 11);
    ASSERT_OK(log_wait(h.log(), h.clock));
    h.crash(); // the last frame is not known to be durable
    EXPECT_EQ(h.clock, log_durable(h.log()));
    EXPECT_EQ(11u, h.block[1]);
}

// A lost frame of a log stream that has been still for long: everything after it would be left out.
TEST(streams, bit_rot_in_one_is_damage) {
    stamped_heap h(2);
    h.store(1, 1, 11);
    ASSERT_OK(log_wait(h.log(), h.clock));
    for (int i = 2; i < 10; ++i) {
        h.store(0, uint64_t(i), 1);
        ASSERT_OK(log_wait(h.log(), h.clock));
    }
    ASSERT_OK(ty_discard(h.heap));
    h.heap = nullptr;
    log_header header{};
    std::string bytes = h.files.read_file(log_path);
    memcpy(&header, bytes.data(), sizeof header);
    const ring_geometry ring = geometry_of(header, 1);
    h.files.flip(log_path, ring.offset + 4096 + 30);
    ty_open_options options = with_streams(h.files, 0);
    EXPECT_EQ(TY_E_DAMAGED, ty_open(heap_path, &options, &h.heap, nullptr));
    h.files.flip(log_path, ring.offset + 4096 + 30);
    h.open();
    EXPECT_EQ(11u, h.block[1]);
}

// Records of all log streams, by each way of replaying: kept, read again, in stages, with threads and without.
TEST(streams, are_replayed_in_order_in_every_way) {
    for (bool stages : {false, true})
        for (ty_background background : {TY_BACKGROUND_CALLS, TY_BACKGROUND_THREAD}) {
            SCOPED_TRACE(testing::Message() << "stages " << stages << " background " << background);
            stamped_heap h(3);
            std::vector<uint64_t> expected(words);
            std::mt19937_64 random(3);
            for (uint64_t n = 1; n <= 20000; ++n) {
                const uint64_t word = random() % words;
                expected[word] = n;
                h.store(static_cast<uint32_t>(random() % 3), word, n);
            }
            ASSERT_OK(log_wait(h.log(), h.clock));
            h.memory_bytes = stages ? 32 << 10 : 0; // the log writes to 64 pages
            h.background = background;
            for (int round = 0; round < 3; ++round) { // a stage's snapshot lies amid frames of all log streams
                h.crash();
                EXPECT_EQ(0, memcmp(expected.data(), h.block, words * 8)) << round;
                EXPECT_EQ(round == 0 || !stages, h.report.replayed_transactions == 20000) << round;
                expect_sound(h.heap);
            }
        }
}

// Threads that append to log streams of their own, snapshots by the transaction layer meanwhile under the reader-writer
// lock.
TEST(streams, a_snapshot_in_place_of_a_write_has_marks_in_all) {
    stamped_heap h(3);
    std::vector<uint64_t> expected(words);
    for (uint64_t n = 0; n < 300; ++n) {
        if (n % 50 == 49) {
            ASSERT_OK(ty_snapshot(h.heap));
        }
        h.store(static_cast<uint32_t>(n % 3), n, n + 1);
        expected[n] = n + 1;
    }
    os::sim_set_fault(h.files.get(), {os::sim_op_write_durable, 0, false, TY_E_IO});
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(h.heap, nullptr, &txn));
    ASSERT_OK(ty_declare(txn, h.block + 400, 8));
    h.block[400] = expected[400] = 1;
    ASSERT_OK(ty_commit(txn)) << "a snapshot repairs it";
    h.clock = log_last(h.log());
    h.store(2, 401, 2);
    expected[401] = 2;
    ASSERT_OK(log_wait(h.log(), h.clock));
    h.crash();
    EXPECT_EQ(0, memcmp(expected.data(), h.block, words * 8));
}

TEST(streams, the_log_reports_which_stream_a_transaction_is_in) {
    stamped_heap h(2);
    h.store(0, 1, 1);
    h.store(1, 2, 2, true);
    h.store(1, 3, 3);
    ASSERT_OK(log_wait(h.log(), h.clock));
    h.store(0, 4, 4); // is never written
    h.store(1, 5, 5);
    ASSERT_OK(log_wait_stream(h.log(), 1, h.clock));
    ASSERT_OK(ty_discard(h.heap));
    h.heap = nullptr;
    std::vector<std::string> reported;
    ty_log_info info{};
    info.struct_size = sizeof info;
    ASSERT_OK(ty_log_read(
        heap_path, files_on(h.files.storage()), &info,
        [](const ty_log_entry *entry, void *context) {
            if (entry->kind == TY_LOG_TRANSACTION)
                static_cast<std::vector<std::string> *>(context)->push_back(std::to_string(entry->stream) +
                                                                            (entry->independent ? "!" : ""));
            return true;
        },
        &reported));
    EXPECT_EQ((std::vector<std::string>{"0", "1!", "1"}), reported);
    EXPECT_EQ(2u, info.streams);
    EXPECT_EQ(3u, info.transactions);
    EXPECT_EQ(1u, info.left_out);
    EXPECT_EQ(1u, info.in_stream[0].transactions);
    EXPECT_EQ(2u, info.in_stream[1].transactions);
    EXPECT_LT(info.in_stream[1].start_position, info.in_stream[1].end_position);
    EXPECT_EQ(info.record_bytes, info.in_stream[0].record_bytes + info.in_stream[1].record_bytes);
}

// The power fails at each event of a life with commits in all log streams, snapshots, and opens.
TEST(streams, power_cuts) {
    stamped_heap h(3);
    struct moment {
        uint64_t event;
        uint64_t acknowledged; // of the words, by their order
    };
    std::vector<moment> moments;
    uint64_t n = 0;
    const auto note = [&] { moments.push_back({os::sim_event_count(h.files.get()), n}); };
    note();
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 12; ++i) {
            h.store(static_cast<uint32_t>(n % 3), n, n + 1);
            ++n;
            if (i % 4 == 3) {
                ASSERT_OK(log_wait(h.log(), h.clock, static_cast<uint32_t>(n % 3)));
                note();
            }
        }
        if (round == 1) {
            ASSERT_OK(ty_snapshot(h.heap));
            note();
        }
        ASSERT_OK(log_wait(h.log(), h.clock));
        note();
        h.crash();
    }
    ASSERT_OK(ty_discard(h.heap));
    h.heap = nullptr;
    for (uint64_t event = moments[0].event; event <= os::sim_event_count(h.files.get()); event += stride(3))
        for (os::sim_cut how :
             {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::trash}) {
            SCOPED_TRACE(testing::Message() << "event " << event << " cut " << int(how));
            uint64_t least = 0;
            for (const moment &m : moments)
                least = m.event <= event ? m.acknowledged : least;
            disk copy(os::sim_power_cut(h.files.get(), event, how, event * 31 + 7));
            for (int round = 0; round < 2; ++round) {
                ty_open_options options = with_streams(copy, 0);
                ty_heap *heap = nullptr;
                ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
                auto *block = static_cast<uint64_t *>(ty_root(heap, "words"));
                uint64_t there = 0;
                while (block[there] == there + 1)
                    ++there;
                EXPECT_GE(there, least) << "acknowledged transactions are gone";
                for (uint64_t i = there; i < n; ++i)
                    ASSERT_EQ(0u, block[i]) << i << " without what is before it";
                ASSERT_OK(ty_discard(heap));
            }
        }
}

} // namespace
