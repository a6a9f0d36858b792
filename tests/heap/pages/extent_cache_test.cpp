// Goal: short runs that threads keep for themselves (K1, K2) are blocks for nobody: not to be freed twice, looked at or
// counted; a heap that stands still, a thread that ended and a heap that is full have none. Method: heaps of the size
// that keeps runs, with addresses that show what was kept; two frees of one block at once; random work by threads while
// the heap is verified.
#include "../heap_fixture.hpp"
#include "src/heap/maintenance/walk.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace taiyen::test {
namespace {

constexpr size_t run_bytes = 8 * page_bytes;

TEST(heap_extent_cache, a_freed_run_is_allocated_next_and_is_no_block_meanwhile) {
    keeping_heap memory;
    char *block = memory.alloc(run_bytes);
    std::memset(block, 1, run_bytes);
    ASSERT_EQ(heap_free(block), TY_OK);
    EXPECT_EQ(memory.used(), 8u) << "nothing was kept";
    EXPECT_EQ(heap_usable_size(block), 0u);
    EXPECT_EQ(heap_free(block), TY_E_ARGUMENT);
    EXPECT_EQ(heap_free(block + page_bytes), TY_E_ARGUMENT);
    EXPECT_EQ(heap_resize(block, 10 * run_bytes), nullptr);
    std::thread([block] { EXPECT_EQ(heap_free(block), TY_E_ARGUMENT); }).join();
    EXPECT_NE(memory.alloc(run_bytes - 2 * page_bytes), block) << "far too long";
    EXPECT_NE(memory.alloc(run_bytes + page_bytes), block) << "too short";
    char *zeroed = memory.alloc(run_bytes, true);
    EXPECT_EQ(zeroed, block);
    EXPECT_EQ(std::count(zeroed, zeroed + run_bytes, 0), static_cast<ptrdiff_t>(run_bytes));
    EXPECT_EQ(heap_usable_size(block), run_bytes);
    EXPECT_EQ(heap_free(block), TY_OK);
}

TEST(heap_extent_cache, one_that_is_a_little_longer_is_as_good) {
    keeping_heap memory;
    char *block = memory.alloc(run_bytes);
    std::memset(block, 1, run_bytes);
    ASSERT_EQ(heap_free(block), TY_OK);
    char *zeroed = memory.alloc(run_bytes - page_bytes, true);
    EXPECT_EQ(zeroed, block);
    EXPECT_EQ(heap_usable_size(block), run_bytes);
    EXPECT_EQ(std::count(zeroed, zeroed + run_bytes, 0), static_cast<ptrdiff_t>(run_bytes));
    EXPECT_EQ(memory.used(), 8u);
    EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_EQ(memory.alloc(run_bytes), block);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_extent_cache, a_pause_and_the_end_of_a_thread_free_what_is_kept) {
    keeping_heap memory;
    EXPECT_EQ(heap_free(memory.alloc(run_bytes)), TY_OK);
    EXPECT_NE(memory.used(), 0u);
    EXPECT_EQ(stats_of(memory.heap).free_extents, 1u);
    EXPECT_EQ(memory.used(), 0u);
    std::thread([&] { EXPECT_EQ(heap_free(memory.alloc(run_bytes)), TY_OK); }).join();
    EXPECT_EQ(memory.used(), 0u);
    EXPECT_EQ(heap_free(memory.alloc(run_bytes)), TY_OK);
    memory.reattach();
    EXPECT_EQ(problems_of(memory.heap), "");
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
}

TEST(heap_extent_cache, a_thread_keeps_few) {
    keeping_heap memory;
    std::vector<char *> blocks;
    for (size_t pages = 5; pages <= 20; pages++)
        for (int i = 0; i < 40; i++)
            blocks.push_back(memory.alloc(pages * page_bytes));
    for (char *block : blocks)
        EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_LE(memory.used(), kept_pages_total);
    EXPECT_GE(memory.used(), kept_pages_total - kept_pages_max);
    EXPECT_EQ(stats_of(memory.heap).free_extents, 1u);
}

TEST(heap_extent_cache, a_full_heap_takes_what_is_kept) {
    keeping_heap memory;
    std::vector<char *> blocks;
    for (int i = 0; i < 8; i++)
        blocks.push_back(memory.alloc(run_bytes));
    size_t rest = (memory.heap->first_table_page - top_of(memory.heap)) * page_bytes;
    while (rest >= page_bytes && memory.alloc(rest) == nullptr)
        rest -= page_bytes; // the start of long runs is aligned
    while (memory.alloc(64 * page_bytes) != nullptr) {
    }
    for (char *block : blocks)
        EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_NE(memory.alloc(64 * page_bytes), nullptr) << ty_error_text();
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_extent_cache, nothing_is_kept_where_pages_are_counted_against_a_limit) {
    keeping_heap memory;
    ty_heap_limits limits{};
    limits.hard_bytes = 64 * run_bytes;
    ASSERT_EQ(heap_set_limits(memory.heap, limits), TY_OK);
    EXPECT_EQ(heap_free(memory.alloc(run_bytes)), TY_OK);
    EXPECT_EQ(memory.used(), 0u);
}

// The other one's place for such runs may be taken, so that it frees them under the lock.
void race_frees(bool other_is_full) {
    keeping_heap memory;
    constexpr int rounds = 20'000;
    char *block = nullptr;
    std::atomic<int> at_start{0}, freed{0}, at_end{0};
    auto meet = [](std::atomic<int> &count, int all) {
        count.fetch_add(1);
        for (int looks = 0; count.load() < all; looks++) {
            if (looks > 10'000)
                std::this_thread::yield();
        }
    };
    auto race = [&](bool allocates) {
        std::vector<char *> own;
        for (uint32_t i = 0; i < kept_extents_max && other_is_full && !allocates; i++)
            own.push_back(memory.alloc(run_bytes));
        for (char *each : own)
            ASSERT_EQ(heap_free(each), TY_OK);
        for (int i = 1; i <= rounds; i++) {
            if (allocates)
                block = memory.alloc(run_bytes);
            meet(at_start, 2 * i);
            freed.fetch_add(heap_free(block) == TY_OK);
            meet(at_end, 2 * i);
            ASSERT_EQ(freed.load(), i);
        }
    };
    std::thread other(race, false);
    race(true);
    other.join();
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_extent_cache, of_two_frees_at_once_one_is_refused) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a program that frees twice at once has a race, which the sanitizer reports";
#endif
    race_frees(false);
    race_frees(true);
}

TEST(heap_extent_cache, threads_keep_and_give_while_the_heap_is_verified) {
    keeping_heap memory;
    constexpr size_t slots = 64;
    std::atomic<char *> shared[slots]{};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; t++) {
        threads.emplace_back([&, t] {
            random_source random{t};
            for (int i = 0; i < 6000; i++) {
                char *made = memory.alloc((5 + random.below(14)) * page_bytes);
                made[0] = static_cast<char>(t + 1);
                char *old = shared[random.below(slots)].exchange(made);
                if (old != nullptr) {
                    ASSERT_TRUE(old[0] >= 1 && old[0] <= 3);
                    ASSERT_EQ(heap_free(old), TY_OK);
                }
            }
        });
    }
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(problems_of(memory.heap), "");
    for (std::thread &thread : threads)
        thread.join();
    for (std::atomic<char *> &each : shared)
        EXPECT_EQ(heap_free(each.load()), TY_OK);
    EXPECT_EQ(stats_of(memory.heap).free_extents, 1u);
    EXPECT_EQ(memory.used(), 0u);
}

} // namespace
} // namespace taiyen::test
