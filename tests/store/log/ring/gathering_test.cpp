// Goal: threads that share frames gather before one is written, a lone committer waits for no company, nobody waits for
// ever; and who waits gives that up where other programs keep the processors busy.
// Method: this program's own sched_yield and clock_gettime. A script says what happens in each turn that its thread
// gives to others, and how long the turn takes; so what other threads would do in it is done there, the same way each
// time.
#include "../support.hpp"
#include "src/store/log/ring/wait_word.hpp"

#include <atomic>
#include <ctime>
#include <functional>
#include <list>
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

class gathering_test : public testing::Test {
protected:
    memory_log memory;
    watched_sink sink{memory.sink()};
    log_owner log_{start_log(&sink.table)};
    std::vector<std::string> records;

    taiyen::log *get() { return log_.get(); }
    void append_one(size_t size = 40) {
        records.push_back(record_of(records.size(), size));
        ASSERT_OK(append(get(), records.back()));
    }
    ty_status commit() {
        append_one();
        return log_wait(get(), log_last(get()));
    }
    ty_status commit_and_meanwhile(std::function<void()> at_write) {
        std::atomic<bool> first = true;
        sink.at_write = [&](unsigned) {
            if (first.exchange(false))
                at_write();
            return TY_OK;
        };
        ty_status status = commit();
        sink.at_write = nullptr;
        return status;
    }
    uint64_t frames() { return log_get_metrics(get()).frames; }

    // A committer in a thread of its own. It is there when it has written its record, or takes its first turn; it comes
    // back from that when it ends here.
    class companion {
    public:
        explicit companion(gathering_test *test, ty_status expected = TY_OK) {
            test->append_one();
            thread_ = std::thread([this, expected, log = test->get(), last = log_last(test->get())] {
                script turns([this](unsigned) {
                    be_there();
                    ends_.wait(false);
                    return short_turn_ns;
                });
                turns.now_ns <<= 10; // later than whatever the test's own thread notes
                EXPECT_EQ(expected, log_wait(log, last));
                be_there();
            });
            there_.wait(false);
        }
        companion(const companion &) = delete;
        companion &operator=(const companion &) = delete;
        ~companion() {
            ends_ = true;
            ends_.notify_all();
            thread_.join();
        }

    private:
        void be_there() {
            there_ = true;
            there_.notify_all();
        }
        std::atomic<bool> there_{false}, ends_{false};
        std::thread thread_;
    };

    // As committers leave it whose records one frame held: this thread and so many others.
    void share_a_frame(unsigned others) {
        std::list<companion> companions;
        ASSERT_OK(commit()); // and the generation's start, if there is none
        ASSERT_OK(commit_and_meanwhile([&] {
            for (unsigned i = 0; i < others; ++i)
                companions.emplace_back(this);
        }));
        uint64_t before = frames();
        ASSERT_OK(commit());
        ASSERT_EQ(before + 1, frames());
        ASSERT_EQ(records.size(), log_durable(get()));
    }
    void check_content() {
        EXPECT_EQ(records.size(), log_durable(get()));
        EXPECT_EQ(records, read_log(*memory.sink()).records);
    }
};

TEST_F(gathering_test, a_lone_committer_waits_for_nobody) {
    ASSERT_OK(commit()); // and the generation's start
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
    share_a_frame(3);
    script left_alone([](unsigned) { return short_turn_ns; });
    for (int i = 0; i < 100; ++i)
        ASSERT_OK(commit());
    EXPECT_LE(left_alone.turns, 3u);
    EXPECT_GE(left_alone.turns, 1u);
    check_content();
}

