// Goal: over any history of appends, waits, snapshots and reopenings a log holds what a plain list holds, also with the
// library's thread and with many threads. Method: random operations; the list beside them.
#include "ring_guard.hpp"

#include <atomic>
#include <mutex>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

class model {
public:
    explicit model(uint64_t seed, bool thread)
        : random_(seed), thread_(thread), log_(start_log(guard_.sink(), {}, {}, {}, thread)) {}

    void step() {
        switch (random_() % 64) {
        case 0:
            reopen();
            break;
        case 1:
            redo_point_ = log_positions_now(log_.get());
            guard_.release(redo_point_);
            log_release(log_.get(), redo_point_);
            break;
        case 2:
            in_place(random_() % 2);
            break;
        default:
            if (random_() % 4 == 0)
                ASSERT_OK(log_wait(log_.get(), random_() % (records_.size() + 2)));
            else
                add();
        }
    }
    // A redo point that is released makes durable what the thread may still be writing: when one more record is
    // durable, nothing is under way any more, and the memory can be read.
    void check() {
        add();
        ASSERT_OK(log_wait(log_.get(), records_.size()));
        reading read = read_log(*in_.sink(), redo_point_);
        ASSERT_OK(read.status);
        ASSERT_EQ(expected(), read.records);
    }

private:
    std::vector<std::string> expected() const {
        return {records_.begin() + ptrdiff_t(redo_point_.lsn), records_.end()};
    }
    void add() {
        size_t size = 1 + random_() % (random_() % 50 ? 400 : log_record_max(log_.get()));
        std::string record = record_of(random_(), size);
        uint64_t lsn = 0;
        ty_status status = append(log_.get(), record, &lsn, random_() % 3 ? 0 : random_() % 300);
        if (status == TY_E_SPACE) {
            in_place(false);
            return;
        }
        ASSERT_OK(status);
        records_.push_back(record);
        ASSERT_EQ(records_.size(), lsn);
    }
    void in_place(bool holds_one) {
        redo_point_ = log_positions_now(log_.get());
        if (holds_one) {
            records_.push_back({});
            redo_point_.lsn += 1;
        }
        log_continue(log_.get(), redo_point_);
        guard_.release(redo_point_); // nothing is written before the next append
        guard_.go_on_from(redo_point_.at[0].offset);
        ASSERT_EQ(records_.size(), log_durable(log_.get()));
    }
    // Sometimes with what is not durable: it is lost, or a part of it.
    void reopen() {
        uint64_t durable = log_durable(log_.get());
        log_.reset();
        reading read = read_log(*in_.sink(), redo_point_);
        ASSERT_OK(read.status);
        ASSERT_GE(read.contents.end.lsn, durable);
        ASSERT_LE(read.contents.end.lsn, records_.size());
        records_.resize(read.contents.end.lsn);
        ASSERT_EQ(expected(), read.records);
        guard_.go_on_from(read.contents.end.at[0].offset);
        log_.reset(start_after(guard_.sink(), redo_point_, read, thread_));
    }

    std::mt19937_64 random_;
    bool thread_;
    memory_log in_;
    ring_guard guard_{in_.sink()};
    log_owner log_;
    std::vector<std::string> records_;
    log_positions redo_point_{};
};

TEST(model_test, random_histories) {
    for (bool thread : {false, true})
        for (uint64_t seed = 0; seed < 20; ++seed) {
            SCOPED_TRACE(testing::Message() << "seed " << seed << " thread " << thread);
            model m(seed, thread);
            for (int i = 0; i < 1500; ++i) {
                m.step();
                if (i % 100 == 99)
                    m.check();
                if (HasFatalFailure())
                    return;
            }
        }
}

// 16 committers, and snapshots by whoever finds the ring full; what is acknowledged is there.
void commit_by_many(bool thread) {
    constexpr int committers = 16, commits = 200;
    disk_owner disk(os::sim_create());
    sink_owner sink = create_log(disk.get());
    log_owner l(start_log(sink.get(), {}, {}, {}, thread));
    std::mutex gate; // as transactions have one
    std::vector<std::string> model;
    log_positions start{};
    std::atomic<int> lost{0};
    std::vector<std::thread> all;
    for (int t = 0; t < committers; ++t)
        all.emplace_back([&, t] {
            for (int i = 0; i < commits; ++i) {
                uint64_t lsn = 0;
                {
                    std::lock_guard guard(gate);
                    std::string record = record_of(model.size() + 100000u * unsigned(t), 30 + unsigned(i) % 300);
                    while (append(l.get(), record, &lsn) == TY_E_SPACE) {
                        start = log_positions_now(l.get());
                        i % 2 ? log_release(l.get(), start) : log_continue(l.get(), start);
                    }
                    model.push_back(record);
                }
                lost += log_wait(l.get(), lsn) != TY_OK || log_durable(l.get()) < lsn;
            }
        });
    for (std::thread &one : all)
        one.join();
    EXPECT_EQ(0, lost);
    disk_owner after(os::sim_power_cut(disk.get(), UINT64_MAX, os::sim_cut::drop_all, 1));
    reading read = read_log(*open_log(after.get()), start);
    EXPECT_OK(read.status);
    EXPECT_EQ((std::vector<std::string>(model.begin() + ptrdiff_t(start.lsn), model.end())), read.records);
}

TEST(model_test, many_committers) {
    commit_by_many(false);
}

TEST(model_test, many_committers_and_the_library_s_thread) {
    commit_by_many(true);
}

// What nobody waits for is written by the library's thread.
TEST(model_test, the_thread_writes_what_nobody_waits_for) {
    memory_log in;
    log_owner l(start_log(in.sink(), {}, {}, {}, true));
    for (uint64_t i = 1; i <= 50; ++i) {
        ASSERT_OK(append(l.get(), record_of(i, 100)));
        if (i % 10 == 0)
            while (log_durable(l.get()) < i)
                std::this_thread::yield();
    }
    EXPECT_EQ(50u, read_log(*in.sink()).records.size());
}

} // namespace
