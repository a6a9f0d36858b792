// Goal: whatever dies, a concurrent heap is found as a prefix of its commits left it: all that were acknowledged, each
// whole, no block without an owner. Method: threads that change a table in all modes, with snapshots, ty_begin and long
// transactions among them; the process dies, or the power at any event of the disk; the table is counted.
#include "src/txn/txn.hpp"
#include "support.hpp"
#include "tests/effort.hpp"

namespace taiyen::test {
namespace {

constexpr unsigned thread_count = 4;
constexpr uint64_t sum = 1000000;

// What was acknowledged to a thread, and when.
struct acknowledgement {
    uint64_t event; // of the disk
    uint64_t count;
};

struct counters {
    alignas(64) uint64_t of[thread_count][8];
};

class crash_test : public testing::TestWithParam<uint64_t> {
protected:
    crash_test() { retired_at_once = 16; } // blocks are given back beside snapshots
    ~crash_test() override { retired_at_once = usual_; }

    void make() {
        table_ = make_table(heap_.get(), sum);
        EXPECT_OK(atomically(heap_.get(), [&](ty_atomic_txn *txn) {
            counters_ = static_cast<counters *>(ty_atomic_alloc_aligned(txn, sizeof(counters), 64));
            return counters_ != nullptr ? ty_atomic_root_set(txn, "counters", counters_) : TY_E_MEMORY;
        }));
    }

    // Each changes the table and its own counter, which says how many changes it has made.
    void one_change(unsigned number, dice &random, uint64_t count) {
        ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
        const bool async_mode = random.below(4) != 0;
        options.commit = async_mode ? TY_COMMIT_ASYNC : TY_COMMIT_SYNC;
        const uint64_t from = random.below(table_keys), to = random.below(table_keys);
        const bool takes_in = random.below(2) != 0;
        ASSERT_EQ(TY_OK, atomically(
                             heap_.get(),
                             [&](ty_atomic_txn *txn) -> ty_status {
                                 RETURN_IF(change_table(txn, table_, from, to, takes_in));
                                 return store(txn, counters_->of[number][0], count);
                             },
                             &options));
        if (!async_mode)
            acknowledged_[number].push_back({os::sim_event_count(heap_.files().get()), count});
    }
    // The same by plain stores.
    void one_writer(unsigned number, uint64_t count) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap_.get(), nullptr, &txn));
        ASSERT_OK(ty_declare(txn, &counters_->of[number][0], 8));
        counters_->of[number][0] = count;
        node *first = table_->slots[number];
        if (first != nullptr) { // a new node in its place
            auto *made = static_cast<node *>(ty_txn_alloc(txn, sizeof(node)));
            ASSERT_NE(nullptr, made);
            *made = *first;
            ASSERT_OK(ty_declare(txn, &table_->slots[number], 8));
            table_->slots[number] = made;
            ASSERT_OK(ty_txn_free(txn, first));
        }
        ASSERT_OK(ty_commit(txn));
        acknowledged_[number].push_back({os::sim_event_count(heap_.files().get()), count});
    }

    void run(uint64_t seed, unsigned changes) {
        in_threads(thread_count, [&](unsigned number) {
            dice random(seed * 100 + number);
            for (unsigned i = 0; i < changes; i++) {
                const uint64_t kind = random.below(200);
                const uint64_t count = ++counts_[number];
                if (kind == 0) {
                    EXPECT_OK(ty_snapshot(heap_.get()));
                }
                if (kind == 1)
                    one_writer(number, count);
                else
                    one_change(number, random, count);
            }
        });
    }

    void check(uint64_t event, bool was_closed = false) {
        expect_whole(heap_.get(), sum, was_closed);
        table_ = static_cast<table *>(ty_root(heap_.get(), "table"));
        counters_ = static_cast<counters *>(ty_root(heap_.get(), "counters"));
        ASSERT_NE(nullptr, counters_);
        for (unsigned number = 0; number < thread_count; number++) {
            uint64_t reported = 0;
            for (const acknowledgement &each : acknowledged_[number])
                if (each.event <= event)
                    reported = each.count;
            EXPECT_LE(reported, counters_->of[number][0]) << "thread " << number;
            EXPECT_GE(counts_[number], counters_->of[number][0]);
            counts_[number] = counters_->of[number][0];
            acknowledged_[number].clear();
        }
    }

    static constexpr uint32_t usual_ = 512;
    concurrent_test_heap heap_{GetParam() % 2 != 0 ? TY_BACKGROUND_THREAD : TY_BACKGROUND_CALLS, size_t{2} << 20,
                               static_cast<uint32_t>(1 + GetParam() / 2 % 3)};
    table *table_ = nullptr;
    counters *counters_ = nullptr;
    uint64_t counts_[thread_count] = {};
    std::vector<acknowledgement> acknowledged_[thread_count];
};

