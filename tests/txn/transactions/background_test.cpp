// Goal: the library's own threads do their part of a transactional heap: snapshots that nobody asked for, blocks that
// were freed for later, closing and discarding while they are at work; and a forked child leaves the parent's files
// alone. Method: heaps with TY_BACKGROUND_THREAD; what a thread is to do is waited for by looking at figures; after
// commits of several threads, what an open finds is held against what each thread did up to the LSN found.
#include "../files.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/stats.hpp"

#include <chrono>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

size_t live_blocks(ty_heap *heap) {
    return heap_stats_of(heap).live_blocks;
}

// What a thread of the library brings about. The limit only ends a test that would hang.
bool comes_true(const std::function<bool()> &condition) {
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > limit)
            return false;
        std::this_thread::yield();
    }
    return true;
}

class background_test : public testing::Test {
protected:
    void SetUp() override {
        options = with_log(files);
        options.background = TY_BACKGROUND_THREAD;
    }
    void TearDown() override { EXPECT_EQ(TY_OK, ty_discard(heap)); }
    void open() { ASSERT_OK(ty_open(heap_path, &options, &heap, &report)); }
    void reopen() {
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
        open();
    }
    ty_txn *begin(bool free_later = false) const {
        ty_txn_options how = TY_TXN_OPTIONS_INIT;
        how.free_later = free_later;
        ty_txn *txn = nullptr;
        EXPECT_EQ(TY_OK, ty_begin(heap, &how, &txn));
        return txn;
    }
    // A block of zeros with a root.
    uint64_t *make(const char *name, size_t bytes) const {
        ty_txn *txn = begin();
        auto *block = static_cast<uint64_t *>(ty_txn_alloc(txn, bytes));
        EXPECT_EQ(TY_OK, ty_txn_root_set(txn, name, block));
        EXPECT_EQ(TY_OK, ty_commit(txn));
        return block;
    }
    void add(uint64_t *words, size_t count, size_t stride, uint64_t value) const {
        ty_txn *txn = begin();
        for (size_t i = 0; i < count; ++i) {
            ASSERT_OK(ty_declare(txn, &words[i * stride], 8));
            words[i * stride] += value;
        }
        ASSERT_OK(ty_commit(txn));
    }
    // Until so much of the ring is in use, or there was a snapshot.
    void fill(uint64_t *words, size_t bytes) const {
        uint64_t value = 0x0123456789abcdef;
        while (txn_stats_of(heap).automatic_snapshots == 0 && txn_stats_of(heap).used_log_bytes < bytes) {
            add(words, 512, 1, value);
            value = value * 3 + 1;
        }
    }
    // The thread frees a block; what it began to do before is done then.
    void let_it_look() const {
        auto *block = make("passing", 64);
        size_t before = live_blocks(heap);
        ty_txn *txn = begin(true);
        ASSERT_OK(ty_txn_root_set(txn, "passing", nullptr));
        ASSERT_OK(ty_txn_free(txn, block));
        ASSERT_OK(ty_commit(txn));
        ASSERT_TRUE(comes_true([&] { return live_blocks(heap) < before; }));
    }

    disk files;
    ty_open_options options;
    ty_report report{};
    ty_heap *heap = nullptr;
};

TEST_F(background_test, a_snapshot_at_three_quarters_of_the_ring) {
    open();
    uint64_t *words = make("words", 4096);
    fill(words, small_log / 8 * 5);
    for (int i = 0; i < 2; ++i)
        let_it_look();
    EXPECT_EQ(0u, txn_stats_of(heap).automatic_snapshots) << "taken too early";
    fill(words, small_log / 8 * 7);
    EXPECT_TRUE(comes_true([&] { return txn_stats_of(heap).automatic_snapshots > 0; }));
    EXPECT_TRUE(comes_true([&] { return txn_stats_of(heap).used_log_bytes < small_log / 2; }))
        << "space is not free again";
    EXPECT_EQ(0u, txn_stats_of(heap).forced_snapshots);
    std::vector<uint64_t> last(words, words + 512);
    reopen();
    EXPECT_EQ(last, std::vector<uint64_t>(words, words + 512));
}

