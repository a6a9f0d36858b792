// Goal: what is appended is read back, in order; the ring is reused; each rule of log.hpp holds. Method: short scripts
// on a small log in memory or on a simulated disk.
#include "../support.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

TEST(ring_test, an_empty_log_holds_nothing) {
    memory_log in;
    reading read = read_log(*in.sink());
    EXPECT_OK(read.status);
    EXPECT_EQ(0u, read.contents.frames);
    EXPECT_EQ(0u, read.contents.end.lsn);
}

TEST(ring_test, what_is_appended_is_read_back) {
    for (bool thread : {false, true}) {
        memory_log in;
        log_owner l(start_log(in.sink(), {}, {}, {}, thread));
        std::vector<std::string> model;
        for (size_t size : {1, 2, 126, 127, 128, 129, 16383, 16384, 16385, 40, 60000})
            for (size_t slack : {0, 1, 300, 5000}) { // more room asked for than used, also across lengths of the length
                if (size + slack > log_record_max(l.get()))
                    continue;
                model.push_back(record_of(model.size(), size));
                uint64_t lsn = 0;
                ASSERT_OK(append(l.get(), model.back(), &lsn, slack));
                EXPECT_EQ(model.size(), lsn);
                if (model.size() % 7 == 0) {
                    ASSERT_OK(log_wait(l.get(), lsn));
                }
            }
        ASSERT_OK(log_wait(l.get(), log_last(l.get())));
        EXPECT_EQ(model.size(), log_durable(l.get()));
        reading read = read_log(*in.sink());
        EXPECT_OK(read.status);
        EXPECT_EQ(model, read.records);
        EXPECT_EQ(model.size(), read.contents.end.lsn);
    }
}

// Whatever a crash leaves: all of those that were appended together, or none.
TEST(ring_test, what_is_appended_together_stands_in_one_frame) {
    memory_log in;
    log_owner l(start_log(in.sink()));
    for (size_t size : {1, 100, 127, 128, 9000, 30000, 60000})
        for (size_t i = 0; i < 40; ++i) {
            const std::vector<std::string> pieces{record_of(1, size), record_of(2, 2), record_of(3, 1 + i * 100)};
            const log_piece all[3] = {
                {pieces[0].data(), size}, {pieces[1].data(), 2}, {pieces[2].data(), pieces[2].size()}};
            const log_positions from = log_positions_now(l.get());
            ASSERT_OK(log_append_together(l.get(), all, 3));
            ASSERT_EQ(from.lsn + 3, log_last(l.get()));
            ASSERT_OK(log_wait(l.get(), from.lsn + 3));
            reading read = read_log(*in.sink(), from);
            EXPECT_OK(read.status);
            EXPECT_EQ(pieces, read.records);
            EXPECT_LE(read.contents.frames, 2u); // one, and perhaps a generation's start or a wrap
            log_release(l.get(), log_positions_now(l.get()));
        }
    const std::string large = record_of(1, 2 * log_record_max(l.get()));
    const log_piece too_large[2] = {{large.data(), large.size()}, {large.data(), 1}};
    EXPECT_EQ(TY_E_SPACE, log_append_together(l.get(), too_large, 2));
    ASSERT_OK(append(l.get(), "it goes on"));
    ASSERT_OK(log_wait(l.get(), log_last(l.get())));
}

TEST(ring_test, an_append_may_be_given_up) {
    memory_log in;
    log_owner l(start_log(in.sink()));
    uint8_t *place = nullptr;
    ASSERT_OK(append(l.get(), "one"));
    ASSERT_OK(log_append_begin(l.get(), 100, &place));
    EXPECT_EQ(1u, log_append_end(l.get(), 0));
    ASSERT_OK(append(l.get(), "two"));
    ASSERT_OK(log_wait(l.get(), 2));
    EXPECT_EQ((std::vector<std::string>{"one", "two"}), read_log(*in.sink()).records);
}

TEST(ring_test, a_record_may_fill_half_the_buffer_and_no_more) {
    memory_log in;
    log_owner l(start_log(in.sink()));
    std::string largest = record_of(1, log_record_max(l.get()));
    ASSERT_OK(append(l.get(), largest));
    EXPECT_EQ(TY_E_SPACE, append(l.get(), largest + "x"));
    ASSERT_OK(append(l.get(), largest));
    ASSERT_OK(log_wait(l.get(), 2));
    EXPECT_EQ((std::vector<std::string>{largest, largest}), read_log(*in.sink()).records);
}

