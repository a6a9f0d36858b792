// Goal: after a power cut at any operation of a log of several log streams, and again during or after the recovery, all
// that was acknowledged is read back: by a wait for all log streams, or of an independent record by a wait for its own.
// Nothing else is handed on after a gap, and what one recovery left out no later one brings back. Method: random
// histories of appends to random log streams, waits, snapshots (also with appends between the redo points and the LSN)
// and failing writes on a simulated disk; for every event and each kind of cut the log is read, gone on with as an open
// does, cut again, and held against a list.
#include "streams.hpp"
#include "tests/effort.hpp"

#include <algorithm>
#include <set>

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct stamped {
    std::string bytes;
    uint32_t stream;
    bool independent;
};

struct stream_knowledge {
    uint64_t event = 0;
    uint64_t acknowledged = 0;              // all up to this LSN
    std::set<uint64_t> alone;               // independent ones that are acknowledged by themselves
    std::vector<log_positions> redo_points; // of the durable snapshot, or of either
};

class stream_process {
public:
    stream_process(os::sim_disk *disk, const log_positions &start, std::vector<stamped> believed,
                   const multi_stream_reading &read, uint64_t seed)
        : disk_(disk), random_(seed), sink_(open_log(disk)), records_(std::move(believed)), redo_point_(start) {
        log_options options{};
        options.sink = sink_.get();
        options.name = log_path;
        options.identity = test_identity;
        options.start = options.end = options.tail = start;
        if (read.contents.end.count > 1) {
            options.end = read.contents.end;
            options.tail = read.contents.tail;
            options.highest = read.contents.highest;
        }
        taiyen::log *l = nullptr;
        EXPECT_OK(log_start(options, &l));
        log_.reset(l);
        note(start.lsn, {start});
        finish_recovery(read);
    }

    const std::vector<stamped> &records() const { return records_; }
    const std::vector<stream_knowledge> &known() const { return known_; }

    void run(int steps, bool failing) {
        for (int i = 0; i < steps; ++i) {
            if (failing && random_() % 16 == 0)
                os::sim_set_fault(disk_, {os::sim_op_write_durable, random_() % 3, false, TY_E_IO});
            step();
        }
        os::sim_set_fault(disk_, {});
    }

private:
    // What an open does before it returns.
    void finish_recovery(const multi_stream_reading &read) {
        if (read.contents.left_out + read.contents.after_gap) {
            release(false);
        } else {
            EXPECT_OK(log_wait(log_.get(), records_.size()));
            note(records_.size(), {redo_point_});
        }
    }
    void step() {
        uint64_t lot = random_() % 24;
        if (log_broken(log_.get()) || lot == 0)
            continue_after_snapshot(lot % 2);
        else if (lot == 1)
            release(random_() % 2);
        else if (lot < 6)
            wait();
        else if (lot < 9)
            wait_alone();
        else
            append_one();
    }
    void append_one() {
        const auto stream = static_cast<uint32_t>(random_() % redo_point_.count);
        stamped one{record_of(records_.size() + (random_() << 20), 1 + random_() % (random_() % 8 ? 300 : 30000)),
                    stream, random_() % 4 == 0};
        uint8_t *place = nullptr;
        ty_status status = log_append_begin(log_.get(), stream, one.bytes.size() + random_() % 20, &place);
        if (status == TY_E_SPACE) {
            continue_after_snapshot(false);
        } else if (status) {
            EXPECT_TRUE(log_broken(log_.get()));
        } else {
            memcpy(place, one.bytes.data(), one.bytes.size());
            records_.push_back(one);
            log_append_end(log_.get(), stream, one.bytes.size(), records_.size(), one.independent);
        }
    }
    void wait() {
        uint64_t lsn = records_.size() - std::min<uint64_t>(random_() % 3, records_.size());
        if (log_wait(log_.get(), lsn, static_cast<uint32_t>(random_() % redo_point_.count)) == TY_OK) {
            EXPECT_GE(log_durable(log_.get()), std::min(lsn, log_last(log_.get())));
            note(std::max(lsn, known_.back().acknowledged), {redo_point_});
        }
    }
    void wait_alone() {
        if (records_.empty() || !records_.back().independent || records_.size() <= redo_point_.lsn)
            return;
        if (log_wait_stream(log_.get(), records_.back().stream, records_.size()) == TY_OK) {
            note(known_.back().acknowledged, {redo_point_});
            known_.back().alone.insert(records_.size());
        }
    }
    // appends: some that the snapshot holds as well, after its redo points.
    void release(bool appends) {
        log_positions redo_point = log_positions_now(log_.get());
        for (int i = 0; appends && i < 3 && !log_broken(log_.get()); ++i) {
            const uint64_t before = redo_point_.lsn;
            append_one();
            if (redo_point_.lsn != before) // the ring was full, and a snapshot took its place
                return;
        }
        if (log_broken(log_.get()))
            return;
        redo_point.lsn = records_.size();
        note(known_.back().acknowledged, {redo_point_, redo_point}); // the image has one or the other
        redo_point_ = redo_point;
        note(redo_point.lsn, {redo_point_});
        log_release(log_.get(), redo_point);
    }
    void continue_after_snapshot(bool holds_one) {
        log_positions redo_point = log_positions_now(log_.get());
        redo_point.lsn = records_.size();
        if (holds_one) {
            records_.push_back({"held by the snapshot", 0, false});
            redo_point.lsn += 1;
        }
        redo_point_ = redo_point;
        note(redo_point.lsn, {redo_point_});
        log_continue(log_.get(), redo_point);
    }
    void note(uint64_t acknowledged, std::vector<log_positions> redo_points) {
        std::set<uint64_t> alone = known_.empty() ? std::set<uint64_t>{} : known_.back().alone;
        known_.push_back({os::sim_event_count(disk_), acknowledged, std::move(alone), std::move(redo_points)});
    }

