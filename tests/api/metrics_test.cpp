// Goal: what a metrics page says is what the calls say (BD1), whole; nothing that others write to it harms the program
// (BD2); nobody runs and nothing is counted while nobody looks (BD3); a heap does without (BD4). Method: heaps of this
// process and of a child are looked at through their metrics pages; a hostile viewer writes to all that it can write
// to.
#include "fixture.hpp"
#include "src/api/metrics_layout.hpp"
#include "src/os/calls/syscalls.hpp"
#include "src/store/image/snapshots/seqlock.hpp"
#include "src/txn/transactions/txn_runtime.hpp"
#include "tests/effort.hpp"
#include "tests/stats.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <numeric>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <taiyen/metrics.h>
#include <thread>
#include <unistd.h>

using namespace api_test;

namespace {

constexpr uint64_t timeout_ms = 20000; // for a look that comes at once

ty_open_options watched_options(ty_kind kind = TY_TRANSACTIONAL) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = kind;
    options.limit_bytes = size_t{64} << 20;
    options.log_bytes = size_t{4} << 20;
    return options;
}

class opened {
public:
    explicit opened(const std::string &path, const ty_open_options &options = watched_options()) {
        EXPECT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    }
    ~opened() {
        if (heap != nullptr) {
            EXPECT_EQ(ty_discard(heap), TY_OK);
        }
    }
    opened(const opened &) = delete;
    opened &operator=(const opened &) = delete;
    ty_heap *heap = nullptr;
};

class viewer {
public:
    explicit viewer(const std::string &path) { status = ty_metrics_open(path.c_str(), nullptr, &metrics_page); }
    ~viewer() { ty_metrics_close(metrics_page); }
    viewer(const viewer &) = delete;
    viewer &operator=(const viewer &) = delete;
    ty_metrics read() {
        ty_metrics figures{};
        figures.struct_size = sizeof figures;
        EXPECT_EQ(ty_metrics_read(metrics_page, timeout_ms, &figures), TY_OK) << ty_error_text();
        return figures;
    }
    uint64_t timed() {
        uint64_t times[2][TY_METRICS_BUCKETS];
        ty_metrics_get_times(metrics_page, times);
        return std::accumulate(&times[0][0], &times[0][0] + 2 * TY_METRICS_BUCKETS, uint64_t{0});
    }
    ty_metrics_page *metrics_page = nullptr;
    ty_status status;
};

void commit_some(ty_heap *heap, int count) {
    for (int i = 0; i < count; ++i) {
        ty_txn *txn = nullptr;
        ASSERT_EQ(ty_begin(heap, nullptr, &txn), TY_OK);
        ASSERT_NE(ty_txn_alloc(txn, 100), nullptr);
        ASSERT_EQ(ty_commit(txn), TY_OK);
    }
}

// The memory that the metrics page lies in, found as anybody may find it.
int descriptor_of_metrics() {
    for (int fd = 3; fd < 4096; ++fd) {
        char target[256] = {};
        if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1) > 0 &&
            strncmp(target, "/memfd:taiyen-", 14) == 0)
            return fd;
    }
    return -1;
}

