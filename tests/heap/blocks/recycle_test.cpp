// Goal: a run whose pages have no memory gets that of idle free pages, by moves instead of faults; what is moved in is
// cleared where zeros were asked for; nobody's content changes; what is known of free pages stays true (P1). Method:
// the process's count of faults and the kernel's count of resident pages; heaps that give memory back at once, so that
// runs without memory and idle ones stand side by side; moves that the kernel refuses half way; random work by threads.
#include "../heap_fixture.hpp"
#include "src/heap/maintenance/walk.hpp"
#include "src/heap/pages/touched_pages.hpp"
#include "src/os/calls/syscalls.hpp"
#include "tests/heap/blocks/moving_calls.hpp"
#include "tests/units.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

namespace taiyen::test {
namespace {

constexpr size_t huge_pages_of_32m = 16;

struct sparse_heap : memory_heap {
    explicit sparse_heap(bool huge = false) : memory_heap(TY_CLASSES_DENSE, size_t{1} << 30) {
        detach();
        owner.movable = true;
        owner.huge = huge;
        attach(true);
        heap->memory.period_ns = 0;
    }
    size_t resident() const { return os::resident_bytes(base, top_of(heap) * page_bytes); }
    bool moves() { // whether this kernel does
        char *from = touched(16 * page_bytes), *to = touched(16 * page_bytes);
        EXPECT_TRUE(decommit_pages(nullptr, to, 16 * page_bytes));
        bool moved = heap->mover.hand_over(from, to, 16 * page_bytes) == 16 * page_bytes;
        EXPECT_TRUE(heap_free(from) == TY_OK && heap_free(to) == TY_OK);
        return moved;
    }
    char *touched(size_t bytes) {
        char *block = static_cast<char *>(heap_alloc(heap, bytes));
        std::memset(block, 1, bytes);
        return block;
    }
};

void expect_known(ty_heap *heap) {
    pause_guard paused(heap);
    uint64_t idle = 0, used = 0;
    extent_walk walk(heap);
    page_extent extent;
    while (walk.next(&extent)) {
        if (kind_at(heap, extent.first) == page_free)
            idle += count_touched(heap, extent.first, extent.count);
        else
            used += extent.count;
    }
    EXPECT_EQ(idle, heap->memory.idle);
    EXPECT_EQ(used, heap->memory.used);
}

// Runs without memory first, idle ones after them, live blocks between all.
struct mixed_runs {
    sparse_heap memory;
    std::vector<char *> kept;

