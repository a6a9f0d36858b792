// Goal: readers of a log that threads write, wait for and release find all that was acknowledged, whole and in order,
// and nothing damaged; what they read is in a copy of what they say (L12 to L15). Method: a small ring, or several,
// that the writers go round many times; readers that go on where they ended, or at the newest snapshot where they are
// the caller says; and one that copies.
#include "in_use.hpp"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr unsigned writers = 3;

class busy_log {
public:
    busy_log(uint32_t streams, bool thread)
        : memory_(streams * (uint64_t{1} << 20), streams),
          log_(start_log_beside(memory_, thread)), newest_{0, streams} {}

    void run(uint64_t each) {
        std::vector<std::thread> all;
        for (unsigned t = 0; t < writers; ++t)
            all.emplace_back([this, t, each] { write(t, each); });
        std::thread snapshots([this] {
            for (uint64_t seen = 0; !ended_; seen = log_last(log_.get())) {
                while (!ended_ && log_last(log_.get()) < seen + 300)
                    std::this_thread::yield();
                snapshot_beside();
            }
        });
        std::thread readers[] = {std::thread([this] { follow(); }), std::thread([this] { follow(); }),
                                 std::thread([this] { copy(); })};
        for (std::thread &one : all)
            one.join();
        ended_ = true;
        snapshots.join();
        for (std::thread &one : readers)
            one.join();
    }

private:
    static std::string text_of(uint64_t lsn) { return record_of(lsn, lsn % 50 ? 20 + lsn % 7 * 90 : 30000); }

    // Who commits an independent record waits for its own ring alone.
    void write(unsigned self, uint64_t count) {
        std::mt19937_64 random(self);
        for (uint64_t i = 0; i < count; ++i) {
            const auto stream = static_cast<uint32_t>(random() % memory_.streams());
            const bool independent = memory_.streams() > 1 && random() % 8 == 0;
            uint64_t lsn = 0;
            for (ty_status status; (status = append(stream, independent, &lsn));) {
                ASSERT_EQ(TY_E_SPACE, status);
                random() % 2 ? snapshot_beside() : snapshot_in_place();
            }
            if (random() % 3 == 0) {
                ASSERT_OK(log_wait(log_.get(), lsn, stream));
                uint64_t known = acknowledged_;
                while (known < lsn && !acknowledged_.compare_exchange_weak(known, lsn))
                    ;
            } else if (independent) {
                ASSERT_OK(log_wait_stream(log_.get(), stream, lsn));
                independent_[self] = lsn;
            }
        }
    }
    ty_status append(uint32_t stream, bool independent, uint64_t *lsn) {
        std::shared_lock gate(gate_);
        uint8_t *place = nullptr;
        if (ty_status status = log_append_begin(log_.get(), stream, 30000, &place))
            return status;
        *lsn = ++counter_;
        const std::string text = text_of(*lsn);
        memcpy(place, text.data(), text.size());
        log_append_end(log_.get(), stream, text.size(), *lsn, independent);
        return TY_OK;
    }

    // Durable before the log is notified; and before that the log is durable up to it (I19).
    void snapshot_beside() {
        std::lock_guard one_at_a_time(snapshots_);
        log_positions redo_points = log_positions_now(log_.get());
        ASSERT_OK(log_wait(log_.get(), redo_points.lsn));
        publish(redo_points);
        log_release(log_.get(), redo_points);
    }
    void snapshot_in_place() {
        std::lock_guard one_at_a_time(snapshots_);
        std::unique_lock gate(gate_);
        const log_positions redo_points = log_positions_now(log_.get());
        publish(redo_points);
        log_continue(log_.get(), redo_points);
    }
    void publish(const log_positions &redo_points) {
        std::lock_guard guard(newest_lock_);
        newest_ = redo_points;
    }
    log_positions newest() {
        std::lock_guard guard(newest_lock_);
        return newest_;
    }
    static bool is_behind(const log_positions &redo_points, const log_positions &place) {
        bool after = redo_points.lsn > place.lsn;
        for (uint32_t p = 0; p < redo_points.count; ++p)
            after |= redo_points.at[p].offset > place.at[p].offset;
        return after;
    }

    // What was acknowledged before a reading began is read.
    struct promise {
        uint64_t all;
        uint64_t independent[writers];
    };
    promise promised() const {
        promise now{acknowledged_, {}};
        for (unsigned t = 0; t < writers; ++t)
            now.independent[t] = independent_[t];
        return now;
    }
    static bool keeps(const live_reading &read, const promise &made) {
        bool kept = read.contents.end.lsn >= made.all;
        for (uint64_t lsn : made.independent)
            kept &=
                lsn <= read.contents.end.lsn || std::any_of(read.records.begin(), read.records.end(),
                                                            [&](const reported_record &one) { return one.lsn == lsn; });
        return kept;
    }
    static void expect_in_order(const live_reading &read, uint64_t reported) {
        for (const reported_record &one : read.records) {
            ASSERT_EQ(text_of(one.lsn), one.bytes);
            ASSERT_TRUE(one.lsn == reported + 1 || (one.independent && one.lsn > reported));
            reported = one.lsn == reported + 1 && reported < read.contents.end.lsn ? one.lsn : reported;
        }
        ASSERT_EQ(read.contents.end.lsn, reported);
    }

    void follow() {
        log_positions place = newest();
        for (bool last = false; !last;) {
            last = ended_;
            const promise made = promised();
            const live_reading read = read_beside(memory_.sink(), place);
            ASSERT_NO_FATAL_FAILURE(expect_in_order(read, place.lsn));
            if (read.status == TY_OK)
                place = read.contents.next;
            if (read.status == TY_OK && keeps(read, made))
                continue;
            ASSERT_TRUE(read.status == TY_OK || read.status == TY_E_BUSY || read.status == TY_E_DAMAGED);
            const log_positions begin = newest();
            ASSERT_TRUE(is_behind(begin, place)) << (read.status ? ty_error_text() : "an acknowledged one is missing");
            place = begin;
            last = false;
        }
    }
    void copy() {
        while (!ended_) {
            std::lock_guard nothing_is_released(snapshots_);
            const log_positions from = newest();
            const promise made = promised();
            const live_reading read = read_beside(memory_.sink(), from);
            ASSERT_OK(read.status);
            ASSERT_TRUE(keeps(read, made));
            expect_in_copy(memory_, from, read);
        }
    }

    shared_memory memory_;
    log_owner log_;
    std::shared_mutex gate_;
    std::mutex snapshots_;
    std::mutex newest_lock_;
    log_positions newest_;
    std::atomic<uint64_t> counter_{0};
    std::atomic<uint64_t> acknowledged_{0};
    std::atomic<uint64_t> independent_[writers] = {};
    std::atomic<bool> ended_{false};
};

void run(uint32_t streams, bool thread) {
    busy_log log(streams, thread);
    log.run(4000);
}

TEST(in_use_threads_test, one_ring) {
    run(1, true);
}

TEST(in_use_threads_test, one_ring_without_the_library_s_thread) {
    run(1, false);
}

TEST(in_use_threads_test, two_rings) {
    run(2, true);
}

TEST(in_use_threads_test, four_rings) {
    run(4, true);
}

TEST(in_use_threads_test, four_rings_without_the_library_s_threads) {
    run(4, false);
}

} // namespace