    os::sim_disk *disk_;
    std::mt19937_64 random_;
    sink_owner sink_;
    log_owner log_;
    std::vector<stamped> records_; // [n - 1] has LSN n
    std::vector<stream_knowledge> known_;
    log_positions redo_point_;
};

struct stream_outcome {
    log_positions redo_point;
    multi_stream_reading read;
    std::vector<stamped> believed;
};

stream_outcome recover(os::sim_disk *disk, const stream_process &before, const stream_knowledge &known, uint64_t seed) {
    sink_owner sink = open_log(disk, false);
    stream_outcome result;
    result.redo_point = known.redo_points[seed % known.redo_points.size()];
    result.read = read_streams(*sink, result.redo_point);
    EXPECT_OK(result.read.status);
    const log_contents &contents = result.read.contents;
    EXPECT_GE(contents.end.lsn, known.acknowledged) << "acknowledged records are lost";
    const std::vector<stamped> &all = before.records();
    uint64_t expected = result.redo_point.lsn;
    std::set<uint64_t> there;
    for (const multi_stream_reading::record &one : result.read.records) {
        EXPECT_LE(one.lsn, all.size()) << "a record that was never appended";
        if (one.lsn > all.size())
            return result;
        const stamped &appended = all[one.lsn - 1];
        EXPECT_EQ(appended.bytes, one.bytes) << one.lsn;
        EXPECT_EQ(appended.stream, one.stream);
        EXPECT_TRUE(one.lsn == ++expected || (one.independent && appended.independent && one.lsn > contents.end.lsn));
        there.insert(one.lsn);
    }
    for (uint64_t lsn : known.alone)
        EXPECT_TRUE(lsn <= result.redo_point.lsn || there.count(lsn)) << lsn << " is lost";
    result.believed.assign(all.begin(), all.begin() + ptrdiff_t(std::min<uint64_t>(contents.highest, all.size())));
    return result;
}

const stream_knowledge &known_at(const stream_process &which, uint64_t event) {
    auto after = std::find_if(which.known().begin(), which.known().end(),
                              [&](const stream_knowledge &one) { return one.event > event; });
    return *std::prev(after);
}

void crash_again(const disk_owner &disk, const stream_process &first, const stream_knowledge &known, uint64_t seed,
                 int more) {
    stream_outcome found = recover(disk.get(), first, known, seed);
    if (testing::Test::HasFailure() || more == 0)
        return;
    std::mt19937_64 random(seed);
    std::unique_ptr<stream_process> second(
        new stream_process(disk.get(), found.redo_point, found.believed, found.read, seed));
    uint64_t begun = second->known().back().event; // the open has returned
    second->run(1 + int(random() % 12), random() % 4 == 0);
    uint64_t event = begun + random() % (os::sim_event_count(disk.get()) - begun + 1);
    disk_owner after(os::sim_power_cut(disk.get(), event, os::sim_cuts[random() % std::size(os::sim_cuts)], seed));
    SCOPED_TRACE(testing::Message() << "then at event " << event);
    crash_again(after, *second, known_at(*second, event), seed + 1, more - 1);
}

void explore_streams(uint64_t seed, bool failing) {
    const auto streams = static_cast<uint32_t>(2 + seed % 3);
    disk_owner disk(os::sim_create());
    ty_log_sink *sink = nullptr;
    ASSERT_OK(file_sink_create(log_path, log_bytes_min(4096, streams), *os::sim_storage(disk.get()), &sink));
    ASSERT_OK(log_format(*sink, test_identity, {}, streams));
    sink_destroy(sink);
    stream_process first(disk.get(), log_positions{0, streams}, {}, {}, seed);
    uint64_t begun = os::sim_event_count(disk.get());
    first.run(90, failing);
    for (uint64_t event = begun; event <= os::sim_event_count(disk.get()); ++event)
        for (os::sim_cut cut : os::sim_cuts) {
            SCOPED_TRACE(testing::Message() << "seed " << seed << " event " << event << " cut " << int(cut));
            disk_owner after(os::sim_power_cut(disk.get(), event, cut, seed + event));
            crash_again(after, first, known_at(first, event), seed * 31 + event * 7 + uint64_t(cut), 3);
            if (testing::Test::HasFailure())
                return;
        }
}

TEST(stream_crash_test, power_cuts_at_every_event) {
    for (uint64_t seed = 1; seed <= uint64_t(effort(2)) && !HasFailure(); ++seed)
        explore_streams(seed, false);
}

TEST(stream_crash_test, power_cuts_after_failed_writes) {
    for (uint64_t seed = 101; seed <= 100 + uint64_t(effort(2)) && !HasFailure(); ++seed)
        explore_streams(seed, true);
}

} // namespace