// A metrics page that the test writes, of a heap that has none of its own.
class written_metrics {
public:
    explicit written_metrics(const std::string &path) : heap_(path, calls_alone()) {
        ty_info info{};
        info.struct_size = sizeof info;
        EXPECT_EQ(ty_read_info(path.c_str(), nullptr, &info), TY_OK);
        char name[taiyen::metrics_name_bytes];
        taiyen::metrics_name(info.identity, name);
        EXPECT_EQ(taiyen::os::shared_make(name, taiyen::metrics_bytes, &shared_), TY_OK);
        shown().magic = taiyen::metrics_magic;
        shown().version = taiyen::metrics_version;
        shown().content_bytes = sizeof shown().content;
        memcpy(content_.identity, info.identity, sizeof content_.identity);
    }
    ~written_metrics() { taiyen::os::shared_end(shared_); }
    written_metrics(const written_metrics &) = delete;
    written_metrics &operator=(const written_metrics &) = delete;
    taiyen::shared_metrics &shown() {
        return *reinterpret_cast<taiyen::shared_metrics *>(static_cast<char *>(shared_.memory) +
                                                           taiyen::metrics_request_bytes);
    }
    void write(uint64_t n) {
        content_.looks = content_.touched_bytes = content_.lsn = content_.dirty_pages = n;
        content_.times[1][TY_METRICS_BUCKETS - 1] = n;
        content_.dirty_cell_bytes = 4096;
        content_.dirty_cells = TY_METRICS_CELLS;
        content_.dirty[TY_METRICS_CELLS - 1] = static_cast<uint32_t>(n);
        shown().turn.fetch_add(1);
        taiyen::metrics_copy(&shown().content, &content_);
        shown().turn.fetch_add(1);
    }

private:
    static ty_open_options calls_alone() {
        ty_open_options options = watched_options();
        options.background = TY_BACKGROUND_CALLS;
        return options;
    }
    opened heap_;
    taiyen::os::shared_memory shared_;
    taiyen::metrics_content content_{};
};

} // namespace

// BD1.
TEST(metrics_page, says_what_the_calls_say) {
    folder files;
    opened one(files.path("heap"));
    commit_some(one.heap, 50);
    ASSERT_EQ(ty_snapshot(one.heap), TY_OK);
    commit_some(one.heap, 7);
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK) << ty_error_text();
    const ty_metrics figures = look.read();
    const ty_txn_stats transactions = taiyen::test::txn_stats_of(one.heap);
    const ty_snapshot_stats snapshots = taiyen::test::snapshot_stats_of(one.heap);
    uint64_t dirty = 0;
    ASSERT_EQ(ty_dirty_count(one.heap, &dirty), TY_OK);
    EXPECT_EQ(figures.known, TY_METRICS_SNAPSHOTS | TY_METRICS_TRANSACTIONS | TY_METRICS_BLOCKS | TY_METRICS_DIRTY |
                                 TY_METRICS_MEMORY);
    EXPECT_EQ(figures.process, static_cast<uint64_t>(getpid()));
    EXPECT_EQ(figures.base, reinterpret_cast<uintptr_t>(ty_heap_base(one.heap)));
    EXPECT_EQ(figures.limit_bytes, size_t{64} << 20);
    EXPECT_EQ(figures.transactions, 57u);
    EXPECT_EQ(figures.transactions, transactions.transactions);
    EXPECT_EQ(figures.entries, transactions.entries);
    EXPECT_EQ(figures.record_bytes, transactions.record_bytes);
    EXPECT_EQ(figures.log_bytes, transactions.log_bytes);
    EXPECT_EQ(figures.log_frames, transactions.log_frames);
    EXPECT_EQ(figures.used_log_bytes, transactions.used_log_bytes);
    EXPECT_EQ(figures.size_log_bytes, transactions.size_log_bytes);
    EXPECT_EQ(figures.lsn, transactions.lsn);
    EXPECT_EQ(figures.durable_lsn, transactions.durable_lsn);
    EXPECT_EQ(figures.epoch, ty_heap_epoch(one.heap));
    EXPECT_EQ(figures.snapshots, snapshots.snapshots);
    EXPECT_EQ(figures.snapshot_pages, snapshots.pages);
    EXPECT_EQ(figures.journal_bytes, snapshots.journal_bytes);
    EXPECT_EQ(figures.dirty_pages, dirty);
}