// The one before let in more than half of what a quarter of the ring holds.
TEST_F(background_test, a_snapshot_earlier_where_much_is_logged_meanwhile) {
    constexpr size_t ring = 4 * small_log; // it is looked at after 32 commits
    options.log_bytes = ring;
    options.background = TY_BACKGROUND_CALLS; // what is under way waits for the call
    open();
    uint64_t *words = make("words", 4096);
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(heap, &epoch));
    fill(words, ring / 16 * 3);
    ASSERT_OK(ty_snapshot_wait(heap, epoch));
    fill(words, ring / 2);
    EXPECT_EQ(0u, txn_stats_of(heap).automatic_snapshots) << "taken too early";
    fill(words, ring / 16 * 11);
    EXPECT_EQ(1u, txn_stats_of(heap).automatic_snapshots) << "taken too late";
}

TEST_F(background_test, a_snapshot_when_much_is_dirty) {
    constexpr size_t pages = 1024;
    options.log_bytes = size_t{16} << 20;
    options.snapshot_dirty_bytes = pages / 2 * 4096;
    open();
    uint64_t *words = make("words", pages * 4096);
    for (size_t i = 0; i < pages; i += 16) // a part of them at a time: a commit asks the thread to look now and then
        add(words + i * 512, 16, 512, 1);
    EXPECT_TRUE(comes_true([&] { return txn_stats_of(heap).automatic_snapshots > 0; }));
    ty_txn_stats stats = txn_stats_of(heap);
    EXPECT_EQ(0u, stats.forced_snapshots);
    EXPECT_GE(stats.snapshot_pages, pages / 2 * stats.automatic_snapshots) << "taken too early";
    EXPECT_LT(stats.log_bytes, stats.size_log_bytes / 2) << "the ring's filling was the reason";
}

// However few they are, and however short their records.
TEST_F(background_test, a_snapshot_after_one_transaction_that_writes_to_many_pages) {
    constexpr size_t pages = 512;
    for (ty_background background : {TY_BACKGROUND_THREAD, TY_BACKGROUND_CALLS}) {
        SCOPED_TRACE(background);
        disk other;
        options = with_log(other);
        options.background = background;
        options.snapshot_dirty_bytes = pages / 2 * 4096;
        open();
        ty_txn *txn = begin();
        auto *words = static_cast<uint64_t *>(ty_txn_alloc(txn, pages * 4096));
        for (size_t i = 0; i < pages; ++i)
            words[i * 512] = 1;
        ASSERT_OK(ty_commit(txn));
        if (background == TY_BACKGROUND_THREAD) {
            EXPECT_TRUE(comes_true([&] { return txn_stats_of(heap).automatic_snapshots > 0; }));
        }
        ty_txn_stats stats = txn_stats_of(heap);
        EXPECT_EQ(1u, stats.automatic_snapshots);
        EXPECT_LT(stats.record_bytes, 64u << 10);
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
    }
}

// Of a snapshot that nobody asked for; the thread tries again by itself.
TEST_F(background_test, a_failed_snapshot_is_reported_until_one_succeeds) {
    options.snapshot_dirty_bytes = 4096;
    open();
    os::sim_set_fault(files.get(), {os::sim_op_write, 0, true, TY_E_IO});
    make("words", 64);
    EXPECT_TRUE(comes_true([&] { return ty_background_work_status(heap) == TY_E_IO; }));
    EXPECT_EQ(TY_E_IO, ty_run_background_work(heap)) << "tried again, in vain";
    EXPECT_EQ(TY_E_IO, ty_background_work_status(heap));
    os::sim_set_fault(files.get(), {});
    EXPECT_TRUE(comes_true([&] { return ty_background_work_status(heap) == TY_OK; }));
    EXPECT_TRUE(comes_true([&] { return txn_stats_of(heap).automatic_snapshots > 0; })) << "nothing has succeeded";
    EXPECT_OK(ty_run_background_work(heap));
}