TEST_F(gathering_test, committers_that_come_back_gather_before_the_frame_is_written) {
    share_a_frame(6);
    uint64_t before = frames();
    size_t records_before = records.size();
    std::list<companion> companions;
    script others([&](unsigned turn) {
        if (turn % 3 != 1) // some turns bring nobody
            companions.emplace_back(this);
        return short_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_EQ(before + 1, frames());
    EXPECT_EQ(records_before + 1 + 6, records.size());
    EXPECT_EQ(9u, others.turns) << "all are back, and nobody else is waited for";
    companions.clear();
    check_content();
}

// However many records come whose committers do not: the frame is written.
TEST_F(gathering_test, gathering_ends) {
    share_a_frame(3);
    script busy_others([this](unsigned) {
        append_one();
        return short_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_LE(busy_others.turns, 3u);
    ASSERT_OK(log_wait(get(), log_last(get())));
    check_content();
}

// A frame that is full gathers nothing more.
TEST_F(gathering_test, a_full_frame_is_written_at_once) {
    share_a_frame(3);
    script filling([this](unsigned turn) {
        if (turn == 1)
            log_positions_now(get()); // seals what there is
        append_one(100);
        return short_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_EQ(2u, filling.turns);
    ASSERT_OK(log_wait(get(), log_last(get())));
    check_content();
}

// In a turn the last one who is waited for comes back, and writes the frame.
TEST_F(gathering_test, a_frame_may_be_written_by_another_meanwhile) {
    share_a_frame(1);
    uint64_t before = frames();
    script another([this](unsigned turn) {
        if (turn == 1)
            companion(this);
        return short_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_EQ(2u, another.turns);
    EXPECT_EQ(before + 1, frames());
    check_content();
}

// In a turn somebody else's write fails, and a snapshot may repair the log before who gathers is back.
TEST_F(gathering_test, the_log_may_break_meanwhile) {
    for (bool repaired : {false, true}) {
        share_a_frame(1);
        sink.at_write = [](unsigned) { return TY_E_SPACE; };
        log_positions redo_point{};
        script failing([&](unsigned) {
            companion(this, TY_E_SPACE);
            redo_point = log_positions_now(get());
            if (repaired)
                log_continue(get(), redo_point);
            return short_turn_ns;
        });
        EXPECT_EQ(repaired ? TY_OK : TY_E_SPACE, commit());
        EXPECT_EQ(1u, failing.turns);
        sink.at_write = nullptr;
        log_continue(get(), redo_point);
    }
}

TEST_F(gathering_test, what_is_appended_during_a_write_gathers) {
    ASSERT_OK(commit());
    std::list<companion> companions;
    uint64_t before = frames();
    ASSERT_OK(commit_and_meanwhile([&] {
        unsigned writes = sink.writes;
        for (int i = 0; i < 5; ++i)
            companions.emplace_back(this);
        EXPECT_EQ(writes, sink.writes.load()) << "a frame with room for more is not written beside another";
    }));
    EXPECT_EQ(before + 1, frames());
    companions.clear();
    EXPECT_EQ(before + 2, frames());
    check_content();
}

TEST_F(gathering_test, a_frame_without_room_is_written_beside_another) {
    ASSERT_OK(commit());
    std::list<companion> companions;
    ASSERT_OK(commit_and_meanwhile([&] {
        unsigned writes = sink.writes;
        append_one();
        log_positions_now(get()); // seals it
        companions.emplace_back(this);
        EXPECT_EQ(writes + 1, sink.writes.load());
    }));
    companions.clear();
    check_content();
}

// ---- Where other programs keep the processors busy

TEST_F(gathering_test, a_long_turn_ends_gathering) {
    share_a_frame(3);
    script busy([this](unsigned turn) {
        if (turn == 0)
            companion back(this);
        return long_turn_ns;
    });
    ASSERT_OK(commit());
    EXPECT_EQ(1u, busy.turns);
    check_content();
}

TEST_F(gathering_test, long_turns_end_gathering_for_a_while) {
    unsigned turns = 0;
    uint64_t now = uint64_t{1} << 40;
    auto commit_with_turns_of = [&](uint64_t turn_ns) {
        share_a_frame(1);
        script others([&](unsigned) { return turn_ns; });
        others.now_ns = now;
        ASSERT_OK(commit());
        now = others.now_ns;
        turns = others.turns;
    };
    unsigned commits = 0;
    do
        commit_with_turns_of(long_turn_ns);
    while (turns != 0 && ++commits < 100);
    EXPECT_LE(commits, 20u);
    EXPECT_GE(commits, 2u);
    commit_with_turns_of(short_turn_ns);
    EXPECT_EQ(0u, turns);
    now += 200000000;
    commit_with_turns_of(short_turn_ns);
    EXPECT_GT(turns, 1u);
}

TEST(wait_word_test, who_waits_looks_a_few_turns_and_then_sleeps) {
    spin_budget budget;
    wait_word word;
    std::atomic<uint32_t> looked_at{7};
    script others([&](unsigned turn) {
        if (turn == 5)
            looked_at = 8;
        return short_turn_ns;
    });
    EXPECT_TRUE(budget.sees_change(looked_at, 7));
    EXPECT_EQ(6u, others.turns);
    EXPECT_FALSE(budget.sees_change(looked_at, 8));
    EXPECT_LE(others.turns, 100u);
}

// Each change seen is credit: who wins by looking looks on, though a turn in hundreds is long.
TEST(wait_word_test, changes_seen_pay_for_long_turns) {
    for (bool seen : {true, false}) {
        spin_budget budget;
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
            budget.sees_change(word, word);
            asleep += others.turns == before;
        }
        if (seen)
            EXPECT_EQ(0u, asleep);
        else
            EXPECT_GT(asleep, 0u);
    }
}

// Many threads wait through one turn of a program that keeps the processor busy.
TEST(wait_word_test, a_long_turn_is_paid_for_once) {
    spin_budget budget;
    std::atomic<uint32_t> word{0};
    script one_of_many([&](unsigned) {
        for (int i = 0; i < 100; ++i) {
            script another([](unsigned) { return long_turn_ns; });
            EXPECT_FALSE(budget.sees_change(word, 0));
        }
        return long_turn_ns;
    });
    EXPECT_FALSE(budget.sees_change(word, 0));
    unsigned before = one_of_many.turns;
    EXPECT_FALSE(budget.sees_change(word, 0));
    EXPECT_LT(before, one_of_many.turns);
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
                uint64_t lsn = 0;
                ASSERT_OK(append(l.get(), record_of(t * commits_each + i), &lsn));
                ASSERT_OK(log_wait(l.get(), lsn));
                ASSERT_LE(lsn, log_durable(l.get()));
            }
        });
    for (std::thread &one : threads)
        one.join();
    reading read = read_log(*sink.get());
    EXPECT_EQ(size_t{committers} * commits_each, read.records.size());
    EXPECT_LT(log_get_metrics(l.get()).frames, uint64_t{committers} * commits_each);
}

} // namespace