TEST(metrics_page, reports_classes_and_snapshots) {
    folder files;
    opened one(files.path("heap"));
    for (int i = 0; i < 70; ++i) {
        commit_some(one.heap, 1);
        ASSERT_EQ(ty_snapshot(one.heap), TY_OK);
    }
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK) << ty_error_text();
    (void)look.read();
    std::vector<ty_class_stats> reported, known;
    auto add = [](const ty_class_stats *stats, void *all) {
        static_cast<std::vector<ty_class_stats> *>(all)->push_back(*stats);
        return true;
    };
    ty_metrics_each_class(look.metrics_page, add, &reported);
    ASSERT_EQ(ty_each_class(one.heap, add, &known), TY_OK);
    ASSERT_EQ(reported.size(), known.size());
    for (size_t i = 0; i < reported.size(); ++i)
        EXPECT_EQ(memcmp(&reported[i], &known[i], sizeof reported[i]), 0);
    std::vector<ty_metrics_snapshot> snapshots;
    auto keep = [](const ty_metrics_snapshot *snapshot, void *all) {
        static_cast<std::vector<ty_metrics_snapshot> *>(all)->push_back(*snapshot);
        return true;
    };
    ty_metrics_each_snapshot(look.metrics_page, keep, &snapshots);
    ASSERT_EQ(snapshots.size(), 64u);
    for (size_t i = 1; i < snapshots.size(); ++i)
        EXPECT_EQ(snapshots[i].epoch, snapshots[i - 1].epoch + 1);
    const ty_snapshot_stats last = taiyen::test::snapshot_stats_of(one.heap);
    EXPECT_EQ(snapshots.back().epoch, ty_heap_epoch(one.heap));
    EXPECT_EQ(snapshots.back().pause_ns, last.last_pause_ns);
    EXPECT_EQ(snapshots.back().durable_ns, last.last_durable_ns);
    EXPECT_EQ(snapshots.back().bytes, last.last_bytes);
}

namespace {

// The dirty pages of the touched part as ty_dirty_bitmap has them, but of free pages, which no snapshot writes.
std::vector<uint32_t> dirty_by_cell(ty_heap *heap, uint64_t cell_bytes, uint64_t cells) {
    std::vector<uint32_t> counts(TY_METRICS_CELLS);
    const uint64_t pages = cells * cell_bytes / 4096;
    std::vector<uint64_t> bits(pages / 64 + 1);
    EXPECT_EQ(ty_dirty_bitmap(heap, 0, pages, bits.data()), TY_OK);
    auto forget_free = [](const ty_extent *extent, void *context) {
        auto &all = *static_cast<std::pair<ty_heap *, std::vector<uint64_t> *> *>(context);
        const auto first =
            static_cast<uint64_t>(static_cast<char *>(extent->address) - static_cast<char *>(ty_heap_base(all.first))) /
            4096;
        for (uint64_t page = first; extent->kind == TY_EXTENT_FREE && page < first + extent->size_bytes / 4096; ++page)
            if (page / 64 < all.second->size())
                (*all.second)[page / 64] &= ~(uint64_t{1} << page % 64);
        return true;
    };
    std::pair context{heap, &bits};
    EXPECT_EQ(ty_each_extent(heap, forget_free, &context), TY_OK);
    for (uint64_t page = 0; page < pages; ++page)
        counts[page * 4096 / cell_bytes] += static_cast<uint32_t>(bits[page / 64] >> page % 64 & 1);
    return counts;
}

} // namespace

