// Goal: a block that gets another place takes its memory along, small pages and huge ones, and what it grows by gets
// idle memory; each page's content arrives whatever lies in the way; what is known of free pages stays exact (P1).
// Method: the kernel's counts of faults and of resident pages; runs laid out by hand; random blocks, all of whose pages
// are marked, in heaps that give memory back at once, with moves that are refused now and then, and with all that the
// kernel may say of a move, played; a thread that lets the heap grow, step by step with the moves; a fork.
#include "../heap_fixture.hpp"
#include "src/heap/maintenance/walk.hpp"
#include "src/heap/pages/touched_pages.hpp"
#include "src/os/calls/kernel_abi.hpp"
#include "src/os/calls/syscalls.hpp"
#include "tests/heap/blocks/moving_calls.hpp"
#include "tests/units.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

// In place of the kernel's own answer to a move.
int (*play_move)(int fd, os::kernel::move_arguments *part) = nullptr;

} // namespace
} // namespace taiyen::test

// The program's own, so that a test can answer with what stands in the arguments, too.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    using namespace taiyen;
    if (test::play_move != nullptr && request == os::kernel::userfault_move)
        return test::play_move(fd, static_cast<os::kernel::move_arguments *>(argument));
    return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}

namespace taiyen::test {
namespace {

constexpr size_t wall_bytes = 16 * page_bytes; // a run
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int steps = 2000;
#else
constexpr int steps = 12'000;
#endif

struct movable_heap : memory_heap {
    explicit movable_heap(bool huge = false) : memory_heap(TY_CLASSES_DENSE, size_t{4} << 30) {
        detach();
        owner.movable = true;
        owner.huge = huge;
        attach(true);
    }
    uint64_t page_of(const char *block) const { return static_cast<uint64_t>(block - base) / page_bytes; }
    uint64_t touched(const char *block, size_t bytes) const {
        return count_touched(heap, page_of(block), bytes / page_bytes);
    }
    char *marked(size_t bytes) {
        char *block = static_cast<char *>(heap_alloc(heap, bytes));
        mark(block, 0, bytes);
        return block;
    }
    // Each page gets a value of its own, but every third is of zeros: the kernel's word of these is not taken (PM4).
    static size_t mark_of(size_t at) { return at / page_bytes % 3 == 2 ? 0 : at + 1; }
    static void mark(char *block, size_t from, size_t to) {
        for (size_t at = (from + page_bytes - 1) / page_bytes * page_bytes; at + 8 <= to; at += page_bytes) {
            size_t value = mark_of(at);
            if (value == 0)
                std::memset(block + at, 0, std::min(page_bytes, to - at));
            std::memcpy(block + at, &value, 8);
        }
    }
    // Which pages of a block do not hold their marks, and what they hold; empty: none.
    std::string wrong_pages(const char *block, size_t bytes) const {
        std::string wrong;
        for (size_t at = 0, there = 0; at + 8 <= bytes; at += page_bytes) {
            std::memcpy(&there, block + at, 8);
            if (there != mark_of(at))
                wrong += " page " + std::to_string(page_of(block + at)) + ": " + std::to_string(there) + " not " +
                         std::to_string(mark_of(at));
        }
        return wrong;
    }
    void wall_in(char *block) { // so that it cannot grow where it is
        ty_status status = heap_alloc_at(heap, block + heap_usable_size(block), wall_bytes);
        ASSERT_TRUE(status == TY_OK || status == TY_E_EXISTS) << ty_error_text();
    }
};

bool kernel_moves() {
    movable_heap memory;
    char *from = memory.marked(mb), *to = static_cast<char *>(heap_alloc(memory.heap, mb));
    return memory.heap->mover.hand_over(from, to, mb) == mb;
}

// exact: a page of whose memory nothing is known has none. Huge pages bring their neighbours.
void expect_known(const movable_heap &memory, bool exact) {
    ty_heap *heap = memory.heap;
    EXPECT_EQ(problems_of(heap), "");
    pause_guard paused(heap);
    uint64_t idle = 0, used = 0;
    extent_walk walk(heap);
    page_extent extent;
    while (walk.next(&extent)) {
        uint64_t end = uint64_t{extent.first} + extent.count;
        if (kind_at(heap, extent.first) != page_free) {
            used += extent.count;
            continue;
        }
        idle += count_touched(heap, extent.first, extent.count);
        for (uint64_t page = extent.first, stop; exact && page < end; page = stop) {
            page = next_with_touched(heap, page, end, false);
            stop = next_with_touched(heap, page, end, true);
            EXPECT_EQ(os::resident_bytes(page_address(heap, page), (stop - page) * page_bytes), 0u);
        }
    }
    EXPECT_EQ(idle, heap->memory.idle);
    EXPECT_EQ(used, heap->memory.used);
}

int real_move(int fd, os::kernel::move_arguments *part) {
    return static_cast<int>(syscall(SYS_ioctl, fd, os::kernel::userfault_move, part));
}

int answer(os::kernel::move_arguments *part, int error, uint64_t moved) {
    part->moved = moved != 0 ? static_cast<int64_t>(moved) : -error;
    errno = error;
    return -1;
}

// Nothing is moved; or only the first pages, and fewer are reported (PM4). Any error may be the next answer.
uint64_t moves_played = 0;
int play_some_moves(int fd, os::kernel::move_arguments *part) {
    static random_source random{9};
    constexpr int errors[] = {EAGAIN, EBUSY, ENOMEM, ENOENT, EFAULT, EINVAL, EPERM};
    uint64_t what = random.below(4);
    if (what == 0)
        return real_move(fd, part);
    moves_played++;
    if (what == 1)
        return answer(part, errors[random.below(std::size(errors))], 0);
    // At most as much as the kernel moves at once.
    uint64_t most = std::min({part->bytes, os::huge_page_bytes - part->from % os::huge_page_bytes,
                              os::huge_page_bytes - part->to % os::huge_page_bytes});
    os::kernel::move_arguments first = *part;
    first.bytes = (random.below(most / page_bytes) + 1) * page_bytes;
    if (real_move(fd, &first) == 0)
        first.moved = static_cast<int64_t>(first.bytes);
    if (first.moved <= 0)
        return answer(part, errno, 0);
    uint64_t moved = static_cast<uint64_t>(first.moved);
    uint64_t reported = what == 2 ? moved : random.below(moved / page_bytes) * page_bytes;
    return reported == part->bytes ? 0
                                   : answer(part, reported == 0 && random.below(2) == 0 ? EEXIST : EAGAIN, reported);
}

struct owned {
    char *block;
    size_t bytes;
};

void resize(const movable_heap &memory, owned &which, size_t bytes) {
    which.block = static_cast<char *>(heap_resize(which.block, bytes));
    ASSERT_NE(which.block, nullptr) << ty_error_text();
    ASSERT_EQ(memory.wrong_pages(which.block, std::min(bytes, which.bytes)), "");
    memory.mark(which.block, std::min(bytes, which.bytes), bytes);
    which.bytes = bytes;
}

// Allocates, some zeroed, and resizes at random, up to so many bytes each.
void storm(movable_heap &memory, uint64_t seed, size_t largest) {
    random_source random{seed};
    std::vector<owned> blocks;
    for (int i = 0; i < steps && !testing::Test::HasFailure(); i++) {
        size_t bytes = page_bytes + random.below(largest >> random.below(6));
        bytes &= ~size_t{15}; // no page has less than a mark
        size_t which = blocks.empty() ? 0 : random.below(blocks.size());
        if (blocks.size() < 8 || (blocks.size() < 24 && random.below(4) == 0)) {
            bool zeroed = random.below(2) == 0;
            char *block = static_cast<char *>(heap_alloc(memory.heap, bytes, 0, zeroed));
            ASSERT_NE(block, nullptr) << ty_error_text();
            if (zeroed) {
                ASSERT_EQ(std::count(block, block + bytes, 0), static_cast<ptrdiff_t>(bytes));
            }
            memory.mark(block, 0, bytes);
            blocks.push_back({block, bytes});
        } else if (random.below(4) == 0) {
            ASSERT_EQ(memory.wrong_pages(blocks[which].block, blocks[which].bytes), "");
            ASSERT_EQ(heap_free(blocks[which].block), TY_OK);
            blocks[which] = blocks.back();
            blocks.pop_back();
        } else {
            resize(memory, blocks[which], bytes);
        }
    }
    for (owned &each : blocks) {
        EXPECT_EQ(memory.wrong_pages(each.block, each.bytes), "");
        EXPECT_EQ(heap_free(each.block), TY_OK);
    }
}

TEST(heap_moved_pages, small_pages_move_with_their_block) {
    movable_heap memory;
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    for (size_t bytes : {64 * kb, 256 * kb, 3 * mb}) {
        char *block = memory.marked(bytes);
        memory.wall_in(block);
        size_t before = faults();
        char *moved = static_cast<char *>(heap_resize(block, bytes + page_bytes));
        ASSERT_NE(moved, block);
        EXPECT_LT(faults() - before, 12u) << "of " << bytes / page_bytes;
        EXPECT_EQ(memory.wrong_pages(moved, bytes), "");
        EXPECT_EQ(memory.touched(block, bytes), 0u);
        expect_known(memory, true);
        char *zeroed = static_cast<char *>(heap_alloc(memory.heap, bytes, 0, true));
        EXPECT_EQ(zeroed, block);
        EXPECT_EQ(std::count(zeroed, zeroed + bytes, 0), static_cast<ptrdiff_t>(bytes));
    }
}

TEST(heap_moved_pages, huge_pages_leave_nothing_behind) {
    movable_heap memory(true);
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    memory.marked(24 * mb);
    char *block = memory.marked(8 * mb);
    uint64_t idle = memory.heap->memory.idle;
    for (int i = 0; i < 4; i++) {
        memory.wall_in(block);
        char *moved = static_cast<char *>(heap_resize(block, 8 * mb + page_bytes));
        ASSERT_NE(moved, block);
        EXPECT_EQ(memory.wrong_pages(moved, 8 * mb), "");
        EXPECT_EQ(memory.touched(block, 8 * mb), 0u);
        EXPECT_EQ(os::resident_bytes(block, 8 * mb), 0u);
        EXPECT_LE(memory.heap->memory.idle, idle + 1);
        ASSERT_EQ(heap_resize_in_place(moved, 8 * mb), TY_OK);
        block = moved;
    }
    expect_known(memory, false);
}

int count_madvise(os::sys::call which) {
    madvise_calls += which == os::sys::call::madvise;
    return 0;
}

// A block of 8 MB moves from place to place, then all is freed. Returns how often it was moved to a place that was
// emptied first, and where it was. zeros: of these alone, whose move the kernel need not report (PM4).
std::pair<int, std::vector<char *>> move_along(movable_heap &memory, bool zeros = false) {
    std::vector<char *> places{memory.marked(8 * mb)}, walls;
    if (zeros)
        std::memset(places[0], 0, 8 * mb);
    madvise_calls = 0;
    for (int i = 0; i < 4; i++) {
        char *block = places.back();
        EXPECT_EQ(heap_resize_in_place(block, 8 * mb), TY_OK);
        walls.push_back(block + 8 * mb);
        memory.wall_in(block);
        os::sys::hook = count_madvise;
        places.push_back(static_cast<char *>(heap_resize(block, 8 * mb + page_bytes)));
        os::sys::hook = nullptr;
        block = places.back();
        EXPECT_TRUE(zeros ? std::count(block, block + 8 * mb, 0) == 8 * mb : memory.wrong_pages(block, 8 * mb).empty());
    }
    walls.push_back(places.back());
    for (char *each : walls)
        EXPECT_EQ(heap_free(each), TY_OK);
    return {madvise_calls, places};
}

TEST(heap_moved_pages, a_place_is_emptied_first_unless_it_is_known_to_be_vacant) {
    movable_heap memory(true);
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    memory.heap->memory.period_ns = UINT64_MAX; // nothing is given back unasked
    std::vector<char *> used(14);               // so that huge pages are asked for there (P2)
    for (char *&each : used)
        each = memory.marked(8 * mb);
    for (char *each : used)
        ASSERT_EQ(heap_free(each), TY_OK);
    ASSERT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    std::vector<char *> places = move_along(memory).second; // where nothing was yet: huge pages are asked for there
    ASSERT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    EXPECT_EQ(move_along(memory), std::make_pair(0, places)) << "where whole huge pages were";
    // A part of a huge page is given back, and then the rest: a page table is left.
    char *part = places[2], *rest = part + 64 * kb;
    for (char *each : {part, rest}) {
        ASSERT_EQ(heap_alloc_at(memory.heap, each, 64 * kb), TY_OK);
        memory.mark(each, 0, 64 * kb);
    }
    ASSERT_EQ(heap_free(part), TY_OK);
    ASSERT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    ASSERT_EQ(heap_free(rest), TY_OK);
    ASSERT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    EXPECT_EQ(move_along(memory), std::make_pair(1, places)) << "where small pages were";
    EXPECT_EQ(heap_alloc_at(memory.heap, places[3], mb), TY_OK);
    memory.mark(places[3], 0, mb);
    EXPECT_EQ(heap_free(places[3]), TY_OK);
    EXPECT_EQ(move_along(memory, true), std::make_pair(2, places)) << "and where memory is";
    expect_known(memory, false);
}

// Runs one after the other, all touched: idle, a wall, a block, a hole without memory, a wall.
struct row {
    movable_heap memory;
    char *idle, *block, *hole;