    explicit mixed_runs(size_t bytes, size_t count) {
        std::vector<char *> blocks;
        for (size_t i = 0; i < count; i++) {
            blocks.push_back(memory.touched(bytes));
            kept.push_back(memory.touched(65'536));
        }
        for (char *block : blocks)
            EXPECT_EQ(heap_free(block), TY_OK);
        EXPECT_LT(memory.heap->memory.idle * page_bytes, count * bytes / 2) << "nothing was given back";
        EXPECT_GT(memory.heap->memory.idle * page_bytes, 2 * mb) << "nothing is idle";
    }
    void expect_sound() const {
        for (const char *block : kept)
            EXPECT_EQ(std::count(block, block + 65'536, 1), 65'536);
        expect_known(memory.heap);
        EXPECT_EQ(problems_of(memory.heap), "");
    }
};

TEST(heap_recycle, memory_of_idle_pages_is_moved_and_not_faulted_in) {
    mixed_runs runs(256 << 10, 64);
    if (!runs.memory.moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    size_t resident = runs.memory.resident();
    size_t before = faults();
    std::vector<char *> blocks;
    for (int i = 0; i < 8; i++)
        blocks.push_back(runs.memory.touched(256 << 10));
    EXPECT_LT(faults() - before, 8 * 64 / 4u) << "of 512 pages";
    EXPECT_LE(runs.memory.resident(), resident + 8 * 64 / 4 * page_bytes);
    runs.expect_sound();
}

TEST(heap_recycle, what_is_moved_in_reads_as_zeros_where_that_was_asked_for) {
    mixed_runs runs(256 << 10, 64);
    for (int i = 0; i < 16; i++) {
        size_t bytes = (size_t{200} + 7 * static_cast<size_t>(i)) << 10;
        char *zeroed = static_cast<char *>(heap_alloc(runs.memory.heap, bytes, 0, true));
        ASSERT_EQ(std::count(zeroed, zeroed + bytes, 0), static_cast<ptrdiff_t>(bytes)) << i;
        std::memset(zeroed, 1, bytes);
    }
    runs.expect_sound();
}

TEST(heap_recycle, whole_huge_pages_move_to_where_nothing_was_used_yet) {
    sparse_heap memory;
    if (!memory.moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    memory.heap->memory.period_ns = UINT64_MAX; // nothing is given back
    char *old = memory.touched(32 * mb);
    char *after = memory.touched(3 * mb);
    ASSERT_GT(after, old);
    EXPECT_EQ(heap_free(old), TY_OK);
    size_t resident = memory.resident();
    size_t bytes = 36 * mb; // it does not fit there
    char *zeroed = static_cast<char *>(heap_alloc(memory.heap, bytes, 0, true));
    ASSERT_GT(zeroed, after);
    EXPECT_GE(memory.heap->memory.used - memory.heap->memory.idle, bytes / page_bytes);
    EXPECT_EQ(std::count(zeroed, zeroed + bytes, 0), static_cast<ptrdiff_t>(bytes));
    std::memset(zeroed, 1, bytes);
    EXPECT_LE(memory.resident(), resident + bytes - (huge_pages_of_32m - 2) * os::huge_page_bytes);
    expect_known(memory.heap);
    EXPECT_EQ(problems_of(memory.heap), "");
}

int count_calls(os::sys::call which) {
    ioctl_calls += which == os::sys::call::ioctl;
    madvise_calls += which == os::sys::call::madvise;
    return 0;
}

// A place for runs of up to 16 MiB without memory, and 64 MiB that are free with memory: so much more that shorter runs
// rather go to the place and get memory from there.
struct place_and_donor {
    sparse_heap memory;
    bool moves;
    char *place;

    place_and_donor() : moves(memory.moves()) {
        memory.heap->memory.period_ns = UINT64_MAX; // nothing is given back unasked
        char *donor = memory.touched(64 * mb);
        memory.touched(3 * mb);
        place = memory.touched(16 * mb);
        EXPECT_EQ(heap_free(place), TY_OK);
        EXPECT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
        EXPECT_EQ(heap_free(donor), TY_OK);
    }
    // Takes 15 MiB there; how many of the pages of the 8 huge ones may have memory then.
    uint64_t take() {
        size_t bytes = 15 * mb;
        ioctl_calls = madvise_calls = 0;
        os::sys::hook = count_calls;
        char *zeroed = static_cast<char *>(heap_alloc(memory.heap, bytes, 0, true));
        os::sys::hook = nullptr;
        EXPECT_EQ(zeroed, place);
        EXPECT_EQ(std::count(zeroed, zeroed + bytes, 0), static_cast<ptrdiff_t>(bytes));
        return count_touched(memory.heap, static_cast<uint64_t>(place - memory.base) / page_bytes,
                             8 * os::huge_page_bytes / page_bytes);
    }
};

TEST(heap_recycle, the_last_huge_page_of_a_long_run_moves_whole_if_what_is_after_it_is_free) {
    place_and_donor runs;
    if (!runs.moves)
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    EXPECT_EQ(runs.take(), 8 * os::huge_page_bytes / page_bytes);
    EXPECT_EQ(ioctl_calls, 1);
    EXPECT_EQ(madvise_calls, 1) << "a page table where it goes would split it";
    expect_known(runs.memory.heap);
    // What came with it is not zero.
    char *rest = static_cast<char *>(heap_alloc(runs.memory.heap, mb, 0, true));
    EXPECT_EQ(rest, runs.place + 15 * mb);
    EXPECT_EQ(std::count(rest, rest + mb, 0), static_cast<ptrdiff_t>(mb));
    expect_known(runs.memory.heap);
    EXPECT_EQ(problems_of(runs.memory.heap), "");
}

TEST(heap_recycle, what_another_block_has_a_part_of_stays_and_no_huge_page_is_split_for_it) {
    place_and_donor runs;
    if (!runs.moves)
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    size_t bytes = mb / 2;
    char *other = runs.place + 15 * mb + bytes; // half of what is after
    ASSERT_EQ(heap_alloc_at(runs.memory.heap, other, bytes), TY_OK);
    std::memset(other, 1, bytes);
    EXPECT_EQ(runs.take(), 7 * os::huge_page_bytes / page_bytes);
    EXPECT_EQ(ioctl_calls, 1);
    EXPECT_EQ(std::count(other, other + bytes, 1), static_cast<ptrdiff_t>(bytes));
    expect_known(runs.memory.heap);
    EXPECT_EQ(problems_of(runs.memory.heap), "");
}

// A run of 6 MiB without memory, after so many bytes, of which a page table is known to be left; the calls that taking
// it makes to give memory back, twice.
std::vector<int> calls_to_fault_in(bool huge, size_t before) {
    sparse_heap memory(huge);
    EXPECT_NE(heap_alloc(memory.heap, before), nullptr);
    memory.heap->memory.period_ns = UINT64_MAX; // nothing is given back unasked
    char *place = memory.touched(5 * mb);
    char *rest = place + 5 * mb;
    EXPECT_EQ(heap_alloc_at(memory.heap, rest, mb), TY_OK);
    EXPECT_EQ(heap_alloc_at(memory.heap, rest + mb, mb), TY_OK);
    EXPECT_EQ(heap_free(place), TY_OK);
    EXPECT_EQ(heap_purge(memory.heap, nullptr), TY_OK); // of a part of the third huge page, too
    EXPECT_EQ(heap_free(rest), TY_OK);
    EXPECT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    std::vector<int> calls;
    for (int i = 0; i < 2; i++) {
        madvise_calls = 0;
        os::sys::hook = count_calls;
        char *zeroed = static_cast<char *>(heap_alloc(memory.heap, 6 * mb, 0, true));
        os::sys::hook = nullptr;
        calls.push_back(madvise_calls);
        EXPECT_EQ(zeroed, place);
        EXPECT_EQ(std::count(zeroed, rest + mb, 0), static_cast<ptrdiff_t>(6 * mb));
        std::memset(zeroed, 1, 6 * mb);
        EXPECT_EQ(heap_free(zeroed), TY_OK);
        EXPECT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    }
    expect_known(memory.heap);
    EXPECT_EQ(problems_of(memory.heap), "");
    return calls;
}

// Else the kernel would fault in small pages there, 512 for a huge one.
TEST(heap_recycle, an_empty_page_table_goes_before_a_huge_page_is_faulted_in) {
    for (size_t before : {4 * mb, 200 * mb}) {
        EXPECT_EQ(calls_to_fault_in(true, before), (std::vector{1, 0})) << "what has gone is there no more";
        EXPECT_EQ(calls_to_fault_in(false, before), (std::vector{0, 0})) << "there are small pages anyway";
    }
}

// Splitting a huge page before a part of it moves takes less time than the move does for it; once is enough.
// Three runs without memory, and whole huge pages that are idle.
struct places_and_donor {
    static constexpr size_t bytes = 300 * page_bytes;
    sparse_heap memory;
    bool kernel_moves = memory.moves();
    std::vector<char *> places;

    explicit places_and_donor(bool huge) : memory(huge) {
        memory.heap->memory.period_ns = UINT64_MAX; // nothing is given back unasked
        char *donor = memory.touched(6 * mb);
        while (memory.touched(128 * page_bytes) < donor) { // fills the gap before it
        }
        for (int i = 0; i < 3; i++) {
            memory.touched(128 * page_bytes);
            places.push_back(memory.touched(bytes));
        }
        memory.touched(128 * page_bytes);
        for (char *place : places)
            EXPECT_EQ(heap_free(place), TY_OK);
        EXPECT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
        EXPECT_EQ(heap_free(donor), TY_OK);
    }
    void take(size_t which) const {
        ioctl_calls = madvise_calls = 0;
        os::sys::hook = count_calls;
        char *zeroed = static_cast<char *>(heap_alloc(memory.heap, bytes, 0, true));
        os::sys::hook = nullptr;
        EXPECT_EQ(zeroed, places[which]);
        EXPECT_EQ(std::count(zeroed, zeroed + bytes, 0), static_cast<ptrdiff_t>(bytes));
    }
};

TEST(heap_recycle, a_huge_page_is_split_once_before_parts_of_it_move) {
    places_and_donor heap(false);
    if (!heap.kernel_moves)
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    const int splits[] = {1, 1, 0}; // the second part begins in the first huge page and ends in the second
    for (size_t i = 0; i < 3; i++) {
        heap.take(i);
        EXPECT_GT(ioctl_calls, 0) << "nothing moved";
        EXPECT_EQ(madvise_calls, splits[i]) << i;
    }
    expect_known(heap.memory.heap);
    EXPECT_EQ(problems_of(heap.memory.heap), "");
}

TEST(heap_recycle, no_huge_page_is_split_while_more_memory_may_be_held) {
    places_and_donor heap(true);
    if (!heap.kernel_moves)
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    heap.take(0);
    EXPECT_EQ(ioctl_calls, 0) << "something moved";
    page_memory &known = heap.memory.heap->memory;
    known.peak = known.peak_before = known.used; // what is idle is more than may be held beside that
    heap.take(1);
    EXPECT_GT(ioctl_calls, 0) << "nothing moved";
    expect_known(heap.memory.heap);
    EXPECT_EQ(problems_of(heap.memory.heap), "");
}

// Free runs with memory and without, and one that fits best of all.
TEST(heap_recycle, a_run_is_taken_where_memory_is_rather_than_where_it_fits_best) {
    sparse_heap memory;
    memory.heap->memory.period_ns = UINT64_MAX; // nothing is given back unasked
    char *without = memory.touched(20 * page_bytes);
    memory.touched(64 * page_bytes);
    char *with = memory.touched(24 * page_bytes);
    memory.touched(64 * page_bytes);
    char *far_too_long = memory.touched(100 * page_bytes);
    memory.touched(64 * page_bytes);
    EXPECT_EQ(heap_free(without), TY_OK);
    EXPECT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    EXPECT_EQ(heap_free(far_too_long), TY_OK);
    EXPECT_EQ(heap_alloc(memory.heap, 20 * page_bytes), without) << "what is left over costs more than memory does";
    EXPECT_EQ(heap_free(without), TY_OK);
    EXPECT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    EXPECT_EQ(heap_free(with), TY_OK);
    EXPECT_EQ(heap_alloc(memory.heap, 20 * page_bytes), with);
    EXPECT_EQ(heap_alloc(memory.heap, 20 * page_bytes), without) << "what is the only one left is taken";
    expect_known(memory.heap);
    EXPECT_EQ(problems_of(memory.heap), "");
}

std::atomic<int> calls_left{0}; // of ioctl, before one fails; then as many again
int fail_now_and_then(os::sys::call which) {
    if (which != os::sys::call::ioctl || calls_left.fetch_sub(1) > 0)
        return 0;
    calls_left.store(3);
    return EBUSY;
}

TEST(heap_recycle, moves_that_fail_lose_nothing) {
    mixed_runs runs(512 << 10, 48);
    random_source random{3};
    std::vector<char *> blocks;
    os::sys::hook = fail_now_and_then;
    for (int i = 0; i < 400; i++) {
        size_t bytes = (64 + random.below(1000)) << 10;
        char *block = static_cast<char *>(heap_alloc(runs.memory.heap, bytes, 0, i % 2 == 0));
        if (i % 2 == 0) {
            ASSERT_EQ(std::count(block, block + bytes, 0), static_cast<ptrdiff_t>(bytes)) << i;
        }
        std::memset(block, 2, bytes);
        blocks.push_back(block);
        if (blocks.size() == 16) {
            std::swap(blocks[random.below(16)], blocks.back());
            ASSERT_EQ(heap_free(blocks.back()), TY_OK);
            blocks.pop_back();
        }
    }
    os::sys::hook = nullptr;
    runs.expect_sound();
}

// Pages that are resident though nothing is known of them stand in the way of a move: a huge page brings its
// neighbours.
TEST(heap_recycle, pages_that_are_there_already_stay) {
    mixed_runs runs(256 << 10, 64);
    extent_walk walk(runs.memory.heap);
    page_extent extent;
    while (walk.next(&extent)) { // reading brings in a page of zeros
        for (uint64_t page = extent.first; kind_at(runs.memory.heap, extent.first) == page_free && extent.count == 64 &&
                                           page < extent.first + extent.count;
             page += 23) {
            if (count_touched(runs.memory.heap, page, 1) == 0) {
                EXPECT_EQ(*static_cast<volatile char *>(page_address(runs.memory.heap, page)), 0);
            }
        }
    }
    for (int i = 0; i < 16; i++) {
        char *zeroed = static_cast<char *>(heap_alloc(runs.memory.heap, 256 << 10, 0, true));
        ASSERT_EQ(std::count(zeroed, zeroed + (256 << 10), 0), 256 << 10) << i;
    }
    runs.expect_sound();
}

// Threads take what others use as donors, while the heap is paused and verified.
TEST(heap_recycle, threads_recycle_at_once) {
    sparse_heap memory;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; t++) {
        threads.emplace_back([&memory, t] {
            random_source random{t};
            struct owned {
                char *block;
                size_t bytes;
                char mark;
            };
            std::vector<owned> blocks;
            for (int i = 0; i < 1500; i++) {
                owned made{nullptr, (16 + random.below(1500)) << 10, static_cast<char>(1 + random.below(100))};
                bool zeroed = random.below(4) == 0;
                made.block = static_cast<char *>(heap_alloc(memory.heap, made.bytes, 0, zeroed));
                for (size_t at = 0; zeroed && at < made.bytes; at += 512)
                    ASSERT_EQ(made.block[at], 0);
                for (size_t at = 0; at < made.bytes; at += page_bytes)
                    made.block[at] = made.mark;
                blocks.push_back(made);
                if (blocks.size() < 16)
                    continue;
                std::swap(blocks[random.below(blocks.size())], blocks.back());
                for (size_t at = 0; at < blocks.back().bytes; at += page_bytes)
                    ASSERT_EQ(blocks.back().block[at], blocks.back().mark);
                ASSERT_EQ(heap_free(blocks.back().block), TY_OK);
                blocks.pop_back();
            }
            for (owned &each : blocks)
                ASSERT_EQ(heap_free(each.block), TY_OK);
        });
    }
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(problems_of(memory.heap), "");
    for (std::thread &thread : threads)
        thread.join();
    expect_known(memory.heap);
    ty_heap_stats stats{};
    EXPECT_EQ(heap_get_stats(memory.heap, &stats), TY_OK);
    EXPECT_EQ(stats.free_extents, 1u);
}

} // namespace
} // namespace taiyen::test
