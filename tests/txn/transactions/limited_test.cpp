// Goal: where the kernel lets a process have little private memory, or no threads, each call of each kind of heap does
// its work or says what to do, and nothing that was acknowledged is lost.
// Method: short lives in children. RLIMIT_DATA counts what vm.overcommit_memory 2 counts, all private memory that may
// be written, but of one process; every bound from nothing to what is enough. All threads are refused from some thread
// on. The heap is opened afterwards without limits.
#include "src/os/calls/syscalls.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/units.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <taiyen/taiyen.h>
#include <unistd.h>

namespace sys = taiyen::os::sys;

using namespace taiyen::test;

namespace {

constexpr uint64_t last_number = 3;

struct limited_kind {
    const char *name;
    ty_kind kind;
    bool automatic;
};

// A block of 8 MB, whose first word is at the root.
ty_status write_number(ty_heap *heap, uint64_t number) {
    ty_txn *txn = nullptr;
    if (ty_heap_kind(heap) == TY_TRANSACTIONAL)
        if (ty_status status = ty_begin(heap, nullptr, &txn))
            return status;
    void *block = txn != nullptr ? ty_txn_alloc(txn, 8 * mb) : ty_alloc(heap, 8 * mb);
    if (block == nullptr)
        return TY_E_MEMORY;
    memset(block, 1, 8 * mb);
    memcpy(block, &number, sizeof number);
    ty_status status = txn != nullptr ? ty_txn_root_set(txn, "number", block) : ty_root_set(heap, "number", block);
    if (status)
        return status;
    return txn != nullptr ? ty_commit(txn) : ty_snapshot(heap);
}

class limited : public testing::TestWithParam<limited_kind> {
protected:
    std::string path() const { return folder_.file("heap.ty"); }

    ty_status open_heap(ty_heap **heap) const {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = GetParam().kind;
        options.track_stores = GetParam().automatic;
        options.limit_bytes = 64 * mb;
        options.log_bytes = 32 * mb;
        return ty_open(path().c_str(), &options, heap, nullptr);
    }

    // In a child, which ends with the heap open if a call is refused. The number of what was acknowledged, or what the
    // refusal should not have been; `whole`: nothing was refused.
    uint64_t live(const std::function<void()> &limit, bool *whole) const {
        constexpr int wrong = 100, all = 50;
        pid_t child = fork();
        if (child == 0) {
            limit();
            uint64_t done = 0;
            ty_heap *heap = nullptr;
            ty_status status = open_heap(&heap);
            while (status == TY_OK && done < last_number)
                if ((status = write_number(heap, done + 1)) == TY_OK)
                    done++;
            if (status == TY_OK && (status = ty_close(heap)) == TY_OK)
                _exit(all);
            if (status != TY_E_MEMORY || strchr(ty_error_text(), ';') == nullptr) {
                fprintf(stderr, "%s\n", ty_error_text());
                _exit(wrong);
            }
            _exit(static_cast<int>(done));
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status)) << status;
        EXPECT_NE(WEXITSTATUS(status), wrong);
        *whole = WEXITSTATUS(status) == all;
        return *whole ? last_number : static_cast<uint64_t>(WEXITSTATUS(status));
    }

    // The heap has it, or one that was being written.
    void expect_number(uint64_t acknowledged) const {
        ty_heap *heap = nullptr;
        ASSERT_EQ(open_heap(&heap), TY_OK) << ty_error_text();
        uint64_t number = 0;
        if (const void *place = ty_root(heap, "number"))
            memcpy(&number, place, sizeof number);
        EXPECT_GE(number, acknowledged);
        EXPECT_LE(number, acknowledged + 1);
        EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
    }
    void remove_all() const {
        for (const char *end : {"", "-journal", "-log"})
            unlink((path() + end).c_str());
    }

    temporary_folder folder_;
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // their shadows count, too

void limit_private_memory(size_t bytes) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kilobytes = 0;
    while (fgets(line, sizeof line, file) != nullptr)
        if (sscanf(line, "VmData: %zu", &kilobytes) == 1)
            break;
    fclose(file);
    rlimit limit{kilobytes * 1024 + bytes, RLIM_INFINITY};
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        _exit(101);
}

TEST_P(limited, in_private_memory) {
    bool whole = false;
    for (size_t bound = 0; bound <= 224 * mb; bound += 16 * mb) {
        SCOPED_TRACE(bound / mb);
        uint64_t number = live([&] { limit_private_memory(bound); }, &whole);
        expect_number(number);
        remove_all();
        if (HasFailure())
            return;
    }
    EXPECT_TRUE(whole) << "it is enough for a heap of 64 MB";
}

#endif

std::atomic<int> threads_left;

int refuse_threads(sys::call which) {
    return which == sys::call::thread_create && threads_left.fetch_sub(1) <= 0 ? EAGAIN : 0;
}

TEST_P(limited, in_threads) {
    bool whole = false;
    for (int threads = 0; threads <= 10; threads++) {
        SCOPED_TRACE(threads);
        uint64_t number = live(
            [&] {
                threads_left = threads;
                sys::hook = refuse_threads;
            },
            &whole);
        expect_number(number);
        remove_all();
    }
    EXPECT_TRUE(whole);
}

INSTANTIATE_TEST_SUITE_P(kinds, limited,
                         testing::Values(limited_kind{"archive", TY_ARCHIVE, false},
                                         limited_kind{"snapshot", TY_SNAPSHOT, false},
                                         limited_kind{"transactional", TY_TRANSACTIONAL, false},
                                         limited_kind{"automatic", TY_TRANSACTIONAL, true}),
                         [](const auto &each) { return each.param.name; });

} // namespace