// The one that is durable is the program's, and nobody has waited for it.
TEST_F(background_test, a_failed_snapshot_is_over_when_a_later_one_is_durable) {
    options.snapshot_dirty_bytes = 4096;
    open();
    os::sim_set_fault(files.get(), {os::sim_op_write, 0, true, TY_E_IO});
    make("words", 64);
    EXPECT_TRUE(comes_true([&] { return ty_background_work_status(heap) == TY_E_IO; }));
    os::sim_set_fault(files.get(), {});
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(heap, &epoch));
    EXPECT_TRUE(comes_true([&] { return ty_heap_epoch(heap) >= epoch; }));
    EXPECT_OK(ty_background_work_status(heap));
    ty_txn *txn = begin(); // within it no snapshot is tried
    EXPECT_OK(ty_run_background_work(heap));
    ASSERT_OK(ty_rollback(txn));
}

TEST_F(background_test, a_snapshot_after_an_interval) {
    options.snapshot_interval_ms = 1;
    open();
    uint64_t *words = make("words", 64);
    for (uint64_t i = 1; i < 4; ++i) {
        uint64_t before = txn_stats_of(heap).automatic_snapshots;
        add(words, 1, 1, 1);
        EXPECT_TRUE(comes_true([&] { return txn_stats_of(heap).automatic_snapshots > before; }));
    }
    EXPECT_TRUE(comes_true([&] { return txn_stats_of(heap).used_log_bytes == 0; })) << "the last commit is in none";
    reopen();
    EXPECT_EQ(0u, report.replayed_transactions);
    EXPECT_EQ(3u, *words);
}

TEST_F(background_test, blocks_freed_for_later_come_back) {
    constexpr size_t count = 2000;
    open();
    ty_txn *txn = begin();
    std::vector<void *> blocks;
    for (size_t i = 0; i < count; ++i)
        blocks.push_back(ty_txn_alloc(txn, 100));
    ASSERT_OK(ty_commit(txn));
    size_t before = live_blocks(heap);
    txn = begin(true);
    for (void *block : blocks)
        ASSERT_OK(ty_txn_free(txn, block));
    ASSERT_OK(ty_commit(txn));
    EXPECT_TRUE(comes_true([&] { return live_blocks(heap) == before - count; }));
    expect_sound(heap);
    reopen();
    EXPECT_EQ(before - count, live_blocks(heap));
    expect_sound(heap);
}

// ---- Threads commit while the library's are at work

constexpr unsigned writers = 3;

// Each writer replaces a block of its own, over and over.
struct writer {
    std::vector<uint64_t> lsns; // of its transactions
    uint64_t acknowledged = 0;

    static size_t words_of(uint64_t number) { return 2 + number * 37 % 510; }
    static uint64_t word_of(uint64_t number, size_t i) { return number * 0x9e3779b97f4a7c15 + i; }

    void run(ty_heap *heap, uint64_t **slot, unsigned transactions, bool snapshots) {
        for (unsigned n = 0; n < transactions; ++n) {
            uint64_t lsn = 0;
            replace(heap, slot, lsns.size() + 1, &lsn);
            lsns.push_back(lsn);
            if (n % 16 == 7) {
                bool durable = false;
                ASSERT_OK(ty_durable(heap, lsn, true, &durable));
                ASSERT_TRUE(durable);
                acknowledged = lsn;
            }
            if (snapshots && n % 32 == 20) {
                ASSERT_OK(ty_snapshot(heap));
                acknowledged = lsn;
            }
        }
    }
    static void replace(ty_heap *heap, uint64_t **slot, uint64_t number, uint64_t *lsn) {
        ty_txn_options how = TY_TXN_OPTIONS_INIT;
        how.free_later = number % 4 != 0;
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap, &how, &txn));
        auto *block = static_cast<uint64_t *>(ty_txn_alloc(txn, words_of(number) * 8));
        ASSERT_NE(nullptr, block) << ty_error_text();
        for (size_t i = 0; i < words_of(number); ++i)
            block[i] = word_of(number, i);
        ASSERT_OK(ty_declare(txn, slot, sizeof *slot));
        if (*slot) {
            ASSERT_OK(ty_txn_free(txn, *slot));
        }
        *slot = block;
        ASSERT_OK(ty_commit_async(txn, lsn));
    }
    // Its block is what it was after its last transaction up to the LSN; what came after is forgotten.
    void check(const uint64_t *block, uint64_t lsn) {
        EXPECT_GE(lsn, acknowledged);
        while (!lsns.empty() && lsns.back() > lsn)
            lsns.pop_back();
        uint64_t number = lsns.size();
        ASSERT_EQ(number == 0, block == nullptr);
        for (size_t i = 0; number != 0 && i < words_of(number); ++i)
            ASSERT_EQ(word_of(number, i), block[i]) << "word " << i << " of transaction " << number;
    }
};

