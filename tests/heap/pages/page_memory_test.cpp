// Goal: free pages hold little memory beyond what was lately in use; a heap that goes up and down keeps its memory;
// what was given back is not cleared again, and what was not always reads as zeros where that was asked for. Method:
// heaps whose period is nothing or for ever, so that no clock decides; the kernel's count of resident pages, and a
// recount of what is known of them (P1), after random work by one thread and by several.
#include "../heap_fixture.hpp"
#include "src/heap/maintenance/walk.hpp"
#include "src/heap/pages/page_memory.hpp"
#include "tests/units.hpp"
#include <algorithm>
#include <thread>

namespace taiyen::test {
namespace {

struct decaying_heap : memory_heap {
    explicit decaying_heap(uint64_t period_ns, size_t limit_bytes = size_t{1} << 30)
        : memory_heap(TY_CLASSES_DENSE, limit_bytes) {
        heap->memory.period_ns = period_ns;
    }
    size_t resident() const { return os::resident_bytes(base, top_of(heap) * page_bytes); }
};

std::vector<char *> touched_blocks(ty_heap *heap, size_t bytes, size_t count) {
    std::vector<char *> blocks;
    for (size_t i = 0; i < count; i++) {
        blocks.push_back(static_cast<char *>(heap_alloc(heap, bytes)));
        std::memset(blocks.back(), 1, bytes);
    }
    return blocks;
}

// Frees all but each keep-th; 0: all.
void free_but_each(std::vector<char *> &blocks, size_t keep) {
    for (size_t i = 0; i < blocks.size(); i++) {
        if (keep == 0 || i % keep != 0) {
            EXPECT_EQ(heap_free(blocks[i]), TY_OK);
        }
    }
}

uint64_t recount_idle(ty_heap *heap) {
    pause_guard paused(heap);
    uint64_t idle = 0;
    extent_walk walk(heap);
    page_extent extent;
    while (walk.next(&extent)) {
        for (uint64_t page = extent.first;
             kind_at(heap, extent.first) == page_free && page < extent.first + extent.count; page++)
            idle += heap->memory.touched[page / 64].load() >> page % 64 & 1;
    }
    return idle;
}

uint64_t recount_used(ty_heap *heap) {
    pause_guard paused(heap);
    uint64_t used = 0;
    extent_walk walk(heap);
    page_extent extent;
    while (walk.next(&extent))
        used += kind_at(heap, extent.first) != page_free ? extent.count : 0;
    return used;
}

// After each free: what is held is within the bound, and once the bound was passed, memory went back until half of the
// room is left, but for a run.
TEST(heap_page_memory, free_pages_are_given_back_but_for_a_bound) {
    decaying_heap memory(0);
    const page_memory &known = memory.heap->memory;
    std::vector<char *> blocks = touched_blocks(memory.heap, 65'536, 2048); // 128 MiB
    constexpr uint64_t block_pages = 16, run_pages = 7 * block_pages, room_min = 8 * mb / page_bytes;
    uint64_t times = 0;
    for (size_t i = 0; i < blocks.size(); i++) {
        if (i % 8 == 0)
            continue;
        uint64_t held = known.used + known.idle;
        ASSERT_EQ(heap_free(blocks[i]), TY_OK);
        uint64_t now = known.used + known.idle;
        uint64_t lately = known.used + block_pages, room = lately / 16 + room_min;
        ASSERT_LE(now, lately + room) << i;
        if (now < held) {
            times++;
            ASSERT_LE(now, lately + room / 2) << i;
            ASSERT_GE(now + run_pages, known.used + (known.used / 16 + room_min) / 2) << i;
        }
    }
    EXPECT_GT(times, 8u);
    size_t live = 16 * mb;
    EXPECT_LE(memory.resident(), live + live / 16 + 8 * mb);
    for (size_t i = 0; i < blocks.size(); i += 8)
        ASSERT_EQ(blocks[i][65'535], 1);
    EXPECT_EQ(recount_idle(memory.heap), known.idle);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_page_memory, a_free_run_of_a_wrong_length_is_left_alone) {
    decaying_heap memory(UINT64_MAX);
    page_memory &known = memory.heap->memory;
    std::vector<char *> blocks = touched_blocks(memory.heap, 32 * mb, 3);
    uint64_t page = static_cast<uint64_t>(blocks[1] - memory.base) / page_bytes;
    ASSERT_EQ(heap_free(blocks[1]), TY_OK);
    known.peak = known.peak_before = known.longest = known.longest_before = 0; // now it is more than what may be held
    uint32_t &length = memory.heap->descriptors[page].length;
    const uint32_t right = length;
    for (uint32_t wrong : {uint32_t{0}, right - 1, right + 1, UINT32_MAX}) {
        length = wrong;
        decay(memory.heap);
        EXPECT_EQ(length, wrong);
        EXPECT_EQ(known.idle, right);
    }
    length = right;
    decay(memory.heap);
    EXPECT_EQ(known.idle, 0u);
    EXPECT_EQ(problems_of(memory.heap), "");
}

// A heap with 128 MiB live, in blocks of 16 pages with free runs as long between them.
struct heap_with_short_runs : decaying_heap {
    heap_with_short_runs() : decaying_heap(0), blocks(touched_blocks(heap, 65'536, 4096)) {
        for (size_t i = 0; i < blocks.size(); i += 2)
            EXPECT_EQ(heap_free(blocks[i]), TY_OK);
    }
    std::vector<char *> blocks;
};

TEST(heap_page_memory, short_free_runs_keep_more) {
    heap_with_short_runs memory;
    size_t others = 8 * mb + 8 * mb; // the bound of long runs
    EXPECT_GT(memory.heap->memory.idle * page_bytes, others + 3 * mb);
    EXPECT_LE(memory.heap->memory.idle * page_bytes, others + 8 * mb);
    EXPECT_EQ(recount_idle(memory.heap), memory.heap->memory.idle);
    EXPECT_EQ(problems_of(memory.heap), "");
}

// A heap with 256 MiB in use and half as much free between, since the later half is in longer runs; how much free pages
// hold once memory was given back.
size_t idle_beside_runs_of(size_t bytes) {
    decaying_heap memory(UINT64_MAX); // all is lately in use
    std::vector<void *> blocks;
    for (int i = 0; i < 256; i++)
        blocks.push_back(heap_alloc(memory.heap, mb));
    for (size_t i = 0; i < blocks.size(); i += 2)
        EXPECT_EQ(heap_free(blocks[i]), TY_OK);
    for (size_t at = 0; at < 128 * mb; at += bytes)
        EXPECT_NE(heap_alloc(memory.heap, bytes), nullptr);
    EXPECT_EQ(heap_free(blocks[1]), TY_OK);
    for (int i = 0; i < 20; i++) // each gives a bounded part back
        EXPECT_EQ(heap_free(heap_alloc(memory.heap, 65'536)), TY_OK);
    EXPECT_EQ(recount_idle(memory.heap), memory.heap->memory.idle);
    return memory.heap->memory.idle * page_bytes;
}

TEST(heap_page_memory, room_for_three_of_the_longest_runs_is_kept_within_a_bound) {
    auto expect_about = [](size_t idle, size_t expected) {
        EXPECT_GT(idle + 2 * mb, expected);
        EXPECT_LE(idle, expected + 2 * mb);
    };
    expect_about(idle_beside_runs_of(2 * mb), 12 * mb);  // half of 1/16 and 8 MiB
    expect_about(idle_beside_runs_of(8 * mb), 20 * mb);  // half of 1/16 and three runs
    expect_about(idle_beside_runs_of(64 * mb), 40 * mb); // half of 1/16 and 1/4
}

// Else each free would look at thousands of extents.
TEST(heap_page_memory, where_nothing_was_found_nobody_looks_until_there_is_more) {
    heap_with_short_runs memory;
    page_memory &known = memory.heap->memory;
    known.period_ns = UINT64_MAX;
    auto free_one = [&] { EXPECT_EQ(heap_free(touched_blocks(memory.heap, 65'536, 1).front()), TY_OK); };
    for (int i = 0; i < 20; i++) // a call looks at a quarter of the extents
        free_one();
    EXPECT_NE(known.barren, 0u);
    uint64_t next = known.next;
    for (int i = 0; i < 20; i++)
        free_one();
    EXPECT_FALSE(known.due.load());
    EXPECT_EQ(next, known.next);
    uint64_t barren = known.barren;
    std::vector<char *> more = touched_blocks(memory.heap, 65'536, 1000);
    free_but_each(more, 0);
    EXPECT_GT(known.barren, barren) << "they looked again";

    for (size_t i = 1; i < 200; i += 2) // a long run
        EXPECT_EQ(heap_free(memory.blocks[i]), TY_OK);
    uint64_t held = known.used + known.idle;
    known.period_ns = 0;
    for (int i = 0; i < 20; i++)
        free_one();
    EXPECT_LT(known.used + known.idle, held - 100 * 65'536 / page_bytes) << "the next period looks, too";
}

TEST(heap_page_memory, spans_that_become_empty_are_given_back_too) {
    decaying_heap memory(0);
    std::vector<char *> blocks = touched_blocks(memory.heap, 640, 100'000);
    std::thread([&] { free_but_each(blocks, 0); }).join();
    for (int i = 0; i < 200; i++) // until it needs more: then the owner learns what was freed
        EXPECT_NE(heap_alloc(memory.heap, 640), nullptr);
    for (int i = 0; i < 20; i++) // each gives a bounded part back
        EXPECT_EQ(heap_free(heap_alloc(memory.heap, 100'000)), TY_OK);
    EXPECT_LT(memory.resident(), 8 * mb);
}

TEST(heap_page_memory, what_was_lately_in_use_is_kept) {
    decaying_heap memory(UINT64_MAX);
    for (int i = 0; i < 3; i++) {
        std::vector<char *> blocks = touched_blocks(memory.heap, mb, 64);
        free_but_each(blocks, 0);
        EXPECT_GE(memory.resident(), 64 * mb);
    }
    memory.heap->memory.period_ns = 0; // two periods later
    for (int i = 0; i < 4; i++) {
        std::vector<char *> blocks = touched_blocks(memory.heap, mb, 8);
        free_but_each(blocks, 0);
    }
    EXPECT_LT(memory.resident(), 16 * mb);
}

// A regression: with half of that, a heap of 48 MB whose blocks came and went spent half its time on giving memory back
// and faulting it in again.
TEST(heap_page_memory, free_pages_of_small_heaps_keep_some_memory_for_good) {
    decaying_heap memory(0);
    std::vector<char *> blocks = touched_blocks(memory.heap, 65'536, 112); // 7 MiB
    size_t resident = memory.resident();
    free_but_each(blocks, 0);
    EXPECT_EQ(memory.resident(), resident);
}

TEST(heap_page_memory, zeroed_blocks_of_all_kinds_of_pages) {
    decaying_heap memory(0);
    random_source random{1};
    for (int round = 0; round < 30; round++) {
        std::vector<char *> blocks = touched_blocks(memory.heap, 20'000 + random.below(1'500'000), 8);
        free_but_each(blocks, 1 + random.below(4));
        size_t bytes = 20'000 + random.below(4'000'000);
        char *zeroed = static_cast<char *>(heap_alloc(memory.heap, bytes, 0, true));
        ASSERT_EQ(std::count(zeroed, zeroed + bytes, 0), static_cast<ptrdiff_t>(bytes)) << "round " << round;
        std::memset(zeroed, 1, bytes);
        EXPECT_EQ(heap_free(zeroed), TY_OK);
        for (size_t i = 0; i < blocks.size(); i++) {
            if (heap_usable_size(blocks[i]) != 0 && random.below(3) != 0) {
                EXPECT_EQ(heap_free(blocks[i]), TY_OK);
            }
        }
    }
    EXPECT_EQ(recount_idle(memory.heap), memory.heap->memory.idle);
    EXPECT_EQ(recount_used(memory.heap), memory.heap->memory.used);
}

TEST(heap_page_memory, room_to_grow_is_free) {
    decaying_heap memory(UINT64_MAX);
    memory.detach();
    memory.owner.movable = true;
    memory.attach(true);
    for (size_t bytes = 3 * mb; bytes < 64 * mb; bytes *= 2) {
        char *block = static_cast<char *>(heap_alloc(memory.heap, bytes));
        char *after = static_cast<char *>(heap_alloc(memory.heap, bytes)); // so that the block must move
        std::memset(block, 1, bytes);
        char *moved = static_cast<char *>(heap_resize(block, bytes + bytes / 2));
        ASSERT_NE(moved, nullptr);
        EXPECT_NE(moved, block) << "nothing was tested";
        EXPECT_EQ(recount_idle(memory.heap), memory.heap->memory.idle) << bytes;
        EXPECT_EQ(recount_used(memory.heap), memory.heap->memory.used) << bytes;
        EXPECT_EQ(heap_free(after), TY_OK);
        EXPECT_EQ(heap_free(moved), TY_OK);
        EXPECT_EQ(recount_idle(memory.heap), memory.heap->memory.idle) << bytes;
        EXPECT_EQ(recount_used(memory.heap), memory.heap->memory.used) << bytes;
    }
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_page_memory, what_the_kernel_keeps_is_cleared) {
    decaying_heap memory(0);
    memory.detach();
    memory.owner.give_back = [](void *, void *, size_t) { return false; };
    memory.attach(true);
    memory.heap->memory.period_ns = 0;
    std::vector<char *> blocks = touched_blocks(memory.heap, mb, 32);
    free_but_each(blocks, 0);
    char *zeroed = static_cast<char *>(heap_alloc(memory.heap, 32 * mb, 0, true));
    EXPECT_EQ(std::count(zeroed, zeroed + 32 * mb, 0), static_cast<ptrdiff_t>(32 * mb));
}

TEST(heap_page_memory, a_raise_keeps_what_is_known) {
    memory_heap memory(TY_CLASSES_DENSE, size_t{64} << 20, size_t{256} << 20);
    std::vector<char *> blocks = touched_blocks(memory.heap, mb / 2, 40);
    free_but_each(blocks, 3);
    EXPECT_NE(memory.heap->memory.idle, 0u);
    ASSERT_EQ(heap_grow(memory.heap, size_t{256} << 20), TY_OK) << ty_error_text();
    EXPECT_EQ(recount_idle(memory.heap), memory.heap->memory.idle);
    char *zeroed = static_cast<char *>(heap_alloc(memory.heap, mb / 2, 0, true));
    EXPECT_EQ(std::count(zeroed, zeroed + mb / 2, 0), static_cast<ptrdiff_t>(mb / 2));
}

// Threads give memory back while others take and free what lies beside it, and while the heap is paused and verified.
TEST(heap_page_memory, threads_decay_at_once) {
    decaying_heap memory(0);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; t++) {
        threads.emplace_back([&memory, t] {
            random_source random{t};
            std::vector<std::pair<char *, char>> blocks;
            for (int i = 0; i < 3000; i++) {
                size_t bytes = random.below(4) == 0 ? 1 + random.below(8000) : 16'000 + random.below(600'000);
                char mark = static_cast<char>(1 + random.below(100));
                blocks.emplace_back(static_cast<char *>(heap_alloc(memory.heap, bytes)), mark);
                std::memset(blocks.back().first, mark, bytes < 9000 ? bytes : 9000);
                if (blocks.size() < 40)
                    continue;
                std::swap(blocks[random.below(blocks.size())], blocks.back());
                ASSERT_EQ(blocks.back().first[0], blocks.back().second) << "its memory was given back";
                ASSERT_EQ(heap_free(blocks.back().first), TY_OK);
                blocks.pop_back();
            }
            for (auto &[block, mark] : blocks)
                ASSERT_TRUE(block[0] == mark && heap_free(block) == TY_OK);
        });
    }
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(problems_of(memory.heap), "");
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(recount_idle(memory.heap), memory.heap->memory.idle);
    EXPECT_EQ(recount_used(memory.heap), memory.heap->memory.used);
    ty_heap_stats stats{};
    EXPECT_EQ(heap_get_stats(memory.heap, &stats), TY_OK);
    EXPECT_EQ(stats.free_extents, 1u);
}

} // namespace
} // namespace taiyen::test
