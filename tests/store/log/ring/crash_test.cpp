// Goal: after a power cut at any operation, and another one during or after the recovery, all that was acknowledged is
// read back, nothing that was never appended is, and what one recovery left out no later one brings back.
// Method: random histories of appends, waits, snapshots and failing writes on a simulated disk; for every event and
// each kind of cut the log is read, continued, cut again, and held against a list.
#include "../support.hpp"
#include "tests/effort.hpp"

#include <algorithm>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// What a process knows of the log at some moment.
struct knowledge {
    uint64_t event = 0;                     // of the disk, when it was so
    uint64_t acknowledged = 0;              // LSN
    std::vector<log_positions> redo_points; // of the durable snapshot; before it is known to be, of either
};

// A process that uses a log, and remembers what it did.
class process {
public:
    process(os::sim_disk *disk, log_positions start, std::vector<std::string> believed, const reading &read,
            uint64_t seed)
        : disk_(disk), random_(seed), sink_(open_log(disk)), log_(start_after(sink_.get(), start, read)),
          records_(std::move(believed)), redo_point_(start) {
        note(0, {start});
    }

    // LSN n is records()[n - 1]; of those before the first snapshot only the number counts.
    const std::vector<std::string> &records() const { return records_; }
    const knowledge &last() const { return known_.back(); }
    const std::vector<knowledge> &known() const { return known_; }

    // Brings the log near the ring's end.
    void fill(uint64_t bytes) {
        for (uint64_t filled = 0; filled < bytes; filled += 32768) {
            records_.push_back(std::string(30000, 'f'));
            ASSERT_OK(append(log_.get(), records_.back()));
            ASSERT_OK(log_wait(log_.get(), records_.size()));
        }
        release();
    }

    void run(int steps, bool failing) {
        for (int i = 0; i < steps; ++i) {
            if (failing && random_() % 16 == 0)
                os::sim_set_fault(disk_, {os::sim_op_write_durable, random_() % 3, false, TY_E_IO});
            step();
        }
        os::sim_set_fault(disk_, {});
    }

private:
    void step() {
        uint64_t lot = random_() % 20;
        if (log_broken(log_.get()) || lot == 0)
            continue_after_snapshot(lot % 2);
        else if (lot == 1)
            release();
        else if (lot < 8)
            wait();
        else
            append_one();
    }
    void append_one() {
        std::string record =
            record_of(records_.size() + (random_() << 20), 1 + random_() % (random_() % 8 ? 300 : 40000));
        ty_status status = append(log_.get(), record);
        if (!status)
            records_.push_back(record);
        else if (status == TY_E_SPACE)
            continue_after_snapshot(false);
        else
            EXPECT_TRUE(log_broken(log_.get()));
    }
    void wait() {
        uint64_t lsn = records_.size() - std::min<uint64_t>(random_() % 3, records_.size());
        if (log_wait(log_.get(), lsn) == TY_OK)
            note(std::max(lsn, last().acknowledged), {redo_point_});
    }
    void release() {
        log_positions redo_point = log_positions_now(log_.get());
        note(last().acknowledged, {redo_point_, redo_point}); // the image has one or the other
        redo_point_ = redo_point;
        note(redo_point.lsn, {redo_point_});
        log_release(log_.get(), redo_point);
    }
    void continue_after_snapshot(bool holds_one) {
        log_positions redo_point = log_positions_now(log_.get());
        if (holds_one) {
            records_.push_back("held by the snapshot");
            redo_point.lsn += 1;
        }
        redo_point_ = redo_point;
        note(redo_point.lsn, {redo_point_});
        log_continue(log_.get(), redo_point);
    }
    void note(uint64_t acknowledged, std::vector<log_positions> redo_points) {
        known_.push_back({os::sim_event_count(disk_), acknowledged, std::move(redo_points)});
    }

    os::sim_disk *disk_;
    std::mt19937_64 random_;
    sink_owner sink_;
    log_owner log_;
    std::vector<std::string> records_;
    std::vector<knowledge> known_;
    log_positions redo_point_;
};

struct outcome {
    log_positions redo_point;
    reading read;
    std::vector<std::string> believed; // all from LSN 1 on
};

