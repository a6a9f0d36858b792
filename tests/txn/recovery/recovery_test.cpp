// Goal: after a power cut at any instant the heap holds exactly the transactions up to some LSN, each whole, and
// none that was acknowledged is missing. Method: lives of heaps on a simulated disk that holds image, journal and log;
// the power fails before each of the disk's events, in several ways; what an open finds is held against the reference's
// content after each transaction.
#include "../files.hpp"
#include "tests/effort.hpp"
#include "tests/stats.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

// A heap's life, and what was acknowledged when.
struct life {
    life() = default;
    explicit life(os::sim_disk *taken) : files(taken) {}

    disk files;
    ledger book{5};
    ty_heap *heap = nullptr;
    uint64_t acknowledged = 0;
    struct moment {
        uint64_t event;
        uint64_t acknowledged;
    };
    std::vector<moment> moments;
    bool created = false;
    uint64_t created_event = 0;

    uint64_t now() const { return os::sim_event_count(files.get()); }
    void acknowledge(uint64_t n) {
        acknowledged = n;
        moments.push_back({now(), n});
    }
    void open(ty_kind kind = TY_TRANSACTIONAL, uint32_t dirty = 0) {
        ty_open_options options = with_log(files, kind);
        options.snapshot_dirty_bytes = dirty;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        if (!created)
            created_event = now();
        created = true;
        acknowledge(ledger::count(heap));
        book.forget_others(heap);
    }
    void run(int transactions, int changes = 6) {
        for (int i = 0; i < transactions; ++i) {
            ASSERT_OK(book.run(heap, true, changes));
            acknowledge(ledger::count(heap));
        }
    }
    void run_async(int transactions) {
        for (int i = 0; i < transactions; ++i)
            ASSERT_OK(book.run(heap, false));
    }
    void make_durable() {
        bool durable = false;
        ASSERT_OK(ty_durable(heap, 0, true, &durable));
        acknowledge(ledger::count(heap));
    }
    uint64_t least(uint64_t event) const {
        uint64_t n = 0;
        for (const moment &m : moments)
            n = m.event <= event ? m.acknowledged : n;
        return n;
    }
};

constexpr os::sim_cut cuts[] = {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::prefix,
                                os::sim_cut::trash};

// What is found must be sound, and can be built on.
void expect_recovers(life &l, uint64_t event, os::sim_cut how) {
    SCOPED_TRACE(testing::Message() << "event " << event << " of " << l.now() << ", cut " << int(how));
    disk copy(os::sim_power_cut(l.files.get(), event, how, event * 31 + 7));
    for (int round = 0; round < 2; ++round) {
        ty_open_options options = with_log(copy, TY_KIND_DEFAULT);
        options.memory_bytes = event % 2 ? 0 : size_t{16} << 10; // so little that it checkpoints and replays in stages
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        l.book.check(heap, l.least(event));
        if (ty_heap_kind(heap) == TY_TRANSACTIONAL && round == 0 && !testing::Test::HasFailure()) {
            ledger more(event);
            more.forget_others(heap);
            uint64_t before = ledger::count(heap);
            more.history.resize(before + 1);
            ASSERT_OK(more.run(heap));
            content now = content_of(heap);
            ASSERT_OK(ty_discard(heap));
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            EXPECT_EQ(before + 1, ledger::count(heap));
            EXPECT_TRUE(now == content_of(heap)) << "what was built on it";
            ASSERT_OK(ty_close(heap));
            return;
        }
        ASSERT_OK(ty_discard(heap));
    }
}

// Each event of the life, in all ways or, to save time, some of the events, in turn.
void explore(life &l, bool all_ways) {
    for (uint64_t event = l.created_event; event <= l.now(); event += all_ways ? 1 : stride(4))
        for (size_t way = 0; way < std::size(cuts); ++way)
            if (all_ways || event % std::size(cuts) == way) {
                expect_recovers(l, event, cuts[way]);
                if (testing::Test::HasFailure())
                    return;
            }
}