// A device that takes its time: a write of another thread than the closing one is not over when the close begins.
struct slow_device {
    static constexpr std::chrono::milliseconds write_time{50};
    const std::thread::id closer = std::this_thread::get_id();
    std::atomic<bool> writes{false}, closes{false};

    static void hook(void *context, bool done) {
        auto &self = *static_cast<slow_device *>(context);
        if (!done || std::this_thread::get_id() == self.closer)
            return;
        self.writes = true;
        while (!self.closes)
            std::this_thread::yield();
        const auto end = std::chrono::steady_clock::now() + write_time;
        while (std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
    }
};

// X11: the log's thread asks the image for its files after each write. (It was a fault where the image had ended.)
TEST_F(background_test, closed_while_the_log_is_written) {
    open();
    auto *number = static_cast<uint64_t *>(make("number", 8));
    slow_device device;
    os::sim_set_write_hook(files.get(), slow_device::hook, &device);
    ty_txn *txn = begin();
    ASSERT_OK(ty_declare(txn, number, 8));
    *number = 7;
    ASSERT_OK(ty_commit_async(txn, nullptr));
    ASSERT_TRUE(comes_true([&] { return device.writes.load(); }));
    device.closes = true;
    ASSERT_OK(ty_close(heap));
    heap = nullptr;
    os::sim_set_write_hook(files.get(), nullptr, nullptr);
    open();
    EXPECT_EQ(7u, *static_cast<uint64_t *>(ty_root(heap, "number")));
}

TEST_F(background_test, closed_and_discarded_amid_commits) {
    options.snapshot_interval_ms = 1;
    options.snapshot_dirty_bytes = 256 << 10;
    open();
    auto **slots = reinterpret_cast<uint64_t **>(make("slots", writers * 8));
    writer all[writers];
    for (int round = 0; round < 8; ++round) {
        SCOPED_TRACE(round);
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < writers; ++i)
            threads.emplace_back([&, i] { all[i].run(heap, &slots[i], 40 + unsigned(round) * 20, i == 0); });
        for (std::thread &thread : threads)
            thread.join();
        uint64_t last = txn_stats_of(heap).lsn;
        bool close = round % 2 == 0;
        ASSERT_OK(close ? ty_close(heap) : ty_discard(heap));
        heap = nullptr;
        open();
        ASSERT_LE(report.lsn, last);
        if (close) {
            EXPECT_EQ(last, report.lsn);
            EXPECT_EQ(0u, report.replayed_transactions);
        }
        size_t blocks = 1, transactions = 1;
        for (unsigned i = 0; i < writers; ++i) {
            all[i].check(slots[i], report.lsn);
            blocks += slots[i] != nullptr;
            transactions += all[i].lsns.size();
        }
        EXPECT_EQ(report.lsn, transactions);
        EXPECT_EQ(blocks, live_blocks(heap)) << "a block that was freed is there, or the other way round";
        expect_sound(heap);
        if (HasFailure())
            return;
    }
}

// ---- A forked child

int refused(ty_status status) {
    return status == TY_E_FORKED ? 0 : 1;
}

