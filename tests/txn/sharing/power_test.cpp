// Goal: the power fails at any instant of the process that writes a shared heap's log: what was acknowledged is there,
// each transaction is whole, in order (PR1, PR6), whatever the log buffer's file holds. Method: threads that take turns
// and count in a state with sums over all of it, snapshots among them; cuts at any event of a simulated disk.
#include "tests/effort.hpp"
#include "tests/threads.hpp"
#include "tests/txn/support.hpp"

#include <random>

namespace taiyen::test {
namespace {

constexpr unsigned writers = 3;

struct tally {
    uint64_t number;      // of all commits
    uint64_t by[writers]; // of each thread
    uint64_t *blocks[64]; // each holds the number of the commit that made it
    uint64_t sum;         // of these
};

const char *wrong_with(const tally &all) {
    uint64_t number = 0, sum = 0;
    for (const uint64_t by : all.by)
        number += by;
    for (const uint64_t *block : all.blocks)
        sum += block != nullptr ? *block : 0;
    return number != all.number ? "the number of commits" : sum != all.sum ? "the sum" : nullptr;
}

class power_test : public testing::TestWithParam<uint64_t> {
protected:
    ~power_test() override { EXPECT_OK(ty_discard(heap_)); }

    void open() {
        ty_open_options options = files_->options();
        options.kind = TY_TRANSACTIONAL;
        options.background = TY_BACKGROUND_THREAD;
        options.log_bytes = size_t{1} << 20; // small, so that snapshots are forced
        options.shared = true;
        ASSERT_OK(ty_open(heap_path, &options, &heap_, nullptr));
        all_ = static_cast<tally *>(ty_root(heap_, "tally"));
    }

    void make() {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap_, nullptr, &txn));
        all_ = static_cast<tally *>(ty_txn_alloc(txn, sizeof *all_));
        ASSERT_OK(ty_txn_root_set(txn, "tally", all_));
        ASSERT_OK(ty_commit(txn));
    }

    void commit(unsigned own, std::mt19937_64 &random) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap_, nullptr, &txn));
        ASSERT_OK(ty_declare(txn, all_, sizeof *all_));
        uint64_t *&block = all_->blocks[random() % std::size(all_->blocks)];
        if (block != nullptr) {
            all_->sum -= *block;
            ASSERT_OK(ty_txn_free(txn, block));
        }
        block = static_cast<uint64_t *>(ty_txn_alloc(txn, 8 + random() % 2000));
        ASSERT_NE(nullptr, block);
        all_->sum += *block = ++all_->number;
        const uint64_t count = ++all_->by[own];
        begun_[own] = count;
        if (random() % 4 != 0) {
            ASSERT_OK(ty_commit_async(txn, nullptr));
            return;
        }
        ASSERT_OK(ty_commit(txn));
        acknowledged_[own].push_back({os::sim_event_count(files_->get()), count});
    }

    void run(uint64_t seed, int changes) {
        in_threads(writers, [&](unsigned own) {
            std::mt19937_64 random(seed * writers + own);
            for (int n = 0; n < changes; n++) {
                commit(own, random);
                if (random() % 50 == 0) {
                    EXPECT_OK(ty_snapshot(heap_));
                }
            }
        });
    }

    // Whatever the log buffer's file has is of no use any more.
    void scribble(std::mt19937_64 &random) {
        constexpr const char *buffer_path = "test.ty-shared";
        uint64_t page[512];
        if (!files_->read(buffer_path, 0, page))
            return;
        for (uint64_t &word : page)
            word = random() % 2 == 0 ? random() : word;
        files_->patch(buffer_path, 0, page, sizeof page);
    }

    void expect_kept(uint64_t event) {
        ASSERT_NE(nullptr, all_);
        EXPECT_EQ(nullptr, wrong_with(*all_));
        EXPECT_OK(ty_heap_verify(heap_, nullptr, nullptr));
        for (unsigned own = 0; own < writers; own++) {
            uint64_t kept = kept_[own];
            for (const auto &[when, count] : acknowledged_[own])
                kept = when <= event ? count : kept;
            EXPECT_LE(kept, all_->by[own]);
            EXPECT_GE(begun_[own], all_->by[own]);
            kept_[own] = begun_[own] = all_->by[own];
            acknowledged_[own].clear();
        }
    }

    std::unique_ptr<disk> files_ = std::make_unique<disk>();
    ty_heap *heap_ = nullptr;
    tally *all_ = nullptr;
    uint64_t begun_[writers] = {}, kept_[writers] = {}; // kept: was there after the last cut, so it is durable
    struct acknowledgement {
        uint64_t event, count;
    };
    std::vector<acknowledgement> acknowledged_[writers];
};

TEST_P(power_test, what_was_acknowledged_is_there_after_a_cut) {
    open();
    make();
    std::mt19937_64 random(GetParam());
    for (int round = 0; round < effort(6) && !HasFatalFailure(); round++) {
        const uint64_t before = os::sim_event_count(files_->get());
        run(random(), 100);
        const uint64_t event = before + random() % (os::sim_event_count(files_->get()) - before + 1);
        os::sim_disk *left =
            os::sim_power_cut(files_->get(), event, os::sim_cuts[random() % std::size(os::sim_cuts)], random());
        EXPECT_OK(ty_discard(heap_));
        files_ = std::make_unique<disk>(left);
        scribble(random);
        open();
        expect_kept(event);
    }
}

INSTANTIATE_TEST_SUITE_P(seeds, power_test, testing::Range<uint64_t>(0, 8));

} // namespace
} // namespace taiyen::test