TEST(recovery_test, commits_snapshots_and_closes) {
    life l;
    l.open();
    l.run(10);
    ASSERT_OK(ty_snapshot(l.heap));
    l.run(5);
    l.run_async(5);
    l.make_durable();
    ASSERT_OK(ty_run_background_work(l.heap));
    l.run(3);
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(l.heap, &epoch));
    l.run(2);
    ASSERT_OK(ty_snapshot_wait(l.heap, epoch));
    l.run(2);
    ASSERT_OK(ty_close(l.heap));
    l.open();
    l.run(3);
    l.run_async(3);
    ASSERT_OK(ty_discard(l.heap));
    l.open();
    l.run(2);
    ASSERT_OK(ty_discard(l.heap));
    explore(l, true);
}

// A ring of 1 MiB is written round; snapshots free it.
TEST(recovery_test, the_ring_goes_round) {
    life l;
    l.open();
    l.run(700);
    const ty_txn_stats stats = txn_stats_of(l.heap);
    EXPECT_GT(stats.log_bytes, stats.size_log_bytes) << "it did not go round";
    EXPECT_GT(stats.automatic_snapshots + stats.forced_snapshots, 1u);
    ASSERT_OK(ty_discard(l.heap));
    explore(l, false);
}

// A record that exceeds half the buffer: a snapshot is taken in place of it.
TEST(recovery_test, snapshots_in_place_of_a_record) {
    life l;
    l.open();
    l.run(3);
    auto *big = static_cast<char *>(nullptr);
    for (int round = 0; round < 3; ++round) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(l.heap, nullptr, &txn));
        auto *head = static_cast<uint64_t *>(ty_root(l.heap, "head"));
        ASSERT_OK(ty_declare(txn, head, 8));
        *head += 1;
        size_t bytes = size_t{12} << 20;
        if (!big) {
            big = static_cast<char *>(ty_txn_alloc(txn, bytes));
            ASSERT_NE(nullptr, big);
        } else {
            ASSERT_OK(ty_declare(txn, big, bytes));
        }
        std::mt19937_64 random(uint64_t(round) + 1);
        for (size_t i = 0; i < bytes; i += 8) {
            uint64_t word = random();
            memcpy(big + i, &word, 8);
        }
        l.book.history.push_back(content_of(l.heap));
        ASSERT_OK(ty_commit(txn));
        l.acknowledge(ledger::count(l.heap));
        l.book.forget_others(l.heap);
    }
    const ty_txn_stats stats = txn_stats_of(l.heap);
    EXPECT_EQ(3u, stats.forced_snapshots);
    EXPECT_EQ(6u, stats.lsn) << "each has a number, in the log or not";
    EXPECT_EQ(6u, stats.durable_lsn);
    ASSERT_OK(ty_discard(l.heap));
    uint64_t step = l.now() / 60 + 1;
    for (uint64_t event = l.created_event; event <= l.now() && !HasFailure(); event += step)
        expect_recovers(l, event, cuts[event / step % std::size(cuts)]);
}

TEST(recovery_test, attach_and_detach) {
    life l;
    l.open();
    l.run(4);
    ASSERT_OK(ty_discard(l.heap));
    l.open(TY_SNAPSHOT);
    ASSERT_OK(ty_close(l.heap));
    l.open();
    l.run(4);
    ASSERT_OK(ty_discard(l.heap));
    l.open(TY_SNAPSHOT);
    ASSERT_OK(ty_discard(l.heap));
    explore(l, true);
}