// What differs from what must be, in the child: a bit each.
int child_calls(ty_heap *heap, ty_txn *txn, uint64_t *words, const ty_open_options &options) {
    bool durable = false;
    uint64_t number = 0;
    ty_txn_stats stats{};
    stats.struct_size = sizeof stats;
    ty_snapshot_stats snapshots{};
    snapshots.struct_size = sizeof snapshots;
    int wrong = refused(ty_durable(heap, 0, true, &durable));
    wrong |= refused(ty_durable(heap, 0, false, &durable)) << 1;
    wrong |= refused(ty_commit(txn)) << 2;
    wrong |= refused(ty_commit_async(txn, &number)) << 3;
    wrong |= refused(ty_get_txn_stats(heap, &stats)) << 4;
    wrong |= refused(ty_txn_lock_object(txn, words)) << 15;
    wrong |= refused(ty_get_snapshot_stats(heap, &snapshots)) << 16;
    wrong |= refused(ty_background_work_status(heap)) << 17;
    wrong |= (ty_rollback(txn) == TY_OK && *words == 1 ? 0 : 1) << 5; // it only changes the child's memory
    wrong |= refused(ty_begin(heap, nullptr, &txn)) << 6;
    wrong |= refused(ty_read_begin(heap)) << 7;
    wrong |= (ty_reserve(heap, 64) == nullptr ? 0 : 1) << 8;
    wrong |= refused(ty_snapshot(heap)) << 9;
    wrong |= refused(ty_run_background_work(heap)) << 10;
    wrong |= refused(ty_rebuild(&heap, &options, nullptr)) << 11;
    wrong |= refused(ty_close(heap)) << 12;
    wrong |= (*words == 1 ? 0 : 1) << 13; // what was committed can be read
    wrong |= (ty_discard(heap) == TY_OK ? 0 : 1) << 14;
    return wrong;
}

TEST_F(background_test, a_forked_child_is_refused) {
    temporary_folder folder; // the simulated disk's lock may be held by a thread that the child has not got
    std::string path = folder.file("heap.ty");
    options.storage = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    uint64_t *words = make("words", 64);
    add(words, 1, 1, 1);
    ty_txn *txn = begin();
    ASSERT_OK(ty_declare(txn, words, 8));
    *words = 2;
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        int wrong = child_calls(heap, txn, words, options);
        _exit(write(ends[1], &wrong, sizeof wrong) == sizeof wrong ? 0 : 1);
    }
    close(ends[1]);
    int wrong = -1, status = -1;
    EXPECT_EQ(ssize_t{sizeof wrong}, read(ends[0], &wrong, sizeof wrong));
    close(ends[0]);
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_EQ(0, wrong);
    EXPECT_EQ(2u, *words);
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, &report));
    EXPECT_EQ(3u, report.lsn);
    EXPECT_EQ(2u, *words);
    expect_sound(heap);
}

// ---- Procedures

constexpr uint64_t triple_id = 0x7465737402;

ty_status triple(ty_heap *heap, const void *, size_t, void *) {
    *static_cast<uint64_t *>(ty_root(heap, "words")) *= 3;
    return TY_OK;
}

TEST_F(background_test, a_procedure_is_replayed_if_it_is_registered) {
    ASSERT_OK(ty_register_procedure(triple_id, "triple", triple, nullptr));
    open();
    uint64_t *words = make("words", 64);
    add(words, 1, 1, 7);
    ty_txn *txn = begin();
    ASSERT_OK(ty_log_procedure(txn, triple_id, nullptr, 0));
    ASSERT_OK(triple(heap, nullptr, 0, nullptr));
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
    ASSERT_OK(ty_register_procedure(triple_id, nullptr, nullptr, nullptr));
    for (int round = 0; round < 2; ++round) // the refusal changes nothing
        EXPECT_EQ(TY_E_NOT_FOUND, ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_register_procedure(triple_id, "triple", triple, nullptr));
    open();
    EXPECT_EQ(21u, *words);
    EXPECT_EQ(3u, report.replayed_transactions);
    ASSERT_OK(ty_register_procedure(triple_id, nullptr, nullptr, nullptr));
}

} // namespace