TEST_P(crash_test, the_process_dies) {
    make();
    for (unsigned round = 0; round < unsigned(effort(5)); round++) {
        run(GetParam() * 10 + round, 300);
        heap_.die();
        heap_.open();
        check(UINT64_MAX);
    }
}

TEST_P(crash_test, the_power_fails) {
    make();
    EXPECT_OK(ty_durable(heap_.get(), 0, true, nullptr));
    dice random(GetParam());
    for (unsigned round = 0; round < 4; round++) {
        const uint64_t before = os::sim_event_count(heap_.files().get());
        run(GetParam() * 10 + round, 200);
        const uint64_t after = os::sim_event_count(heap_.files().get());
        const uint64_t event = before + random.below(after - before + 1);
        heap_.lose_power(event, static_cast<os::sim_cut>(random.below(5)), GetParam() + round);
        heap_.open();
        check(event);
    }
}

TEST_P(crash_test, it_is_closed) {
    make();
    run(GetParam(), 300);
    heap_.close();
    heap_.open();
    EXPECT_EQ(0u, heap_.report().replayed_transactions);
    check(UINT64_MAX, true);
}

// The pages of such a snapshot are copied while others commit.
TEST(fuzzy_snapshots, count_with_what_they_hold_of_later_commits) {
    constexpr size_t word_count = 16384;
    constexpr uint64_t each = 1000;
    concurrent_test_heap heap;
    uint64_t *words = nullptr;
    ASSERT_OK(atomically(heap.get(), [&](ty_atomic_txn *txn) {
        words = static_cast<uint64_t *>(ty_atomic_alloc(txn, word_count * sizeof *words));
        for (size_t i = 0; i < word_count; i++)
            words[i] = each;
        return ty_atomic_root_set(txn, "words", words);
    }));
    std::atomic<bool> done{false};
    std::atomic<uint64_t> moves{0};
    std::vector<std::thread> movers;
    for (unsigned number = 0; number < 2; number++)
        movers.emplace_back([&, number] {
            dice random(number);
            const ty_atomic_options options = async();
            while (!done.load(std::memory_order_relaxed)) {
                const uint64_t from = random.below(word_count), to = random.below(word_count);
                EXPECT_OK(atomically(
                    heap.get(),
                    [&](ty_atomic_txn *txn) -> ty_status {
                        RETURN_IF(add_to(txn, words[from], UINT64_MAX));
                        return add_to(txn, words[to], 1);
                    },
                    &options));
                moves.fetch_add(1, std::memory_order_relaxed);
            }
        });
    std::vector<os::sim_disk *> left;
    for (unsigned i = 0; i < 30; i++) {
        for (const uint64_t before = moves.load(); moves.load() < before + 500;)
            std::this_thread::yield();
        EXPECT_OK(ty_snapshot(heap.get()));
        left.push_back(heap.files().cut(os::sim_cut::drop_all, i));
    }
    done = true;
    for (std::thread &mover : movers)
        mover.join();
    heap.die();
    for (os::sim_disk *each_left : left) {
        heap.take(each_left);
        heap.open();
        uint64_t total = 0;
        for (size_t i = 0; i < word_count; i++)
            total += words[i];
        EXPECT_EQ(word_count * each, total);
        heap.die();
    }
}

INSTANTIATE_TEST_SUITE_P(seeds, crash_test, testing::Range<uint64_t>(1, 13));

} // namespace
} // namespace taiyen::test