    row() {
        idle = memory.marked(mb);
        memory.marked(100 * kb);
        block = memory.marked(256 * kb);
        hole = memory.marked(768 * kb);
        memory.marked(100 * kb);
        EXPECT_EQ(hole, block + 256 * kb);
        EXPECT_EQ(heap_free(hole), TY_OK);
        EXPECT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
        EXPECT_EQ(heap_free(idle), TY_OK);
    }
    // All pages that the block has more were there before.
    void expect_memory_of_idle(char *grown, size_t bytes, size_t resident) const {
        size_t before = faults();
        memory.mark(grown, 256 * kb, bytes);
        EXPECT_LT(faults() - before, 16u) << "of " << (bytes - 256 * kb) / page_bytes;
        EXPECT_EQ(memory.wrong_pages(grown, bytes), "");
        EXPECT_LE(os::resident_bytes(memory.base, top_of(memory.heap) * page_bytes), resident + 16 * page_bytes);
        expect_known(memory, true);
    }
};

TEST(heap_moved_pages, what_a_block_grows_by_gets_idle_memory) {
    for (bool elsewhere : {false, true}) {
        SCOPED_TRACE(elsewhere);
        row runs;
        if (!kernel_moves())
            GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
        if (elsewhere)
            runs.memory.wall_in(runs.block);
        size_t resident = os::resident_bytes(runs.memory.base, top_of(runs.memory.heap) * page_bytes);
        char *grown = static_cast<char *>(heap_resize(runs.block, 700 * kb));
        EXPECT_EQ(grown, elsewhere ? runs.hole + wall_bytes : runs.block);
        runs.expect_memory_of_idle(grown, 700 * kb, resident);
    }
}

TEST(heap_moved_pages, whole_huge_pages_are_not_split_for_little) {
    movable_heap memory(true);
    char *hole = memory.marked(96 * kb);
    memory.marked(8 * mb);
    char *idle = memory.marked(8 * mb);
    memory.marked(96 * kb);
    ASSERT_EQ(heap_free(hole), TY_OK);
    ASSERT_EQ(heap_purge(memory.heap, nullptr), TY_OK);
    ASSERT_EQ(heap_free(idle), TY_OK);
    ASSERT_EQ(memory.touched(hole, 96 * kb), 0u);
    ASSERT_EQ(heap_alloc(memory.heap, 96 * kb), hole);
    EXPECT_EQ(memory.touched(hole, 96 * kb), 0u);
    EXPECT_EQ(memory.touched(idle, 8 * mb), 8 * mb / page_bytes);
}

TEST(heap_moved_pages, all_pages_arrive_whatever_is_in_the_way) {
    for (bool huge : {false, true}) {
        for (os::sys::fault_hook hook : {os::sys::fault_hook{nullptr}, os::sys::fault_hook{refuse_some_moves}}) {
            movable_heap memory(huge);
            memory.heap->memory.period_ns = 0; // memory is given back at once
            os::sys::hook = hook;
            storm(memory, huge ? 5 : 6, 2 * mb);
            storm(memory, huge ? 7 : 8, 200 * kb);
            os::sys::hook = nullptr;
            expect_known(memory, !huge);
        }
    }
}

TEST(heap_moved_pages, all_pages_arrive_whatever_the_kernel_says_of_a_move) {
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    for (bool huge : {false, true}) {
        movable_heap memory(huge);
        memory.heap->memory.period_ns = 0;
        moves_played = 0;
        play_move = play_some_moves;
        storm(memory, huge ? 9 : 10, 2 * mb);
        storm(memory, huge ? 11 : 12, 200 * kb);
        play_move = nullptr;
        EXPECT_GT(moves_played, 300u);
        expect_known(memory, false);
    }
}

// Both threads go on step by step: without that one of them is soon done, as on a machine where the first touch of a
// page is slow. Two thirds of the steps are in small pages, which move; then the heap grows by huge ones.
TEST(heap_moved_pages, blocks_move_while_the_heap_grows) {
    constexpr int step_count = 60, small_steps = 40;
    bool moves = kernel_moves();
    movable_heap memory(true);
    std::atomic<int> own_step{0}, other_step{0};
    std::vector<owned> grown, moved;
    auto await = [](const std::atomic<int> &step, int wanted) {
        while (step < wanted)
            os::yield();
    };
    std::thread grower([&] {
        for (int i = 0; i < step_count; i++) {
            await(own_step, i);
            size_t bytes = i < small_steps ? 120 * kb : mb;
            for (int k = 0; k < 2; k++)
                grown.push_back({memory.marked(bytes), bytes});
            other_step = i + 1;
        }
    });
    size_t bytes = 64 * kb;
    ioctl_calls = 0;
    os::sys::hook = [](os::sys::call which) { return ioctl_calls += which == os::sys::call::ioctl, 0; };
    for (int i = 0; i < step_count; i++) {
        await(other_step, i);
        own_step = i + 1;
        char *block = memory.marked(bytes);
        memory.wall_in(block);
        moved.push_back({static_cast<char *>(heap_resize(block, 2 * bytes)), bytes});
        EXPECT_NE(moved.back().block, nullptr) << ty_error_text();
        if (moved.back().block == nullptr)
            moved.pop_back();
        else
            EXPECT_EQ(memory.wrong_pages(moved.back().block, bytes), "")
                << i << ": from page " << memory.page_of(block);
    }
    grower.join();
    os::sys::hook = nullptr;
    if (moves) {
        EXPECT_GE(ioctl_calls, small_steps - 10);
    }
    for (const std::vector<owned> &each : {grown, moved})
        for (const owned &which : each)
            EXPECT_EQ(memory.wrong_pages(which.block, which.bytes), "") << "later";
    expect_known(memory, false);
}

// Pages that a child may still read are copied; the child moves its own.
TEST(heap_moved_pages, parent_and_child_keep_their_blocks) {
    movable_heap memory;
    constexpr size_t bytes = 512 * kb;
    char *block = memory.marked(bytes);
    memory.wall_in(block);
    pid_t child = fork();
    char *moved = static_cast<char *>(heap_resize(block, bytes + page_bytes));
    bool right = moved != nullptr && moved != block && memory.wrong_pages(moved, bytes).empty();
    if (child == 0)
        _exit(right ? 0 : 1);
    EXPECT_TRUE(right);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(memory.wrong_pages(moved, bytes), "");
    expect_known(memory, true);
}

} // namespace
} // namespace taiyen::test