// BD1: the cells of the dirty pages, of a heap with a page a cell and of one with several.
TEST(metrics_page, reports_where_dirty_pages_lie) {
    for (const size_t touched : {size_t{1} << 20, size_t{20} << 20}) {
        folder files;
        opened one(files.path("heap"), watched_options(TY_SNAPSHOT));
        std::vector<char *> blocks;
        for (size_t at = 0; at < touched; at += 64 << 10)
            blocks.push_back(static_cast<char *>(ty_alloc_zeroed(one.heap, 64 << 10)));
        for (size_t i = 0; i < blocks.size(); i += 5)
            ASSERT_EQ(ty_free(blocks[i]), TY_OK);
        ASSERT_EQ(ty_snapshot(one.heap), TY_OK);
        ASSERT_EQ(ty_run_background_work(one.heap), TY_OK);
        for (size_t i = 0; i < blocks.size(); ++i)
            for (size_t page = 0; i % 5 != 0 && page < i % 16; ++page)
                blocks[i][page * 4096] = 1;
        viewer look(files.path("heap"));
        ASSERT_EQ(look.status, TY_OK) << ty_error_text();
        const ty_metrics figures = look.read();
        ASSERT_TRUE(figures.known & TY_METRICS_DIRTY);
        EXPECT_EQ(figures.dirty_cell_bytes, touched < size_t{4} << 20 ? 4096u : 32768u);
        EXPECT_GE(figures.dirty_cells * figures.dirty_cell_bytes, figures.touched_bytes);
        EXPECT_LT((figures.dirty_cells - 1) * figures.dirty_cell_bytes, figures.touched_bytes);
        uint32_t dirty[TY_METRICS_CELLS];
        ty_metrics_get_dirty(look.metrics_page, dirty);
        const std::vector<uint32_t> known = dirty_by_cell(one.heap, figures.dirty_cell_bytes, figures.dirty_cells);
        EXPECT_EQ(std::vector<uint32_t>(dirty, dirty + TY_METRICS_CELLS), known);
        const uint64_t sum = std::accumulate(known.begin(), known.end(), uint64_t{0});
        EXPECT_GT(sum, blocks.size());
        EXPECT_LE(sum, figures.dirty_pages);
    }
}

// BD1.
TEST(metrics_page, reports_undo) {
    folder files;
    opened one(files.path("heap"), watched_options(TY_SNAPSHOT));
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK) << ty_error_text();
    EXPECT_FALSE(look.read().known & TY_METRICS_UNDO);
    ty_undo_options small = TY_UNDO_OPTIONS_INIT;
    small.undo_bytes = 4096;
    ASSERT_EQ(ty_undo_attach(one.heap, &small), TY_OK);
    auto *block = static_cast<char *>(ty_alloc_zeroed(one.heap, 1000));
    const auto agrees = [&](const char *after) {
        const ty_undo_stats known = taiyen::test::undo_stats_of(one.heap);
        (void)look.read();
        const ty_metrics figures = look.read(); // one that began after that
        ASSERT_TRUE(figures.known & TY_METRICS_UNDO) << after;
        EXPECT_EQ(figures.undoable, known.undoable) << after;
        EXPECT_EQ(figures.redoable, known.redoable) << after;
        EXPECT_EQ(figures.kept_blocks, known.kept_blocks) << after;
        EXPECT_EQ(figures.kept_bytes, known.kept_bytes) << after;
        EXPECT_GE(figures.undo_used_bytes, known.undo_bytes) << after;
        EXPECT_GE(figures.undo_room_bytes, figures.undo_used_bytes) << after;
        EXPECT_GE(figures.undo_room_bytes, known.undo_size) << after;
    };
    agrees("the attach");
    for (int i = 0; i < 30; ++i) { // more than fit
        ASSERT_EQ(ty_undo_begin(one.heap, "write"), TY_OK);
        ASSERT_EQ(ty_undo_record(one.heap, block, 200), TY_OK);
        void *other = ty_undo_alloc(one.heap, 5000);
        ASSERT_NE(other, nullptr);
        ASSERT_EQ(ty_undo_free(one.heap, other), TY_OK);
        ASSERT_EQ(ty_undo_end(one.heap), TY_OK);
    }
    agrees("the end");
    ASSERT_EQ(ty_undo(one.heap), TY_OK);
    ASSERT_EQ(ty_undo(one.heap), TY_OK);
    agrees("two undos");
    ASSERT_EQ(ty_redo(one.heap), TY_OK);
    agrees("a redo");
    ASSERT_EQ(ty_undo_exit(one.heap), TY_OK);
    agrees("the exit");
    ASSERT_EQ(ty_undo_begin(one.heap, nullptr), TY_OK);
    ASSERT_EQ(ty_undo_record(one.heap, block, 200), TY_OK);
    ASSERT_EQ(ty_undo_cancel(one.heap), TY_OK);
    agrees("a cancel");
    ASSERT_EQ(ty_undo_detach(one.heap, true), TY_OK);
    (void)look.read();
    EXPECT_FALSE(look.read().known & TY_METRICS_UNDO);
    ASSERT_EQ(ty_undo_attach(one.heap, nullptr), TY_OK);
    agrees("another attach");
    ASSERT_EQ(ty_undo_clear(one.heap), TY_OK);
    agrees("a clear");
}

