// Goal: a thread that uses a heap when nobody notifies it any more of its end leaves no cache behind.
// Method: threads that allocate in the last round of their destructors, one after the other and all at once; threads
// that begin and end while others look for ended ones, also under ThreadSanitizer; a child that has its parent's
// memory.
#include "../heap_fixture.hpp"
#include "src/heap/threads/cache.hpp"
#include <atomic>
#include <climits>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

#if !defined(__SANITIZE_THREAD__) // which has forgotten a thread by then
size_t caches_of(const ty_heap *heap) {
    size_t count = 0;
    for (const thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        count++;
    return count;
}

// join returns before the kernel has forgotten the thread.
void await_end(uint64_t thread) {
    while (syscall(SYS_tgkill, getpid(), thread, 0) == 0)
        os::yield();
}

struct late_use {
    pthread_key_t key;
    ty_heap *heap;
    bool each_round;
};
late_use late;

void use_late(void *rounds) {
    auto left = reinterpret_cast<uintptr_t>(rounds);
    if (left == 1 || late.each_round) {
        EXPECT_EQ(heap_free(heap_alloc(late.heap, 100)), TY_OK);
    }
    if (left > 1)
        pthread_setspecific(late.key, reinterpret_cast<void *>(left - 1));
}

void end_late() {
    pthread_setspecific(late.key, reinterpret_cast<void *>(PTHREAD_DESTRUCTOR_ITERATIONS));
}

class ended_threads_late : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        late.heap = memory.heap;
        late.each_round = GetParam();
        ASSERT_EQ(pthread_key_create(&late.key, use_late), 0);
        EXPECT_EQ(heap_free(heap_alloc(memory.heap, 100)), TY_OK);
    }
    void TearDown() override { pthread_key_delete(late.key); }

    memory_heap memory{TY_CLASSES_DENSE};
};

TEST_P(ended_threads_late, one_after_the_other) {
    for (int i = 0; i < 300; i++)
        std::thread(end_late).join();
    EXPECT_LT(caches_of(memory.heap), 4 * looks_apart_min);
}

TEST_P(ended_threads_late, all_at_once) {
    constexpr int count = 100;
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    std::vector<uint64_t> ids(count);
    for (uint64_t &id : ids)
        threads.emplace_back([&] {
            id = os::thread_id();
            end_late();
            ready.fetch_add(1);
            while (ready.load() < count)
                os::yield();
        });
    for (std::thread &thread : threads)
        thread.join();
    for (uint64_t id : ids)
        await_end(id);
    give_up_ended_threads();
    EXPECT_EQ(caches_of(memory.heap), 1u) << "this thread's";
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
}

INSTANTIATE_TEST_SUITE_P(, ended_threads_late, testing::Values(false, true),
                         [](const auto &each) { return each.param ? "each_round" : "the_last"; });

TEST(ended_threads, a_child_in_its_parents_memory_takes_nothing) {
    memory_heap memory(TY_CLASSES_DENSE);
    std::atomic<int> step{0};
    EXPECT_EQ(heap_free(heap_alloc(memory.heap, 100)), TY_OK);
    std::thread other([&] {
        EXPECT_EQ(heap_free(heap_alloc(memory.heap, 100)), TY_OK);
        step.store(1);
        while (step.load() == 1)
            os::yield();
    });
    while (step.load() == 0)
        os::yield();
    pid_t child = vfork();
    if (child == 0) {
        give_up_ended_threads();
        _exit(0);
    }
    int state = 0;
    EXPECT_EQ(waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
    EXPECT_EQ(caches_of(memory.heap), 2u);
    step.store(2);
    other.join();
}
#endif

TEST(ended_threads, looked_for_while_threads_begin_and_end) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    std::atomic<bool> done{false};
    std::vector<std::thread> starters;
    for (int i = 0; i < 3; i++)
        starters.emplace_back([&] {
            for (int k = 0; k < 100; k++)
                std::thread([&] {
                    void *blocks[50];
                    for (void *&block : blocks)
                        block = heap_alloc(memory.heap, 100);
                    for (void *block : blocks)
                        EXPECT_EQ(heap_free(block), TY_OK);
                }).join();
        });
    std::thread looker([&] {
        while (!done.load())
            give_up_ended_threads();
    });
    for (std::thread &starter : starters)
        starter.join();
    done.store(true);
    looker.join();
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
    EXPECT_EQ(heap_verify(memory.heap, nullptr, nullptr), TY_OK);
}

} // namespace
} // namespace taiyen::test
