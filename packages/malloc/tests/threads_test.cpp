// Goal: threads may end while others free their blocks, free and allocate while they end, and fork while others
// allocate; what a thread used is given back.
// Method: threads that hand blocks over and end; destructors of thread-local data; forks against churning threads.
#include "support.hpp"
#include <atomic>
#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

namespace taiyen::test {
namespace {

size_t size_of(uint64_t number) {
    return 8 + number * 2654435761 % 97 * (number % 50 == 0 ? 400 : 9);
}

TEST(malloc_threads, blocks_outlive_their_thread) {
    constexpr int producers = 40;
    constexpr uint64_t blocks_each = 5'000;
    std::mutex lock;
    std::vector<unsigned char *> handed_over;
    std::atomic<int> producing{producers};
    std::atomic<uint64_t> freed{0}, damaged{0};
    size_t live_before = mallinfo2().uordblks;
    auto produce = [&] {
        for (uint64_t i = 0; i < blocks_each; i++) {
            auto *block = static_cast<unsigned char *>(malloc(size_of(i)));
            fill(block, 8, static_cast<unsigned char>(reinterpret_cast<uintptr_t>(block) >> 4));
            std::lock_guard guard(lock);
            handed_over.push_back(block);
        }
        producing--;
    };
    auto consume = [&] {
        for (;;) {
            bool last = producing == 0; // before the look: nothing is handed over afterwards
            std::vector<unsigned char *> taken;
            {
                std::lock_guard guard(lock);
                taken.swap(handed_over);
            }
            for (unsigned char *block : taken) {
                damaged += !filled(block, 8, static_cast<unsigned char>(reinterpret_cast<uintptr_t>(block) >> 4));
                free(block);
                freed++;
            }
            if (last && taken.empty())
                return;
        }
    };
    std::vector<std::thread> consumers;
    for (int i = 0; i < 2; i++)
        consumers.emplace_back(consume);
    for (int i = 0; i < producers; i += 4) {
        std::vector<std::thread> some;
        for (int j = 0; j < 4; j++)
            some.emplace_back(produce);
        for (std::thread &thread : some)
            thread.join();
    }
    for (std::thread &thread : consumers)
        thread.join();
    EXPECT_EQ(freed, producers * blocks_each);
    EXPECT_EQ(damaged, 0u);
    EXPECT_LT(mallinfo2().uordblks, live_before + (size_t{1} << 20));
}

pthread_key_t late_key;
std::atomic<int> late_calls;

// In every round of destructors that there is.
void late(void *block) {
    late_calls++;
    free(block);
    pthread_setspecific(late_key, malloc(50));
    free(malloc(3000));
}

struct thread_end {
    char *text = static_cast<char *>(malloc(200));
    ~thread_end() { free(text); }
};
thread_local thread_end at_end;

// R9: owners that sleep cannot take what others freed back.
TEST(malloc_threads, sleeping_owners_keep_little) {
    constexpr size_t owners = 12, block_bytes = 240, blocks_each = (size_t{24} << 20) / block_bytes;
    std::vector<void *> blocks(blocks_each);
    std::vector<std::thread> threads;
    std::mutex lock;
    std::condition_variable changed;
    size_t allocated = 0, refused = 0, woken = 0;
    bool end = false;
    auto own = [&] {
        size_t nulls = 0;
        for (void *&block : blocks) {
            block = malloc(block_bytes);
            if (block != nullptr)
                memset(block, 1, block_bytes);
            else
                nulls++;
        }
        std::unique_lock guard(lock);
        allocated++;
        refused += nulls;
        changed.notify_all();
        changed.wait(guard, [&] { return end; });
        guard.unlock();
        void *more[100];
        for (void *&block : more)
            block = malloc(block_bytes);
        for (void *block : more)
            free(block);
        guard.lock();
        woken++;
    };
    size_t before = resident_pages();
    for (size_t i = 0; i < owners; i++) {
        threads.emplace_back(own);
        std::unique_lock guard(lock);
        changed.wait(guard, [&] { return allocated == i + 1; });
        for (void *block : blocks)
            free(block);
    }
    EXPECT_LT(resident_pages(), before + (size_t{100} << 20) / 4096) << "of " << owners << " times 24 MB";
    {
        std::lock_guard guard(lock);
        end = true;
    }
    changed.notify_all();
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(woken, owners);
    EXPECT_EQ(refused, 0u);
}

TEST(malloc_threads, allocating_while_the_thread_ends) {
    ASSERT_EQ(pthread_key_create(&late_key, late), 0);
    late_calls = 0;
    constexpr int threads = 50;
    for (int i = 0; i < threads; i++) {
        std::thread thread([] {
            at_end.text[0] = 1;
            pthread_setspecific(late_key, malloc(10));
        });
        thread.join();
    }
    EXPECT_GT(late_calls, threads) << "each thread's destructors have run more than once";
    pthread_key_delete(late_key);
}

pthread_key_t freeing_key;

// Frees alone, and in the last round too: libc does that with buffers of its own after the last destructor.
void free_late(void *argument) {
    auto *blocks = static_cast<std::vector<void *> *>(argument);
    free(blocks->back());
    blocks->pop_back();
    if (!blocks->empty())
        pthread_setspecific(freeing_key, argument);
}

TEST(malloc_threads, an_ended_thread_leaves_nothing_behind) {
    ASSERT_EQ(pthread_key_create(&freeing_key, free_late), 0);
    std::vector<void *> blocks;
    auto run = [&blocks] {
        std::thread thread([&blocks] {
            free(malloc(100));
            dlsym(RTLD_DEFAULT, "no such symbol"); // its text is freed by libc, late
            pthread_setspecific(freeing_key, &blocks);
        });
        thread.join();
    };
    auto run_many = [&](int count) {
        for (int i = 0; i < count; i++) {
            for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS; round++)
                blocks.push_back(malloc(100));
            run();
            ASSERT_TRUE(blocks.empty());
        }
    };
    run_many(10);
    size_t before = address_space_pages();
    run_many(200);
    EXPECT_LT(address_space_pages(), before + 4000) << "a thread's tables take 150 pages";
    pthread_key_delete(freeing_key);
}

// Allocates in every round, the last one too.
void allocate_late(void *rounds) {
    auto left = reinterpret_cast<uintptr_t>(rounds);
    free(malloc(40));
    if (left > 1)
        pthread_setspecific(freeing_key, reinterpret_cast<void *>(left - 1));
}

// Y7.
TEST(malloc_threads, that_allocate_in_the_last_round_leave_nothing_behind) {
    ASSERT_EQ(pthread_key_create(&freeing_key, allocate_late), 0);
    auto run_many = [](int count) {
        for (int i = 0; i < count; i++)
            std::thread([] {
                free(malloc(100));
                pthread_setspecific(freeing_key, reinterpret_cast<void *>(PTHREAD_DESTRUCTOR_ITERATIONS));
            }).join();
    };
    run_many(30);
    size_t before = address_space_pages();
    run_many(200);
    EXPECT_LT(address_space_pages(), before + 4000) << "a thread's tables take 150 pages";
    pthread_key_delete(freeing_key);
}

void churn(const std::atomic<bool> &stop, uint64_t seed) {
    void *blocks[200] = {};
    for (uint64_t i = seed; !stop; i++) {
        void *&block = blocks[i * 7919 % 200];
        free(block);
        block = malloc(size_of(i) * (i % 100 == 0 ? 50 : 1));
    }
    for (void *block : blocks)
        free(block);
}

// Everything works in the child, a thread included. Ends it.
[[noreturn]] void use_memory_in_child(void **inherited, size_t count) {
    alarm(60); // a lock that nobody releases ends it
    for (size_t i = 0; i < count; i++)
        free(inherited[i]);
    std::atomic<bool> stop{false};
    std::thread thread([&] { churn(stop, 1); });
    for (uint64_t i = 0; i < 20'000; i++)
        free(malloc(size_of(i)));
    stop = true;
    thread.join();
    struct mallinfo2 info = mallinfo2(); // waits for all caches to stand still
    _exit(info.uordblks > 0 ? 0 : 1);
}

TEST(malloc_threads, fork_while_others_allocate) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 3; i++)
        threads.emplace_back([&stop, i] { churn(stop, i * 1000); });
    for (int i = 0; i < 60; i++) {
        void *blocks[100];
        for (size_t j = 0; j < 100; j++)
            blocks[j] = malloc(size_of(j));
        pid_t child = fork();
        if (child == 0)
            use_memory_in_child(blocks, 100);
        for (void *block : blocks)
            free(block);
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0) << "fork " << i;
    }
    stop = true;
    for (std::thread &thread : threads)
        thread.join();
}

std::atomic<int> handlers_run;
void allocate_in_handler() {
    handlers_run++;
    for (uint64_t i = 0; i < 100; i++)
        free(malloc(size_of(i)));
}

// As early as a program can.
[[gnu::constructor(101)]] void register_handlers() {
    pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler);
}

TEST(malloc_threads, handlers_of_a_fork_may_allocate) {
    handlers_run = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(handlers_run == 2 ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(handlers_run, 2);
}

} // namespace
} // namespace taiyen::test