// BD1: what undo shows while somebody reads is whole.
TEST(metrics_page, seqlock_is_whole) {
    taiyen::seqlock<7> words;
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (uint64_t n = 1; !done.load(); ++n) {
            const uint64_t written[7] = {n, n, n, n, n, n, n};
            words.publish(written);
        }
    });
    uint64_t reads = 0;
    for (int i = 0; i < 2000000 && !HasFailure(); ++i) {
        uint64_t read[7] = {};
        if (!words.read(read))
            continue;
        ++reads;
        for (const uint64_t word : read)
            EXPECT_EQ(word, read[0]);
    }
    done = true;
    writer.join();
    EXPECT_GT(reads, 0u);
}

// BD1: the bound of the options, and what is used of it once the heap is larger than that.
TEST(metrics_page, reports_private_memory) {
    folder files;
    ty_open_options options = watched_options(TY_SNAPSHOT);
    options.memory_bytes = size_t{2} << 20;
    opened one(files.path("heap"), options);
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK) << ty_error_text();
    ty_metrics figures = look.read();
    EXPECT_EQ(figures.memory_bound_bytes, size_t{2} << 20);
    EXPECT_EQ(figures.memory_allowed_bytes, size_t{2} << 20);
    EXPECT_FALSE(figures.known & TY_METRICS_COPIES);
    for (int i = 0; i < 64; ++i) {
        void *block = ty_alloc(one.heap, 256 << 10);
        ASSERT_NE(block, nullptr);
        memset(block, i + 1, 256 << 10);
        ASSERT_EQ(ty_snapshot(one.heap), TY_OK);
        ASSERT_EQ(ty_run_background_work(one.heap), TY_OK);
    }
    (void)look.read();
    figures = look.read();
    EXPECT_TRUE(figures.known & TY_METRICS_COPIES);
    EXPECT_GT(figures.copies_bytes, 0u);
    EXPECT_LT(figures.copies_bytes, figures.touched_bytes / 2);
    EXPECT_GT(figures.pages_evicted, 0u);
}

namespace {

// Writes another look when the last page of the first one is read.
struct amid_a_look {
    static inline written_metrics *fake;
    static inline char *page;

    static void write_another(int, siginfo_t *fault, void *) {
        if (fault->si_addr < page || fault->si_addr >= page + 4096)
            abort();
        mprotect(page, 4096, PROT_READ);
        fake->write(2);
    }
};

// Where else the same memory is mapped.
char *mapped_again(const char *memory) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("memfd:taiyen-") != std::string::npos)
            if (char *at = reinterpret_cast<char *>(std::stoull(line, nullptr, 16));
                at < memory || at >= memory + taiyen::metrics_bytes)
                return at;
    return nullptr;
}

} // namespace

