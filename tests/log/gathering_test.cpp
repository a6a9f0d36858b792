// Goal: threads that share frames gather before one is written, a lone committer waits for no company, nobody waits for
// ever; and who waits gives that up where other programs keep the processors busy.
// Method: this program's own sched_yield and clock_gettime. A script says what happens in each turn that its thread
// gives to others, and how long the turn takes; so what other threads would do in it is done there, the same way each
// time.
#include "src/log/wait_word.hpp"
#include "support.hpp"

#include <atomic>
#include <ctime>
#include <functional>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

class script {
public:
    // in_turn: what happens in a turn; it gives how long that took.
    explicit script(std::function<uint64_t(unsigned turn)> in_turn) : in_turn_(std::move(in_turn)) { current = this; }
    script(const script &) = delete;
    script &operator=(const script &) = delete;
    ~script() { current = nullptr; }

    void take_turn() {
        current = nullptr; // what happens in it gives turns to nobody
        now_ns += in_turn_(turns++);
        current = this;
    }

    unsigned turns = 0;
    uint64_t now_ns = uint64_t{1} << 40;

    static thread_local script *current;

private:
    std::function<uint64_t(unsigned)> in_turn_;
};
thread_local script *script::current = nullptr;

} // namespace

extern "C" int sched_yield() noexcept {
    if (script::current) {
        script::current->take_turn();
        return 0;
    }
    return static_cast<int>(syscall(SYS_sched_yield));
}