// Reads as an open would, and holds it against what the process knew.
outcome recover(os::sim_disk *disk, const process &before, const knowledge &known, uint64_t seed) {
    sink_owner sink = open_log(disk, false);
    outcome result;
    result.redo_point = known.redo_points[seed % known.redo_points.size()];
    result.read = read_log(*sink, result.redo_point);
    EXPECT_OK(result.read.status);
    const std::vector<std::string> &all = before.records();
    result.believed.assign(all.begin(), all.begin() + ptrdiff_t(result.redo_point.lsn));
    result.believed.insert(result.believed.end(), result.read.records.begin(), result.read.records.end());
    EXPECT_GE(result.believed.size(), known.acknowledged) << "acknowledged records are lost";
    bool prefix =
        result.believed.size() <= all.size() && std::equal(result.believed.begin(), result.believed.end(), all.begin());
    EXPECT_TRUE(prefix) << "records that were never appended";
    return result;
}

const knowledge &known_at(const process &which, uint64_t event) {
    auto after = std::find_if(which.known().begin(), which.known().end(),
                              [&](const knowledge &one) { return one.event > event; });
    return *std::prev(after);
}

// One crash after another, each at a random event, with a recovery between.
void crash_again(const disk_owner &disk, const process &first, const knowledge &known, uint64_t seed, int more) {
    outcome found = recover(disk.get(), first, known, seed);
    if (testing::Test::HasFailure() || more == 0)
        return;
    std::mt19937_64 random(seed);
    uint64_t begun = os::sim_event_count(disk.get());
    std::unique_ptr<process> second(new process(disk.get(), found.redo_point, found.believed, found.read, seed));
    second->run(1 + int(random() % 12), random() % 4 == 0);
    uint64_t event = begun + random() % (os::sim_event_count(disk.get()) - begun + 1);
    disk_owner after(os::sim_power_cut(disk.get(), event, os::sim_cuts[random() % std::size(os::sim_cuts)], seed));
    SCOPED_TRACE(testing::Message() << "then at event " << event);
    crash_again(after, *second, known_at(*second, event), seed + 1, more - 1);
}

void explore(uint64_t seed, bool failing) {
    disk_owner disk(os::sim_create());
    create_log(disk.get());
    process first(disk.get(), {}, {}, {}, seed);
    if (seed % 2)
        first.fill(small_log - seed % 5 * 40000 - 80000);
    uint64_t begun = os::sim_event_count(disk.get());
    first.run(60, failing);
    for (uint64_t event = begun; event <= os::sim_event_count(disk.get()); ++event)
        for (os::sim_cut cut : os::sim_cuts) {
            SCOPED_TRACE(testing::Message() << "seed " << seed << " event " << event << " cut " << int(cut));
            disk_owner after(os::sim_power_cut(disk.get(), event, cut, seed + event));
            crash_again(after, first, known_at(first, event), seed * 31 + event * 7 + uint64_t(cut), 3);
            if (testing::Test::HasFailure())
                return;
        }
}

TEST(crash_test, power_cuts_at_every_event) {
    for (uint64_t seed = 1; seed <= uint64_t(effort(3)) && !HasFailure(); ++seed)
        explore(seed, false);
}

// Writes fail on the way, leaving unflushed what a later flush does not make durable (L4).
TEST(crash_test, power_cuts_after_failed_writes) {
    for (uint64_t seed = 101; seed <= 100 + uint64_t(effort(3)) && !HasFailure(); ++seed)
        explore(seed, true);
}

// The canary: if durable writes are none, the tests above must see it.
TEST(crash_test, the_canary_is_caught) {
    disk_owner disk(os::sim_create());
    sink_owner sink = create_log(disk.get());
    log_owner l(start_log(sink.get()));
    os::sim_set_broken_durable_write(disk.get(), true);
    ASSERT_OK(append(l.get(), "one"));
    ASSERT_OK(log_wait(l.get(), 1));
    disk_owner after(os::sim_power_cut(disk.get(), UINT64_MAX, os::sim_cut::drop_all, 1));
    EXPECT_EQ(0u, read_log(*open_log(after.get())).records.size());
}

} // namespace