// BD1.
TEST(metrics_page, a_look_amid_which_another_is_written_is_not_taken) {
    folder files;
    written_metrics fake(files.path("heap"));
    fake.write(1);
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK);
    char *mapped = mapped_again(reinterpret_cast<const char *>(&fake.shown()) - taiyen::metrics_request_bytes);
    ASSERT_NE(mapped, nullptr);
    amid_a_look::fake = &fake;
    amid_a_look::page = mapped + taiyen::metrics_bytes - 4096;
    struct sigaction act {
    }, before{};
    act.sa_sigaction = amid_a_look::write_another;
    act.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGSEGV, &act, &before), 0);
    ASSERT_EQ(mprotect(amid_a_look::page, 4096, PROT_NONE), 0);
    ty_metrics figures{};
    figures.struct_size = sizeof figures;
    ty_status status;
    while ((status = ty_metrics_read(look.metrics_page, 0, &figures)) == TY_E_BUSY)
        continue;
    sigaction(SIGSEGV, &before, nullptr);
    EXPECT_EQ(status, TY_OK);
    EXPECT_EQ(figures.looks, 2u);
    uint32_t dirty[TY_METRICS_CELLS];
    ty_metrics_get_dirty(look.metrics_page, dirty);
    EXPECT_EQ(dirty[TY_METRICS_CELLS - 1], 2u);
}

// BD1: who reads sees one look, whatever is written meanwhile. All figures of a look are the same number here.
TEST(metrics_page, looks_are_whole) {
    folder files;
    written_metrics fake(files.path("heap"));
    std::atomic<bool> done{false};
    std::atomic<int> looked{0};
    // For each look two are written, the second one at another time each time: amid the look of the first, here and
    // there.
    std::thread writer([&] {
        int seen = 0;
        for (uint64_t n = 1; !done; n += 2) {
            fake.write(n);
            for (uint64_t turns = n * 37 % 5000; turns > 0 && !done; --turns)
                continue;
            fake.write(n + 1);
            while (looked == seen && !done)
                std::this_thread::yield();
            seen = looked;
        }
    });
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK);
    for (const int most = taiyen::test::effort(20000); looked < most && !HasFailure(); ++looked) {
        ty_metrics figures{};
        figures.struct_size = sizeof figures;
        ty_status status;
        while ((status = ty_metrics_read(look.metrics_page, 0, &figures)) == TY_E_BUSY)
            std::this_thread::yield();
        EXPECT_EQ(status, TY_OK);
        EXPECT_EQ(figures.touched_bytes, figures.looks);
        EXPECT_EQ(figures.lsn, figures.looks);
        EXPECT_EQ(figures.dirty_pages, figures.looks);
        uint64_t times[2][TY_METRICS_BUCKETS];
        ty_metrics_get_times(look.metrics_page, times);
        EXPECT_EQ(times[1][TY_METRICS_BUCKETS - 1], figures.looks);
        uint32_t dirty[TY_METRICS_CELLS];
        ty_metrics_get_dirty(look.metrics_page, dirty);
        EXPECT_EQ(dirty[TY_METRICS_CELLS - 1], figures.looks);
    }
    done = true;
    writer.join();
    fake.shown().turn |= 1; // a writer that stopped in the midst of it
    ty_metrics figures{};
    figures.struct_size = sizeof figures;
    expect_refusal(ty_metrics_read(look.metrics_page, 0, &figures), TY_E_BUSY);
}

// BD3.
TEST(metrics_page, counts_only_while_somebody_looks) {
    using namespace taiyen;
    folder files;
    opened one(files.path("heap"));
    commit_some(one.heap, 100);
    const int fd = descriptor_of_metrics();
    ASSERT_GE(fd, 0);
    void *memory = mmap(nullptr, metrics_bytes, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const auto &shown = *reinterpret_cast<shared_metrics *>(static_cast<char *>(memory) + metrics_request_bytes);
    EXPECT_EQ(shown.turn.load(), 0u); // nobody ran
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK);
    (void)look.read();
    EXPECT_EQ(look.timed(), 0u); // of those before, none was timed
    commit_some(one.heap, 100);
    (void)look.read();
    (void)look.read(); // one that began after the last commit
    EXPECT_EQ(look.timed(), 100u);
    // Nobody asks any more: soon nothing is timed, and there is no other look.
    while (runtime_of(one.heap)->times.wanted.load())
        std::this_thread::yield();
    const uint64_t turn = shown.turn.load();
    commit_some(one.heap, 100);
    EXPECT_EQ(shown.turn.load(), turn);
    (void)look.read();
    EXPECT_EQ(look.timed(), 100u);
    munmap(memory, metrics_bytes);
}