extern "C" int clock_gettime(clockid_t clock, timespec *time) noexcept {
    constexpr uint64_t second = 1000000000;
    if (script *one = script::current) {
        *time = {static_cast<time_t>(one->now_ns / second), static_cast<long>(one->now_ns % second)};
        return 0;
    }
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr uint64_t short_turn_ns = 10000, long_turn_ns = 2000000;

// A sink that runs something at the begin of each write, in the thread that writes.
struct watched_sink {
    explicit watched_sink(const ty_log_sink *wrapped) : table(*wrapped), below(wrapped) {
        table.context = this;
        table.read = [](void *context, uint64_t offset, void *buffer, size_t bytes) {
            const ty_log_sink *over = static_cast<watched_sink *>(context)->below;
            return over->read(over->context, offset, buffer, bytes);
        };
        table.write = [](void *context, uint64_t offset, const void *buffer, size_t bytes) {
            auto &self = *static_cast<watched_sink *>(context);
            unsigned number = self.writes++;
            if (self.at_write)
                if (ty_status status = self.at_write(number))
                    return status;
            return self.below->write(self.below->context, offset, buffer, bytes);
        };
    }
    ty_log_sink table;
    const ty_log_sink *below;
    std::function<ty_status(unsigned number)> at_write;
    std::atomic<unsigned> writes{0};
};

class gathering_test : public testing::Test {
protected:
    memory_log memory;
    watched_sink sink{memory.sink()};
    log_owner log_{start_log(&sink.table)};
    std::vector<std::string> records; // that this thread or one that it waits for appended

    taiyen::log *get() { return log_.get(); }
    void append_one(size_t size = 40) {
        records.push_back(record_of(records.size(), size));
        ASSERT_OK(append(get(), records.back()));
    }
    ty_status commit() {
        append_one();
        return log_wait(get(), log_last(get()));
    }
    uint64_t frames() { return log_get_figures(get()).frames; }
    // As two committers leave it whose records one frame held.
    void share_a_frame() {
        append_one();
        ASSERT_OK(commit());
    }
    void check_content() {
        EXPECT_EQ(records.size(), log_stable(get()));
        EXPECT_EQ(records, read_log(*memory.sink()).records);
    }
};

TEST_F(gathering_test, a_lone_committer_waits_for_nobody) {
    ASSERT_OK(commit()); // and the session's start
    script alone([](unsigned) { return short_turn_ns; });
    for (uint64_t before = frames(), i = 1; i <= 100; ++i) {
        ASSERT_OK(commit());
        ASSERT_EQ(before + i, frames());
    }
    EXPECT_EQ(0u, alone.turns);
    check_content();
}

// One that is left alone by others waits a few turns once.
TEST_F(gathering_test, a_committer_that_is_left_alone_soon_knows) {
    share_a_frame();
    script left_alone([](unsigned) { return short_turn_ns; });
    for (int i = 0; i < 100; ++i)
        ASSERT_OK(commit());
    EXPECT_LE(left_alone.turns, 3u);
    check_content();
}

TEST_F(gathering_test, records_of_others_gather_before_the_frame_is_written) {
    share_a_frame();
    uint64_t before = frames();
    script others([this](unsigned turn) {
        if (turn < 10 && turn % 3 != 1) // some turns bring nothing
            append_one();
        return short_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_EQ(before + 1, frames());
    EXPECT_EQ(2u + 1 + 7, records.size());
    EXPECT_LE(others.turns, 13u);
    check_content();
}

// However many records come: the frame is written.
TEST_F(gathering_test, gathering_ends) {
    share_a_frame();
    script busy_others([this](unsigned) {
        append_one();
        return short_turn_ns;
    });
    for (unsigned i = 1; i <= 10; ++i) {
        unsigned before = busy_others.turns;
        ASSERT_OK(commit());
        EXPECT_GE(busy_others.turns - before, 16u);
        EXPECT_LE(busy_others.turns - before, 64u);
    }
    check_content();
}

// A frame that is full gathers nothing more.
TEST_F(gathering_test, a_full_frame_is_written_at_once) {
    share_a_frame();
    script filling([this](unsigned turn) {
        if (turn == 1)
            while (log_mark_now(get()).sequence < 2 + 1 + 3) // a mark seals what there is
                append_one(100);
        else if (turn > 1)
            append_one(100);
        return short_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_EQ(2u, filling.turns);
    ASSERT_OK(log_wait(get(), log_last(get())));
    check_content();
}

// In a turn somebody else writes the frame.
TEST_F(gathering_test, a_frame_may_be_written_by_another_meanwhile) {
    share_a_frame();
    uint64_t before = frames();
    script another([this](unsigned turn) {
        if (turn == 1)
            EXPECT_OK(log_wait(get(), log_last(get())));
        else
            append_one();
        return short_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_EQ(2u, another.turns);
    EXPECT_EQ(before + 1, frames());
    check_content();
}

// In a turn somebody else's write fails, and a snapshot may mend the log before who gathers is back.
TEST_F(gathering_test, the_log_may_break_meanwhile) {
    for (bool mended : {false, true}) {
        share_a_frame();
        sink.at_write = [](unsigned) { return TY_E_SPACE; };
        log_mark mark{};
        script failing([&](unsigned) {
            EXPECT_EQ(TY_E_SPACE, log_wait(get(), log_last(get())));
            mark = log_mark_now(get());
            if (mended)
                log_continue(get(), mark);
            return short_turn_ns;
        });
        EXPECT_EQ(mended ? TY_OK : TY_E_SPACE, commit());
        EXPECT_EQ(1u, failing.turns);
        sink.at_write = nullptr;
        log_continue(get(), mark);
    }
}

// Where a frame is under way, the next one gathers although the last one held one record.
TEST_F(gathering_test, what_is_appended_during_a_write_gathers) {
    ASSERT_OK(commit());
    std::thread second;
    unsigned turns = 0;
    sink.at_write = [&](unsigned number) {
        if (number != 2)
            return TY_OK;
        append_one(); // while the second record's write is under way
        second = std::thread([&, last = log_last(get())] {
            script others([this](unsigned turn) {
                if (turn < 4)
                    append_one();
                return short_turn_ns;
            });
            EXPECT_OK(log_wait(get(), last));
            turns = others.turns;
        });
        while (sink.writes.load() < 4) // the session's start, the first record, this one, and the other thread's
            std::this_thread::yield();
        return TY_OK;
    };
    uint64_t before = frames();
    ASSERT_EQ(2u, sink.writes.load());
    ASSERT_OK(commit());
    second.join();
    EXPECT_EQ(before + 2, frames());
    EXPECT_EQ(1u + 1 + 1 + 4, records.size());
    EXPECT_GE(turns, 4u);
    check_content();
}

// ---- Where other programs keep the processors busy

TEST_F(gathering_test, a_long_turn_ends_gathering) {
    share_a_frame();
    script busy([this](unsigned) {
        append_one();
        return long_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_EQ(1u, busy.turns);
    check_content();
}

TEST_F(gathering_test, long_turns_end_gathering_for_a_while) {
    auto one_turn = [this](uint64_t ns) {
        return [this, ns](unsigned) {
            append_one();
            return ns;
        };
    };
    share_a_frame();
    uint64_t now = 0;
    {
        script busy(one_turn(long_turn_ns));
        for (int i = 0; i < 1000; ++i) {
            append_one(); // so that each frame is shared
            ASSERT_OK(commit());
        }
        EXPECT_LE(busy.turns, 20u);
        EXPECT_GE(busy.turns, 2u);
        now = busy.now_ns;
    }
    script later(one_turn(short_turn_ns));
    later.now_ns = now;
    append_one();
    ASSERT_OK(commit());
    EXPECT_EQ(0u, later.turns);
    later.now_ns += 200000000;
    ASSERT_OK(commit());
    EXPECT_GT(later.turns, 1u);
    log_release(get(), log_mark_now(get()));
}

TEST(wait_word_test, who_waits_looks_a_few_turns_and_then_sleeps) {
    patience patience;
    wait_word word;
    std::atomic<uint32_t> looked_at{7};
    script others([&](unsigned turn) {
        if (turn == 5)
            looked_at = 8;
        return short_turn_ns;
    });
    EXPECT_TRUE(patience.sees_change(looked_at, 7));
    EXPECT_EQ(6u, others.turns);
    EXPECT_FALSE(patience.sees_change(looked_at, 8));
    EXPECT_LE(others.turns, 100u);
}

// Each change seen is credit: who wins by looking looks on, though a turn in hundreds is long.
TEST(wait_word_test, changes_seen_pay_for_long_turns) {
    for (bool seen : {true, false}) {
        patience patience;
        std::atomic<uint32_t> word{0};
        script others([&](unsigned turn) {
            if (turn % 200 == 199)
                return long_turn_ns;
            if (seen)
                ++word;
            return short_turn_ns;
        });
        unsigned asleep = 0;
        for (int i = 0; i < 20000; ++i) {
            unsigned before = others.turns;
            patience.sees_change(word, word);
            asleep += others.turns == before;
        }
        if (seen)
            EXPECT_EQ(0u, asleep);
        else
            EXPECT_GT(asleep, 0u);
    }
}

// ---- Threads

// Sixteen committers: all records get there, in fewer frames.
TEST(gathering_threads_test, committers_share_frames) {
    constexpr unsigned committers = 16, commits_each = 400;
    memory_log below(4 * small_log);
    ty_log_sink *made = nullptr;
    ASSERT_OK(memory_sink_create(below.data(), below.size(), false, 20000, &made));
    sink_owner sink(made);
    log_owner l(start_log(sink.get()));
    std::vector<std::thread> threads;
    std::atomic<unsigned> waiting{committers};
    for (unsigned t = 0; t < committers; ++t)
        threads.emplace_back([&, t] {
            for (--waiting; waiting != 0;)
                std::this_thread::yield();
            for (unsigned i = 0; i < commits_each; ++i) {
                uint64_t sequence = 0;
                ASSERT_OK(append(l.get(), record_of(t * commits_each + i), &sequence));
                ASSERT_OK(log_wait(l.get(), sequence));
                ASSERT_LE(sequence, log_stable(l.get()));
            }
        });
    for (std::thread &one : threads)
        one.join();
    reading read = read_log(*sink.get());
    EXPECT_EQ(size_t{committers} * commits_each, read.records.size());
    EXPECT_LT(log_get_figures(l.get()).frames, uint64_t{committers} * commits_each);
}

} // namespace