// The process dies between the two headers of a detach, and the power fails while the open after it attaches a log
// anew: whichever header is left, the log that it names is there.
TEST(recovery_test, an_attach_after_a_detach_that_was_cut_off) {
    life l;
    l.open();
    l.run(4);
    ASSERT_OK(ty_discard(l.heap));
    uint64_t before = l.now();
    l.open(TY_SNAPSHOT);
    uint64_t after = l.now();
    ASSERT_OK(ty_discard(l.heap));
    for (uint64_t first = before; first <= after; ++first) {
        disk once(os::sim_power_cut(l.files.get(), first, os::sim_cut::process_death, first));
        ty_open_options options = with_log(once);
        ty_heap *heap = nullptr;
        uint64_t died = os::sim_event_count(once.get());
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        uint64_t opened = os::sim_event_count(once.get());
        ASSERT_OK(ty_discard(heap));
        for (uint64_t second = died; second <= opened; ++second)
            for (os::sim_cut how : cuts) {
                if ((first + second + uint64_t(how)) % stride(3))
                    continue;
                SCOPED_TRACE(testing::Message() << "events " << first << ", " << second << ", cut " << int(how));
                disk twice(os::sim_power_cut(once.get(), second, how, first * 31 + second));
                options = with_log(twice);
                ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
                EXPECT_EQ(ledger::count(heap), 4u);
                ASSERT_OK(ty_discard(heap));
            }
    }
}

TEST(recovery_test, rebuilds) {
    life l;
    l.open();
    l.run(4);
    ty_open_options options = with_log(l.files);
    ASSERT_OK(ty_rebuild(&l.heap, &options, nullptr));
    l.run(4);
    l.run_async(2);
    ASSERT_OK(ty_rebuild(&l.heap, &options, nullptr));
    l.acknowledge(ledger::count(l.heap));
    ASSERT_OK(ty_discard(l.heap));
    explore(l, true);
}

// A log that was not there and not needed is made: from closed, through each step, to open.
TEST(recovery_test, a_log_made_anew) {
    life l;
    l.open();
    l.run(4);
    ASSERT_OK(ty_close(l.heap));
    const ty_storage *s = l.files.storage();
    ASSERT_OK(s->remove(s->context, log_path));
    ASSERT_OK(s->flush_directory(s->context, log_path));
    l.created_event = l.now();
    l.open();
    l.run(2);
    ASSERT_OK(ty_discard(l.heap));
    explore(l, true);
}

// A heap that is being created is there whole, with its log, or not at all; and it can be created then.
TEST(recovery_test, creation) {
    life l;
    l.open();
    l.run(1);
    ASSERT_OK(ty_discard(l.heap));
    for (uint64_t event = 0; event <= l.now(); ++event)
        for (os::sim_cut how : cuts) {
            SCOPED_TRACE(testing::Message() << "event " << event << ", cut " << int(how));
            disk copy(os::sim_power_cut(l.files.get(), event, how, event));
            ty_open_options options = with_log(copy);
            ty_heap *heap = nullptr;
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            EXPECT_GE(ledger::count(heap), l.least(event));
            ASSERT_OK(ty_close(heap));
        }
}

// The process dies (nothing is lost that was written), and then, during or after the recovery, the power fails.
TEST(recovery_test, recovery_is_crash_safe) {
    life l;
    l.open();
    l.run(5);
    ASSERT_OK(ty_snapshot(l.heap));
    l.run(5);
    l.run_async(3);
    uint64_t died = l.now();
    ASSERT_OK(ty_discard(l.heap));
    life second(os::sim_power_cut(l.files.get(), died, os::sim_cut::process_death, 1));
    second.book = l.book;
    second.created = true;
    second.created_event = second.now();
    second.acknowledge(10);
    second.open();
    second.run(4);
    ASSERT_OK(ty_close(second.heap));
    explore(second, true);
}

// The canary: a disk whose flushes and durable writes do nothing must be caught by these tests.
TEST(recovery_test, a_lying_disk_is_caught) {
    life l;
    os::sim_set_broken_flush(l.files.get(), true);
    l.open();
    l.run(5);
    disk copy(l.files.cut(os::sim_cut::drop_all));
    ASSERT_OK(ty_discard(l.heap));
    ty_open_options options = with_log(copy, TY_KIND_DEFAULT);
    options.mode = TY_OPEN_EXISTING;
    ty_heap *heap = nullptr;
    ty_status status = ty_open(heap_path, &options, &heap, nullptr);
    EXPECT_TRUE(status || ledger::count(heap) < 5);
    if (!status) {
        ASSERT_OK(ty_discard(heap));
    }
}

} // namespace