// BD2.
TEST(metrics_page, nothing_that_others_write_harms) {
    using namespace taiyen;
    folder files;
    opened one(files.path("heap"));
    const int fd = descriptor_of_metrics();
    ASSERT_GE(fd, 0);
    EXPECT_NE(ftruncate(fd, 0), 0); // the program would have no memory there
    EXPECT_NE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    void *memory = mmap(nullptr, metrics_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::atomic<bool> done{false};
    std::thread hostile([&] {
        uint32_t random = 1;
        while (!done.load())
            for (size_t i = 0; i < metrics_bytes / 4; ++i) {
                random = random * 1664525 + 1013904223;
                __atomic_store_n(static_cast<uint32_t *>(memory) + i, random >> (random % 31), __ATOMIC_RELAXED);
            }
    });
    commit_some(one.heap, 200);
    ASSERT_EQ(ty_snapshot(one.heap), TY_OK);
    commit_some(one.heap, 200);
    ASSERT_EQ(ty_close(one.heap), TY_OK); // also where the number is turned back all the while
    one.heap = nullptr;
    done = true;
    hostile.join();
    munmap(memory, metrics_bytes);
    opened again(files.path("heap"));
    EXPECT_EQ(ty_heap_verify(again.heap, nullptr, nullptr), TY_OK);
}

// BD2: what a program publishes may have been written by anybody.
TEST(metrics_page, hostile_metrics_pages_are_refused) {
    folder files;
    written_metrics fake(files.path("heap"));
    auto &content = fake.shown().content;
    for (uint64_t *count : {&content.class_count, &content.snapshot_count}) {
        fake.write(1);
        viewer look(files.path("heap"));
        ASSERT_EQ(look.status, TY_OK);
        EXPECT_EQ(look.read().looks, 1u);
        fake.write(2);
        *count = UINT64_MAX;
        ty_metrics figures{};
        figures.struct_size = sizeof figures;
        expect_refusal(ty_metrics_read(look.metrics_page, timeout_ms, &figures), TY_E_DAMAGED);
        fake.write(3);
        content.identity[0] ^= 1;
        expect_refusal(ty_metrics_read(look.metrics_page, timeout_ms, &figures), TY_E_DAMAGED);
        content.identity[0] ^= 1;
    }
    for (const auto &[cell_bytes, cells] : {std::pair<uint64_t, uint64_t>{4096, TY_METRICS_CELLS + 1},
                                            {4096, UINT64_MAX},
                                            {0, 1},
                                            {4095, 1},
                                            {3 * 4096, 1},
                                            {uint64_t{1} << 63, 2}}) {
        fake.write(1);
        viewer look(files.path("heap"));
        ASSERT_EQ(look.status, TY_OK);
        EXPECT_EQ(look.read().dirty_cells, TY_METRICS_CELLS);
        fake.write(2);
        content.dirty_cell_bytes = cell_bytes;
        content.dirty_cells = cells;
        ty_metrics figures{};
        figures.struct_size = sizeof figures;
        expect_refusal(ty_metrics_read(look.metrics_page, timeout_ms, &figures), TY_E_DAMAGED);
    }
    fake.shown().version += 1;
    expect_refusal(viewer(files.path("heap")).status, TY_E_FORMAT, "heap");
    fake.shown().version -= 1;
    fake.shown().content_bytes += 8;
    expect_refusal(viewer(files.path("heap")).status, TY_E_FORMAT, "heap");
}

TEST(metrics_page, of_another_process_that_is_killed) {
    folder files;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        opened one(files.path("heap"));
        char byte = 1;
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            commit_some(one.heap, 1);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    {
        viewer look(files.path("heap"));
        ASSERT_EQ(look.status, TY_OK) << ty_error_text();
        uint64_t before = look.read().transactions;
        EXPECT_EQ(look.read().process, static_cast<uint64_t>(child));
        EXPECT_GE(look.read().transactions, before);
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        ty_metrics figures{};
        figures.struct_size = sizeof figures;
        ty_status status = TY_OK;
        for (int i = 0; i < 3 && status == TY_OK; ++i) // a look that it had taken may be there still
            status = ty_metrics_read(look.metrics_page, timeout_ms, &figures);
        expect_refusal(status, TY_E_NOT_FOUND);
    }
    viewer dead(files.path("heap"));
    EXPECT_EQ(dead.status, TY_E_NOT_FOUND);
    expect_good_text(dead.status);
    close(ready[0]);
    close(ready[1]);
}

// BD4: without threads, without such memory, read-only, closed: the heap is as it always was.
TEST(metrics_page, a_heap_does_without) {
    folder files;
    ty_open_options options = watched_options();
    options.background = TY_BACKGROUND_CALLS;
    {
        opened one(files.path("heap"), options);
        commit_some(one.heap, 3);
        EXPECT_EQ(viewer(files.path("heap")).status, TY_E_NOT_FOUND);
        EXPECT_EQ(descriptor_of_metrics(), -1);
        EXPECT_EQ(ty_close(one.heap), TY_OK);
        one.heap = nullptr;
    }
    EXPECT_EQ(viewer(files.path("heap")).status, TY_E_NOT_FOUND);
    taiyen::os::sys::hook = [](taiyen::os::sys::call made) {
        return made == taiyen::os::sys::call::memfd_create ? EPERM : 0;
    };
    opened one(files.path("heap"));
    taiyen::os::sys::hook = nullptr;
    commit_some(one.heap, 3);
    EXPECT_EQ(viewer(files.path("heap")).status, TY_E_NOT_FOUND);
    EXPECT_EQ(ty_close(one.heap), TY_OK);
    one.heap = nullptr;
}

// BD4: a child has the memory, but the metrics page is its parent's.
TEST(metrics_page, a_forks_child_leaves_it_alone) {
    folder files;
    opened one(files.path("heap"));
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK);
    (void)look.read();
    EXPECT_EQ(in_child([&] {
                  const ty_status closed = ty_close(one.heap);
                  return closed == TY_E_FORKED && ty_discard(one.heap) == TY_OK;
              }),
              0);
    commit_some(one.heap, 3);
    (void)look.read();
    EXPECT_EQ(look.read().transactions, 3u);
}

