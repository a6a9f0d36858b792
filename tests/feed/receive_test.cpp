// Goal: a replica brings a copy to exactly the source's state after each record, whatever transactions do, wherever
// the copy was made, and whatever kills it; and refuses all else (LK5 to LK7). Method: source_model keeps all states
// and records of random transactions on simulated disks; copies of its files receive them, one or many at a time, and
// lose power now and then.
#include "copy_model.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct kind_of_run {
    bool concurrent;
    uint32_t streams;
    bool unlogged;
    uint64_t seed;
    ty_tracking tracking = TY_TRACK_AUTOMATIC; // of the copy
};

void run(const kind_of_run &kind) {
    disk files;
    source_model source(kind.seed, files, of_source(files, kind.concurrent, kind.streams));
    std::vector<os::sim_disk *> bases{source.copy()};
    for (int part = 0; part < 5; ++part) {
        source.transactions(40);
        if (part % 2) {
            source.snapshot();
            source.transactions(7);
        }
        bases.push_back(source.copy());
        if (part == 2) {
            source.close();
            bases.push_back(source.copy());
            source.open();
        }
    }
    source.close(); // the copies lie at its address
    std::mt19937_64 random(kind.seed);
    for (os::sim_disk *base : bases) {
        ty_open_options options = source.options();
        options.tracking = kind.tracking;
        options.snapshot_dirty_bytes = kind.unlogged ? size_t{100} << 10 : 0; // amid receiving
        replica_model copy(source, base, kind.unlogged, options);
        for (int step = 0; !copy.done() && !testing::Test::HasFatalFailure(); ++step) {
            ASSERT_OK(copy.take(step % 5 ? 1 : 1 + random() % 20));
            copy.expect_state();
            if (random() % 12 == 0)
                copy.durable();
            if (random() % 25 == 0) {
                ASSERT_OK(ty_snapshot(copy.heap()));
            }
            if (random() % 30 == 0)
                copy.close();
            if (random() % 30 == 0)
                copy.cut(random() % 2 ? os::sim_cut::random : os::sim_cut::process_death, random());
        }
        copy.durable();
        copy.cut(os::sim_cut::drop_all, 1);
        EXPECT_TRUE(copy.done()) << copy.last() << " of " << source.records.back()->record.lsn;
        expect_sound(copy.heap());
    }
}

// A copy with a log of its own, which is smaller than the source's: what that does not take a snapshot holds, and a
// power cut at any write leaves a state that the source had (LK6).
TEST(receive_small_log, a_power_cut_at_any_write) {
    disk files;
    source_model source(31, files, of_source(files, false, 1));
    source.transactions(5);
    disk copy(source.copy());
    source.transactions(10);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(source.heap(), nullptr, &txn));
    auto *large = static_cast<char *>(ty_txn_alloc(txn, 200000));
    std::mt19937_64 random(1);
    for (size_t i = 0; i < 200000; ++i)
        large[i] = char(random());
    ASSERT_OK(ty_commit(txn));
    source.transactions(10);
    source.states[source.after(0)[15]->lsn] = ""; // of the large one: not looked at
    source.close();

    const uint64_t copied_lsn = copied(copy).lsn;
    ty_open_options options = copy.options();
    options.kind = TY_SNAPSHOT; // takes the log away
    ASSERT_OK(ty_close(open_heap(options)));
    options.kind = TY_TRANSACTIONAL;
    options.log_bytes = size_t{1} << 20;
    ty_heap *heap = open_heap(options);
    ty_replica_options how = TY_REPLICA_OPTIONS_INIT;
    how.copied_lsn = copied_lsn;
    how.base = ty_heap_base(heap);
    ty_replica *replica = nullptr;
    ASSERT_OK(ty_replica_begin(heap, &source.first(), &how, &replica));
    std::vector<ty_feed_record> all;
    for (const ty_feed_record *record : source.after(0))
        all.push_back(*record);
    const uint64_t first = os::sim_event_count(copy.get());
    for (size_t done = 0, some; done < all.size(); done += some) {
        some = std::min<size_t>(all.size() - done, 4);
        ASSERT_OK(ty_replica_apply(replica, all.data() + done, some));
    }
    ASSERT_OK(ty_replica_make_durable(replica, nullptr));
    const uint64_t end = os::sim_event_count(copy.get());
    ty_replica_end(replica);
    ASSERT_OK(ty_discard(heap));
    options.mode = TY_OPEN_EXISTING;
    std::set<uint64_t> seen;
    for (uint64_t event = first; event <= end; ++event)
        for (os::sim_cut cut : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random}) {
            disk left(os::sim_power_cut(copy.get(), event, cut, event));
            options.storage = left.storage();
            ty_report report{};
            report.struct_size = sizeof report;
            heap = nullptr;
            ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
            seen.insert(report.lsn);
            const std::string &expected = source.states.at(report.lsn);
            ASSERT_TRUE(expected.empty() || expected == state_of(heap)) << "event " << event;
            ASSERT_OK(ty_discard(heap));
        }
    EXPECT_LE(3u, seen.size());
    EXPECT_EQ(all.back().lsn, *seen.rbegin());
}

class receive_model : public testing::TestWithParam<kind_of_run> {};

TEST_P(receive_model, each_state_is_the_sources) {
    run(GetParam());
}

INSTANTIATE_TEST_SUITE_P(all, receive_model,
                         testing::Values(kind_of_run{false, 1, false, 1}, kind_of_run{false, 1, true, 2},
                                         kind_of_run{true, 1, false, 3}, kind_of_run{true, 3, false, 4},
                                         kind_of_run{true, 3, true, 5},
                                         kind_of_run{false, 1, false, 6, TY_TRACK_SIGNAL},
                                         kind_of_run{false, 1, true, 7, TY_TRACK_CONTENT}),
                         [](const auto &one) { return "run_" + std::to_string(one.param.seed); });

} // namespace