TEST(ring_test, nothing_is_written_before_the_first_append) {
    memory_log in;
    std::string before(in.data(), in.size());
    log_owner l(start_log(in.sink(), {}, {}, {}, true));
    l.reset();
    EXPECT_TRUE(before == std::string(in.data(), in.size()));
}

// L1. The ring refuses when it is full, and what is after the snapshot is still there; freed, it goes on.
TEST(ring_test, a_full_ring_refuses_until_a_snapshot_frees_it) {
    memory_log in;
    log_owner l(start_log(in.sink()));
    std::vector<std::string> model;
    log_positions start{};
    for (int wrap = 0; wrap < 5; ++wrap) {
        for (;;) {
            std::string record = record_of(model.size(), 1 + model.size() * 7919 % 30000);
            ty_status status = append(l.get(), record);
            if (status == TY_E_SPACE)
                break;
            ASSERT_OK(status);
            model.push_back(record);
            if (model.size() % 3 == 0) {
                ASSERT_OK(log_wait(l.get(), model.size()));
            }
        }
        ASSERT_OK(log_wait(l.get(), log_last(l.get())));
        log_metrics figures = log_get_metrics(l.get());
        EXPECT_LE(figures.used_bytes, figures.ring_bytes);
        EXPECT_GT(figures.used_bytes, figures.ring_bytes * 3 / 4);
        reading read = read_log(*in.sink(), start);
        ASSERT_OK(read.status);
        ASSERT_EQ(std::vector<std::string>(model.begin() + ptrdiff_t(start.lsn), model.end()), read.records);
        start = log_positions_now(l.get());
        log_release(l.get(), start);
    }
}

// L5. An older snapshot than the one that freed the space is refused, whatever was written since.
TEST(ring_test, a_reader_from_an_older_snapshot_is_refused) {
    memory_log in;
    log_owner l(start_log(in.sink()));
    uint64_t number = 0;
    log_positions old{};
    for (int wrap = 0; wrap < 6; ++wrap) {
        log_positions redo_point = log_positions_now(l.get());
        while (append(l.get(), record_of(number, 3000)) == TY_OK)
            ++number;
        ASSERT_OK(log_wait(l.get(), log_last(l.get())));
        EXPECT_OK(read_log(*in.sink(), redo_point).status);
        if (wrap > 0) {
            EXPECT_EQ(TY_E_DAMAGED, read_log(*in.sink(), old).status) << wrap;
        }
        old = redo_point;
        log_release(l.get(), log_positions_now(l.get()));
    }
}

// L5. A snapshot in place of a log write holds a transaction that the log does not.
TEST(ring_test, a_snapshot_in_place_of_a_write_is_not_missed) {
    memory_log in;
    log_owner l(start_log(in.sink()));
    ASSERT_OK(append(l.get(), "one"));
    ASSERT_OK(log_wait(l.get(), 1));
    log_positions redo_point = log_positions_now(l.get());
    redo_point.lsn += 1;
    log_continue(l.get(), redo_point);
    EXPECT_EQ(2u, log_durable(l.get()));
    EXPECT_OK(read_log(*in.sink(), redo_point).status);
    uint64_t lsn = 0;
    ASSERT_OK(append(l.get(), "three", &lsn));
    EXPECT_EQ(3u, lsn);
    ASSERT_OK(log_wait(l.get(), 3));
    EXPECT_EQ(std::vector<std::string>{"three"}, read_log(*in.sink(), redo_point).records);
    EXPECT_EQ(TY_E_DAMAGED, read_log(*in.sink()).status);
}

TEST(ring_test, a_generation_follows_another) {
    memory_log in;
    std::vector<std::string> model;
    for (int generation = 0; generation < 20; ++generation) {
        reading read = read_log(*in.sink());
        ASSERT_OK(read.status);
        ASSERT_EQ(model, read.records);
        log_owner l(start_after(in.sink(), {}, read));
        for (int i = 0; i < generation % 4; ++i) {
            model.push_back(record_of(model.size(), 500));
            ASSERT_OK(append(l.get(), model.back()));
            ASSERT_OK(log_wait(l.get(), model.size()));
        }
        ASSERT_OK(append(l.get(), "never waited for")); // and so lost
    }
}

} // namespace