// A heap whose end is refused goes on, and so does its metrics page.
TEST(metrics_page, is_there_again_after_a_close_that_is_refused) {
    folder files;
    opened one(files.path("heap"));
    ty_txn *txn = nullptr;
    ASSERT_EQ(ty_begin(one.heap, nullptr, &txn), TY_OK);
    EXPECT_NE(ty_close(one.heap), TY_OK);
    ASSERT_EQ(ty_rollback(txn), TY_OK);
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK) << ty_error_text();
    EXPECT_EQ(look.read().rollbacks, 1u);
}

// No file of the heap changes for it.
TEST(metrics_page, looking_changes_no_file) {
    folder files;
    opened one(files.path("heap"), watched_options(TY_SNAPSHOT));
    ASSERT_NE(ty_alloc(one.heap, 1000), nullptr);
    ASSERT_EQ(ty_snapshot(one.heap), TY_OK);
    ASSERT_EQ(ty_run_background_work(one.heap), TY_OK);
    const disk_state before = look_at_disk(files.root());
    viewer look(files.path("heap"));
    ASSERT_EQ(look.status, TY_OK);
    const ty_metrics figures = look.read();
    EXPECT_EQ(figures.known, TY_METRICS_SNAPSHOTS | TY_METRICS_BLOCKS | TY_METRICS_DIRTY | TY_METRICS_MEMORY);
    (void)look.read();
    EXPECT_EQ(look_at_disk(files.root()), before);
}
