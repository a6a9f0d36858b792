// Goal: a receiver brings a copy to exactly the source's state behind each record, whatever transactions do, wherever
// the copy was made, and whatever kills it; and refuses all else (LK5 to LK7). Method: source_model keeps all states
// and records of random transactions on simulated disks; copies of its files receive them, one or many at a time, and
// lose power now and then.
#include "copy_model.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct kind_of_run {
    bool concurrent;
    uint32_t partitions;
    bool unlogged;
    uint64_t seed;
};

void run(const kind_of_run &kind) {
    disk files;
    source_model source(kind.seed, files, of_source(files, kind.concurrent, kind.partitions));
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
        copy_of copy(source, base, kind.unlogged, source.options());
        for (int step = 0; !copy.done() && !testing::Test::HasFatalFailure(); ++step) {
            ASSERT_OK(copy.take(step % 5 ? 1 : 1 + random() % 20));
            copy.expect_state();
            if (random() % 12 == 0)
                copy.stable();
            if (random() % 25 == 0) {
                ASSERT_OK(ty_snapshot(copy.heap()));
            }
            if (random() % 30 == 0)
                copy.close();
            if (random() % 30 == 0)
                copy.cut(random() % 2 ? os::sim_cut::random : os::sim_cut::process_death, random());
        }
        copy.stable();
        copy.cut(os::sim_cut::drop_all, 1);
        EXPECT_TRUE(copy.done()) << copy.last() << " of " << source.records.back()->record.sequence;
        expect_sound(copy.heap());
    }
}

class receive_model : public testing::TestWithParam<kind_of_run> {};

TEST_P(receive_model, each_state_is_the_sources) {
    run(GetParam());
}

INSTANTIATE_TEST_SUITE_P(all, receive_model,
                         testing::Values(kind_of_run{false, 1, false, 1}, kind_of_run{false, 1, true, 2},
                                         kind_of_run{true, 1, false, 3}, kind_of_run{true, 3, false, 4},
                                         kind_of_run{true, 3, true, 5}, kind_of_run{false, 1, false, 6}),
                         [](const auto &one) { return "run_" + std::to_string(one.param.seed); });

} // namespace
