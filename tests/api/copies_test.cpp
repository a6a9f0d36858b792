// Goal: TY_OPEN_COPY of a heap that another process writes to gives a state that was committed, whole, and not older
// than what was acknowledged before the call. Method: a child writes: each step gives all words of a table, which are
// spread over pages, the same number. What it begins and what is acknowledged stands in memory that it shares with the
// test, which opens copies all the while.
#include "fixture.hpp"
#include "tests/effort.hpp"
#include "tests/units.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace api_test;
using namespace taiyen::test;

namespace {

constexpr unsigned thread_max = 3;

// What the child does, as the test sees it.
struct shared_state {
    std::atomic<bool> ready{false};
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> begun[thread_max];
    std::atomic<uint64_t> acknowledged[thread_max];
};

class shared_memory {
public:
    shared_memory()
        : state_(new (mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                     shared_state{}) {}
    ~shared_memory() { munmap(state_, sizeof *state_); }
    shared_memory(const shared_memory &) = delete;
    shared_memory &operator=(const shared_memory &) = delete;
    shared_state &operator*() const { return *state_; }
    shared_state *operator->() const { return state_; }

private:
    shared_state *state_;
};

constexpr size_t words_per_page = 512;
struct table {
    uint64_t rows[thread_max][64 * words_per_page]; // a word of each page, all the same number
};

struct writer_kind {
    const char *name;
    ty_kind kind;
    bool concurrent;
    size_t journal_limit_bytes;
    size_t log_bytes;
    uint32_t streams;
    bool asynchronous;
    bool snapshots; // between commits
    uint64_t
        steps; // of a session: then the heap is closed and opened again, as a snapshot heap in turn; 0: one session
};

ty_open_options options_of(const writer_kind &kind) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = kind.kind;
    options.concurrent = kind.concurrent;
    options.limit_bytes = 64 * mb;
    options.staging_bytes = 8 * mb;
    options.journal_limit_bytes = kind.journal_limit_bytes;
    options.log_bytes = kind.log_bytes;
    options.log_streams = kind.streams;
    return options;
}

ty_status step_of_snapshots(ty_heap *heap, table *all, uint64_t number) {
    for (size_t i = 0; i < std::size(all->rows[0]); i += words_per_page)
        all->rows[0][i] = number;
    return ty_snapshot(heap);
}

// Closed in order, and opened as what it was, or for this session without its log.
ty_status open_again(const writer_kind &kind, const std::string &path, bool without_log, ty_heap **heap, table **all) {
    ty_open_options options = options_of(kind);
    if (without_log)
        options.kind = TY_SNAPSHOT;
    if (ty_status status = ty_close(*heap))
        return status;
    ty_status status;
    while ((status = ty_open(path.c_str(), &options, heap, nullptr)) == TY_E_BUSY)
        std::this_thread::yield(); // the test reads the heap that nobody writes to
    if (!status)
        *all = static_cast<table *>(ty_root(*heap, "table"));
    return status;
}

ty_status step_of_one(const writer_kind &kind, ty_heap *heap, table *all, uint64_t number) {
    ty_txn *txn = nullptr;
    ty_status status = ty_begin(heap, nullptr, &txn);
    for (size_t i = 0; i < std::size(all->rows[0]) && !status; i += words_per_page) {
        status = ty_declare(txn, &all->rows[0][i], sizeof all->rows[0][i]);
        all->rows[0][i] = number;
    }
    if (!status)
        status = kind.asynchronous ? ty_commit_async(txn, nullptr) : ty_commit(txn);
    if (!status && kind.snapshots && number % 8 == 0)
        status = ty_snapshot(heap);
    return status;
}

struct row_step {
    table *all;
    unsigned thread;
    uint64_t number;
};

ty_status step_of_many(ty_heap *heap, row_step step) {
    return ty_atomically(
        heap, nullptr,
        [](ty_atomic_txn *txn, void *context) {
            const auto &of = *static_cast<row_step *>(context);
            for (size_t i = 0; i < 8 * words_per_page; i += words_per_page)
                if (ty_status status = ty_atomic_store(txn, &of.all->rows[of.thread][i], &of.number, sizeof of.number))
                    return status;
            return TY_OK;
        },
        &step, nullptr);
}

ty_status make_table(const writer_kind &kind, ty_heap *heap, table **all) {
    if (kind.kind == TY_SNAPSHOT) {
        *all = static_cast<table *>(ty_alloc(heap, sizeof(table)));
        memset(*all, 0, sizeof **all);
        const ty_status status = ty_root_set(heap, "table", *all);
        return status ? status : ty_snapshot(heap);
    }
    ty_txn *txn = nullptr;
    if (ty_status status = ty_begin(heap, nullptr, &txn))
        return status;
    *all = static_cast<table *>(ty_txn_alloc(txn, sizeof(table)));
    memset(*all, 0, sizeof **all);
    const ty_status status = ty_txn_root_set(txn, "table", *all);
    return status ? status : ty_commit(txn);
}

// The child: writes until the parent stops it.
bool write_heap(const writer_kind &kind, const std::string &path, shared_state &state) {
    const ty_open_options options = options_of(kind);
    ty_heap *heap = nullptr;
    table *all = nullptr;
    if (ty_open(path.c_str(), &options, &heap, nullptr) || make_table(kind, heap, &all))
        return false;
    state.ready = true;
    std::atomic<bool> good{true};
    auto write = [&](unsigned thread) {
        for (uint64_t number = 1; !state.stop && good; ++number) {
            state.begun[thread] = number;
            ty_status status = TY_OK;
            if (kind.steps && number % kind.steps == 0)
                status = open_again(kind, path, number / kind.steps % 2, &heap, &all);
            if (status)
                good = false;
            else if (ty_heap_kind(heap) == TY_SNAPSHOT)
                status = step_of_snapshots(heap, all, number);
            else if (kind.concurrent)
                status = step_of_many(heap, {all, thread, number});
            else
                status = step_of_one(kind, heap, all, number);
            if (status)
                good = false;
            if (!kind.asynchronous)
                state.acknowledged[thread] = number;
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < (kind.concurrent ? thread_max : 1); ++i)
        threads.emplace_back(write, i);
    write(0);
    for (std::thread &one : threads)
        one.join();
    return good && ty_close(heap) == TY_OK;
}

struct seen {
    uint64_t number[thread_max];
};

void read_copy(const writer_kind &kind, ty_heap *copy, seen *numbers) {
    const auto *all = static_cast<const table *>(ty_root(copy, "table"));
    ASSERT_NE(nullptr, all);
    for (unsigned thread = 0; thread < thread_max; ++thread) {
        numbers->number[thread] = all->rows[thread][0];
        const size_t words = kind.concurrent ? 8 * words_per_page : std::size(all->rows[thread]);
        for (size_t i = 0; i < words; i += words_per_page)
            ASSERT_EQ(all->rows[thread][0], all->rows[thread][i]) << "thread " << thread << ", word " << i;
    }
    EXPECT_EQ(TY_OK, ty_heap_verify(copy, nullptr, nullptr)) << ty_error_text();
}

class copies : public testing::TestWithParam<writer_kind> {
protected:
    void look(const shared_state &state) {
        uint64_t acknowledged[thread_max];
        for (unsigned i = 0; i < thread_max; ++i)
            acknowledged[i] = state.acknowledged[i];
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_OPEN_COPY;
        ty_heap *copy = nullptr;
        ty_report report{};
        report.struct_size = sizeof report;
        ASSERT_EQ(TY_OK, ty_open(path().c_str(), &options, &copy, &report)) << ty_error_text();
        seen numbers{};
        read_copy(GetParam(), copy, &numbers);
        for (unsigned i = 0; i < thread_max; ++i) {
            EXPECT_GE(numbers.number[i], acknowledged[i]);
            EXPECT_LE(numbers.number[i], state.begun[i]);
        }
        in_use_ += report.found == TY_RECOVERY_IN_USE;
        EXPECT_EQ(TY_OK, ty_close(copy)) << ty_error_text();
    }
    std::string path() const { return folder_.path("heap.ty"); }

    folder folder_;
    unsigned in_use_ = 0;
};

TEST_P(copies, of_a_heap_that_is_written_to) {
    const auto rounds = static_cast<unsigned>(taiyen::test::effort(12));
    shared_memory state;
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0)
        _exit(write_heap(GetParam(), path(), *state) ? 0 : 1);
    int ended = 0;
    while (!state->ready && waitpid(child, &ended, WNOHANG) == 0)
        std::this_thread::yield();
    ASSERT_TRUE(state->ready);
    for (unsigned i = 0; i < rounds && !HasFatalFailure(); ++i)
        look(*state);
    if (GetParam().steps == 0) {
        EXPECT_EQ(rounds, in_use_);
    }
    state->stop = true;
    ASSERT_EQ(child, waitpid(child, &ended, 0));
    EXPECT_EQ(0, ended);
    look(*state); // what is closed is opened as it is
    for (const auto &left : std::filesystem::directory_iterator(folder_.root()))
        EXPECT_TRUE(left.path().string().starts_with(path())) << left.path(); // nothing but the heap's files
}

INSTANTIATE_TEST_SUITE_P(
    kinds, copies,
    testing::Values(writer_kind{"snapshots", TY_SNAPSHOT, false, 0, 0, 0, false, false, 0},
                    writer_kind{"a_short_journal", TY_SNAPSHOT, false, 4 * mb, 0, 0, false, false, 0},
                    writer_kind{"commits", TY_TRANSACTIONAL, false, 0, 4 * mb, 1, false, false, 0},
                    writer_kind{"commits_and_snapshots", TY_TRANSACTIONAL, false, 4 * mb, 4 * mb, 1, false, true, 0},
                    writer_kind{"a_short_log", TY_TRANSACTIONAL, false, 0, mb, 1, true, false, 0},
                    writer_kind{"log_streams", TY_TRANSACTIONAL, true, 0, 4 * mb, 3, false, false, 0},
                    writer_kind{"sessions", TY_SNAPSHOT, false, 0, 0, 0, false, false, 20},
                    writer_kind{"sessions_with_a_log", TY_TRANSACTIONAL, false, mb, mb, 1, false, false, 20}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
