// Goal: any number of threads may allocate and free on one heap; a pause makes all of them stand still with the
// persistent metadata exact; threads and processes may end, fork and start at any time. Method: threads that pass
// blocks to each other and check their content; pauses against them; forked children. Meant to run under
// ThreadSanitizer too.
#include "../heap_fixture.hpp"
#include "src/heap/tables/heap_runtime.hpp"
#include <atomic>
#include <climits>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int rounds = 20'000;
#else
constexpr int rounds = 100'000;
#endif

// Blocks on their way from thread to thread.
struct exchange {
    static constexpr size_t places = 512;
    std::atomic<uint64_t *> place[places] = {};

    uint64_t *swap(size_t i, uint64_t *block) { return place[i].exchange(block, std::memory_order_acq_rel); }
};

uint64_t *make_block(ty_heap *heap, random_source &random) {
    size_t size = 16 + random.below(random.below(64) == 0 ? 30'000 : 500);
    uint64_t *block = static_cast<uint64_t *>(heap_alloc(heap, size, 0, false));
    if (block != nullptr) {
        block[0] = reinterpret_cast<uintptr_t>(block) ^ size;
        block[1] = size;
    }
    return block;
}

void end_block(uint64_t *block) {
    ASSERT_EQ(block[0], reinterpret_cast<uintptr_t>(block) ^ block[1]) << "two threads got the same block";
    ASSERT_GE(heap_usable_size(block), block[1]);
    ASSERT_EQ(heap_free(block), TY_OK) << ty_error_text();
}

void churn(ty_heap *heap, exchange &between, uint64_t seed, int count) {
    random_source random{seed};
    for (int i = 0; i < count; i++) {
        uint64_t *block = make_block(heap, random);
        ASSERT_NE(block, nullptr) << ty_error_text();
        block = between.swap(random.below(exchange::places), block);
        if (block != nullptr)
            end_block(block);
    }
}

void empty(exchange &between) {
    for (size_t i = 0; i < exchange::places; i++) {
        if (uint64_t *block = between.swap(i, nullptr))
            end_block(block);
    }
}

class heap_threads : public testing::TestWithParam<ty_class_table> {};

TEST_P(heap_threads, blocks_that_others_free) {
    memory_heap memory(GetParam());
    exchange between;
    for (int generation = 0; generation < 2; generation++) {
        std::vector<std::thread> threads;
        for (uint64_t i = 0; i < 4; i++)
            threads.emplace_back([&, i] { churn(memory.heap, between, i + 1, rounds); });
        for (int i = 0; i < 20; i++)
            EXPECT_EQ(problems_of(memory.heap), "");
        for (std::thread &thread : threads)
            thread.join();
        EXPECT_EQ(problems_of(memory.heap), "");
    }
    empty(between);
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
    ty_heap_stats stats{};
    EXPECT_EQ(heap_get_stats(memory.heap, &stats), TY_OK);
    EXPECT_EQ(stats.free_extents, 1u) << "no span is left over when all threads have ended";
    EXPECT_EQ(problems_of(memory.heap), "");
}

INSTANTIATE_TEST_SUITE_P(tables, heap_threads, testing::Values(TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE));

// One thread allocates, another frees: what is freed comes back to the first one rather than making the heap grow.
TEST(heap_thread, producer_and_consumer) {
    memory_heap memory(TY_CLASSES_CACHE_LINE, size_t{64} << 20);
    exchange between;
    std::atomic<bool> done{false};
    std::thread consumer([&] {
        random_source random{9};
        while (!done.load(std::memory_order_acquire)) {
            if (uint64_t *block = between.swap(random.below(exchange::places), nullptr))
                end_block(block);
        }
    });
    churn(memory.heap, between, 3, 4 * rounds);
    done.store(true, std::memory_order_release);
    consumer.join();
    empty(between);
    ty_heap_stats stats{};
    EXPECT_EQ(heap_get_stats(memory.heap, &stats), TY_OK);
    EXPECT_LT(stats.touched_bytes, size_t{16} << 20);
    EXPECT_EQ(stats.live_blocks, 0u);
}

TEST(heap_thread, freed_twice_by_different_threads) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    void *blocks[100];
    for (void *&block : blocks)
        block = heap_alloc(memory.heap, 64, 0, false);
    std::thread([&] {
        for (void *block : blocks) {
            EXPECT_EQ(heap_free(block), TY_OK);
            EXPECT_EQ(heap_free(block), TY_E_ARGUMENT) << "waits for its owner";
            EXPECT_EQ(heap_usable_size(block), 0u);
        }
    }).join();
    for (void *block : blocks)
        EXPECT_EQ(heap_free(block), TY_E_ARGUMENT) << "the owner learns of it in time";
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_thread, threads_never_share_a_span) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    constexpr int count = 4;
    std::atomic<int> ready{0};
    std::vector<uintptr_t> lines[count];
    std::vector<std::thread> threads;
    for (int t = 0; t < count; t++) {
        threads.emplace_back([&, t] {
            ready++;
            while (ready < count) // all of them have their caches while all allocate
                os::yield();
            for (int i = 0; i < 1000; i++)
                lines[t].push_back(reinterpret_cast<uintptr_t>(heap_alloc(memory.heap, 8, 0, false)) / 64);
            ready++;
            while (ready < 2 * count)
                os::yield();
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    std::vector<int> owner_of_line(memory.limit / 64, -1);
    for (int t = 0; t < count; t++) {
        for (uintptr_t line : lines[t]) {
            int &owner = owner_of_line[line - reinterpret_cast<uintptr_t>(memory.base) / 64];
            ASSERT_TRUE(owner == -1 || owner == t);
            owner = t;
        }
    }
}

// What each thread has begun and ended. At most one call of each is under way.
struct progress {
    std::atomic<uint64_t> allocs_begun{0}, allocs_ended{0}, frees_begun{0}, frees_ended{0};
};

void count_while_working(ty_heap *heap, progress &mine, const std::atomic<bool> &done, uint64_t seed) {
    random_source random{seed};
    std::vector<void *> blocks;
    while (!done.load(std::memory_order_relaxed) || !blocks.empty()) {
        bool grow = !done.load() && (blocks.size() < 10 || (blocks.size() < 3000 && random.below(2) != 0));
        if (grow) {
            mine.allocs_begun++;
            blocks.push_back(heap_alloc(heap, 8 + random.below(random.below(50) == 0 ? 20'000 : 600), 0, false));
            mine.allocs_ended++;
        } else {
            std::swap(blocks[random.below(blocks.size())], blocks.back());
            mine.frees_begun++;
            EXPECT_EQ(heap_free(blocks.back()), TY_OK);
            mine.frees_ended++;
            blocks.pop_back();
        }
    }
}

// While a heap is paused its tables do not change, and what they say is what was allocated: up to the calls that are
// under way, of which each thread has one at most.
TEST(heap_thread, pause_shows_the_exact_metadata) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    constexpr size_t thread_count = 3;
    progress threads_progress[thread_count];
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < thread_count; t++)
        threads.emplace_back([&, t] { count_while_working(memory.heap, threads_progress[t], done, t + 1); });
    for (progress &one : threads_progress) {
        while (one.allocs_ended < 1000)
            os::yield();
    }
    struct count {
        progress *all;
        uint64_t blocks = 0, low = 0, high = 0;
    };
    for (int i = 0; i < 300; i++) {
        count counted{threads_progress};
        EXPECT_EQ(heap_each_block(
                      memory.heap,
                      [](const ty_block *, void *context) {
                          count *c = static_cast<count *>(context);
                          for (size_t t = 0; c->blocks == 0 && t < thread_count; t++) {
                              c->low += c->all[t].allocs_ended - c->all[t].frees_begun;
                              c->high += c->all[t].allocs_begun - c->all[t].frees_ended;
                          }
                          c->blocks++;
                          return true;
                      },
                      &counted),
                  TY_OK);
        ASSERT_NE(counted.blocks, 0u);
        ASSERT_GE(counted.blocks, counted.low);
        ASSERT_LE(counted.blocks, counted.high);
        ASSERT_LE(counted.high - counted.low, 2 * thread_count);
    }
    done.store(true);
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_thread, nothing_changes_while_paused) {
    memory_heap memory(TY_CLASSES_DENSE);
    exchange between;
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            while (!done.load())
                churn(memory.heap, between, i + 1, 100);
        });
    auto extents = [&] {
        std::vector<std::pair<uint64_t, bool>> all;
        for (uint64_t page = 0; page < memory.limit / 4096;) {
            page_extent_use extent = heap_extent_at(memory.heap, page);
            EXPECT_EQ(extent.first, page);
            all.emplace_back(extent.count, extent.free);
            page += extent.count;
        }
        return all;
    };
    for (int i = 0; i < 100; i++) {
        heap_pause(memory.heap);
        auto before = extents();
        for (int k = 0; k < 20; k++)
            os::yield();
        EXPECT_EQ(extents(), before);
        heap_resume(memory.heap);
    }
    done.store(true);
    for (std::thread &thread : threads)
        thread.join();
    empty(between);
}

// A thread's cache outlives the heap that it was made for; the next heap may get the same slot.
TEST(heap_thread, heaps_that_end_before_their_threads) {
    std::atomic<int> step{0};
    std::atomic<ty_heap *> heap{nullptr};
    std::thread other([&] {
        for (int round = 0; round < 20; round++) {
            while (step.load() != 2 * round + 1)
                os::yield();
            void *block = heap_alloc(heap.load(), 100, 0, false);
            EXPECT_NE(block, nullptr);
            EXPECT_EQ(heap_of(block), heap.load());
            if (round % 2 == 0) {
                EXPECT_EQ(heap_free(block), TY_OK);
            }
            step.store(2 * round + 2);
        }
    });
    for (int round = 0; round < 20; round++) {
        memory_heap memory(TY_CLASSES_CACHE_LINE, size_t{64} << 20);
        void *block = heap_alloc(memory.heap, 100, 0, false);
        heap.store(memory.heap);
        step.store(2 * round + 1);
        while (step.load() != 2 * round + 2)
            os::yield();
        EXPECT_EQ(stats_of(memory.heap).live_blocks, round % 2 == 0 ? 1u : 2u);
        EXPECT_EQ(heap_free(block), TY_OK);
        memory.detach();
        EXPECT_EQ(heap_free(block), TY_E_ARGUMENT);
        memory.attach(true);
    }
    other.join();
}

TEST(heap_thread, many_heaps_at_once) {
    std::vector<std::unique_ptr<memory_heap>> heaps;
    std::vector<void *> blocks;
    for (int i = 0; i < 100; i++)
        heaps.push_back(std::make_unique<memory_heap>(TY_CLASSES_CACHE_LINE, size_t{64} << 20));
    for (int i = 0; i < 10'000; i++)
        blocks.push_back(heap_alloc(heaps[static_cast<size_t>(i) % 100]->heap, 100, 0, false));
    for (size_t i = 0; i < blocks.size(); i++) {
        ASSERT_EQ(heap_of(blocks[i]), heaps[i % 100]->heap);
        ASSERT_EQ(heap_free(blocks[i]), TY_OK);
    }
    for (auto &heap : heaps)
        EXPECT_EQ(stats_of(heap->heap).live_blocks, 0u);
}

#if !defined(__SANITIZE_THREAD__) // which has forgotten a thread by then, and does not follow a fork of one of several
// In each round of destructors that a thread gets, after the library's.
struct freed_at_end {
    pthread_key_t key;
    std::vector<void *> blocks;
};
void free_one_at_end(void *argument) {
    freed_at_end *end = static_cast<freed_at_end *>(argument);
    EXPECT_EQ(heap_free(end->blocks.back()), TY_OK);
    end->blocks.pop_back();
    if (!end->blocks.empty())
        pthread_setspecific(end->key, end);
}

// libc frees blocks of a thread after the last destructor: whatever such a free takes up, nobody would give back.
TEST(heap_thread, a_free_after_the_end_makes_no_cache) {
    memory_heap memory(TY_CLASSES_DENSE);
    freed_at_end end{};
    for (int i = 0; i < PTHREAD_DESTRUCTOR_ITERATIONS; i++)
        end.blocks.push_back(heap_alloc(memory.heap, 100));
    ASSERT_EQ(pthread_key_create(&end.key, free_one_at_end), 0);
    std::thread([&] {
        EXPECT_EQ(heap_free(heap_alloc(memory.heap, 100)), TY_OK);
        pthread_setspecific(end.key, &end);
    }).join();
    pthread_key_delete(end.key);
    EXPECT_TRUE(end.blocks.empty());
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
    ASSERT_NE(memory.heap->caches, nullptr);
    EXPECT_EQ(memory.heap->caches->next_in_heap, nullptr) << "only this thread's is left";
}

// A forked child goes on with its copy of the heap, also where other threads had blocks and caches.
TEST(heap_thread, fork_while_threads_run) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    exchange between;
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            while (!done.load())
                churn(memory.heap, between, i + 1, 100);
        });
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            bool good = heap_verify(memory.heap, nullptr, nullptr) == TY_OK;
            for (int k = 0; k < 2000; k++) {
                void *block = heap_alloc(memory.heap, 8 + static_cast<size_t>(k) * 7 % 9000, 0, false);
                good = good && block != nullptr && (k % 2 == 0 || heap_free(block) == TY_OK);
            }
            for (size_t k = 0; k < exchange::places; k++) {
                if (uint64_t *block = between.swap(k, nullptr))
                    good = good && heap_free(block) == TY_OK;
            }
            good = good && heap_verify(memory.heap, nullptr, nullptr) == TY_OK;
            _exit(good ? 0 : 1);
        }
        int state = 0;
        ASSERT_EQ(waitpid(child, &state, 0), child);
        ASSERT_EQ(state, 0) << "of child " << i;
    }
    done.store(true);
    for (std::thread &thread : threads)
        thread.join();
    empty(between);
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
}
#endif

} // namespace
} // namespace taiyen::test
