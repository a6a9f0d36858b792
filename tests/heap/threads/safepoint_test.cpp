// Goal: whatever a program does in a callback that the library makes while a heap stands still, and however long that
// takes, other heaps go on, and threads begin, end and fork. And nobody is cancelled amid the library.
// Method: the callback waits for what another thread does: with a lock in the way none of these tests would end.
#include "../heap_fixture.hpp"
#include "src/heap/threads/safepoint.hpp"
#include "src/os/calls/syscalls.hpp"
#include "tests/thread_end.hpp"
#include <atomic>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

// Calls back once while the heap stands still.
void while_stopped(ty_heap *heap, const std::function<void()> &what) {
    auto once = [](const ty_block *, void *context) {
        (*static_cast<const std::function<void()> *>(context))();
        return false;
    };
    EXPECT_EQ(heap_each_block(heap, once, const_cast<std::function<void()> *>(&what)), TY_OK);
}

struct safepoint : testing::Test {
    memory_heap first{TY_CLASSES_CACHE_LINE};
    memory_heap second{TY_CLASSES_DENSE};
    void *kept = heap_alloc(first.heap, 100);

    void expect_open() {
        for (const memory_heap *memory : {&first, &second}) {
            void *block = heap_alloc(memory->heap, 1000);
            EXPECT_NE(block, nullptr);
            EXPECT_EQ(heap_free(block), TY_OK);
            EXPECT_EQ(problems_of(memory->heap), "");
        }
    }
    // 0: a child of a fork can use both heaps.
    int fork_and_use() {
        pid_t child = fork();
        if (child == 0) {
            expect_open();
            _exit(testing::Test::HasFailure() ? 1 : 0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        return status;
    }
};

size_t count_threads(ty_heap *heap) {
    size_t count = 0;
    auto add = [](const ty_thread_stats *, void *context) {
        ++*static_cast<size_t *>(context);
        return true;
    };
    EXPECT_EQ(heap_each_thread(heap, add, &count), TY_OK);
    return count;
}

TEST_F(safepoint, threads_end_during_a_callback) {
    std::atomic<bool> used{false}, stopped{false};
    std::thread other([&] {
        EXPECT_EQ(heap_free(heap_alloc(first.heap, 10)), TY_OK);
        EXPECT_NE(heap_alloc(first.heap, 20), nullptr);
        used = true; // from here on it enters no heap
        while (!stopped)
            os::give_way();
    });
    while (!used)
        os::give_way();
    EXPECT_EQ(count_threads(first.heap), 2u);
    while_stopped(first.heap, [&] {
        stopped = true;
        other.join();
        EXPECT_NE(heap_alloc(second.heap, 100), nullptr); // makes this thread's cache
    });
    EXPECT_EQ(count_threads(first.heap), 1u) << "the ended thread's cache is given up";
    EXPECT_EQ(first.heap->ended_caches, nullptr);
    expect_open();
}

TEST_F(safepoint, threads_begin_during_a_callback) {
    while_stopped(first.heap, [&] {
        std::thread([&] { EXPECT_EQ(heap_free(heap_alloc(second.heap, 100)), TY_OK); }).join();
        memory_heap third(TY_CLASSES_CACHE_LINE);
        EXPECT_NE(heap_alloc(third.heap, 8), nullptr);
    });
    expect_open();
}

TEST_F(safepoint, another_thread_forks_during_a_callback) {
    EXPECT_NE(heap_alloc(second.heap, 100), nullptr);
    while_stopped(first.heap, [&] { std::thread([&] { EXPECT_EQ(fork_and_use(), 0); }).join(); });
    expect_open();
}

// In the child the callbacks that it is in go on, and the others' are over.
TEST_F(safepoint, a_callback_forks) {
    std::atomic<int> state{0};
    std::thread other([&] {
        while_stopped(first.heap, [&] {
            state = 1;
            while (state != 2)
                os::give_way();
        });
    });
    while (state != 1)
        os::give_way();
    pid_t child = -1;
    while_stopped(first.heap, [&] {
        while_stopped(first.heap, [&] {
            child = fork();
            EXPECT_EQ(first.heap->pauses, child == 0 ? 2u : 3u);
        });
    });
    if (child == 0) {
        expect_open();
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    state = 2;
    other.join();
    expect_open();
}

TEST_F(safepoint, callbacks_look_at_each_others_heaps) {
    EXPECT_NE(heap_alloc(second.heap, 100), nullptr);
    std::atomic<int> stopped{0};
    auto look = [&](ty_heap *own, ty_heap *other) {
        while_stopped(own, [&, other] {
            stopped++;
            while (stopped != 2)
                os::give_way();
            EXPECT_EQ(problems_of(other), "");
            ty_heap_stats stats{};
            EXPECT_EQ(heap_get_stats(other, &stats), TY_OK);
        });
    };
    std::thread other([&] { look(second.heap, first.heap); });
    look(first.heap, second.heap);
    other.join();
    expect_open();
}

// A fork waits for who changes a heap with nothing in its hands.
TEST_F(safepoint, a_fork_that_waits_stops_nobody) {
    std::atomic<bool> forked{false};
    heap_pause(first.heap, pause_to::change);
    std::thread other([&] {
        EXPECT_EQ(fork_and_use(), 0);
        forked = true;
    });
    while (waiting_for_safepoints == 0)
        os::give_way();
    std::thread([&] { EXPECT_NE(heap_alloc(second.heap, 100), nullptr); }).join();
    EXPECT_FALSE(forked);
    heap_resume(first.heap);
    other.join();
    expect_open();
}

TEST_F(safepoint, a_fork_does_not_wait_for_a_heap_that_is_being_restored) {
    heap_restore_begin(first.heap);
    std::thread([&] {
        pid_t child = fork();
        if (child == 0)
            _exit(heap_alloc(second.heap, 100) != nullptr ? 0 : 1);
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }).join();
    heap_restore_end(first.heap);
    expect_open();
}

#if !defined(__SANITIZE_THREAD__) // which does not go on after a cancellation

// What a thread does that is cancelled while it waits for the safepoint is done, and it is cancelled after that.
TEST_F(safepoint, nobody_is_cancelled_who_waits_for_it) {
    std::atomic<void *> allocated{nullptr};
    std::atomic<bool> stopped{false};
    std::thread other([&] {
        EXPECT_EQ(heap_free(heap_alloc(first.heap, 10)), TY_OK);
        while (!stopped)
            os::give_way();
        allocated = heap_alloc(first.heap, 20);
        end_if_cancelled();
        ADD_FAILURE() << "cancellation was asked for";
    });
    while (count_threads(first.heap) != 2)
        os::give_way();
    while_stopped(first.heap, [&] {
        EXPECT_EQ(pthread_cancel(other.native_handle()), 0);
        stopped = true;
        std::thread([&] { EXPECT_NE(heap_alloc(second.heap, 100), nullptr); }).join();
    });
    other.join();
    EXPECT_NE(allocated.load(), nullptr);
    expect_open();
}

TEST_F(safepoint, nobody_is_cancelled_in_a_callback) {
    std::atomic<bool> called{false}, ended{false};
    std::thread other([&] {
        while_stopped(first.heap, [&] {
            pthread_cancel(pthread_self());
            end_if_cancelled();
            called = true;
        });
        ended = true;
        end_if_cancelled();
        ADD_FAILURE() << "cancellation was asked for";
    });
    other.join();
    EXPECT_TRUE(called && ended);
    expect_open();
}

#endif

int refuse_barriers(os::sys::call which) {
    return which == os::sys::call::membarrier ? EPERM : 0;
}

// A program may give up system calls at any time.
TEST_F(safepoint, the_process_barrier_is_refused_from_now_on) {
    if (!first.heap->barrier)
        GTEST_SKIP() << "this kernel has no membarrier";
    std::atomic<bool> stop{false};
    std::thread other([&] {
        while (!stop)
            EXPECT_EQ(heap_free(heap_alloc(first.heap, 10)), TY_OK);
    });
    os::sys::hook = refuse_barriers;
    for (int i = 0; i < 200; i++)
        EXPECT_EQ(problems_of(first.heap), "");
    EXPECT_FALSE(first.heap->barrier);
    EXPECT_EQ(cache_at(first.heap->slot)->safepoint, safepoint_fence);
    EXPECT_EQ(fork_and_use(), 0);
    os::sys::hook = nullptr;
    stop = true;
    other.join();
    expect_open();
}

} // namespace
} // namespace taiyen::test
