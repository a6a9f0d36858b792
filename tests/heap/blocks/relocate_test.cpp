// Goal: a block keeps its content however often and wherever it is resized, in heaps whose pages can be moved and in
// heaps where they are copied; the number of mappings does not grow; a growing block moves seldom; a shrinking one
// fills a hole; and the heap is sound all the time. Method: a model of blocks with stamps in some of their pages (so
// that others are never touched), resized at random while other threads allocate; single stories for growth and for
// shrinking; the seam of system calls refuses moves.
#include "../heap_fixture.hpp"
#include "src/os/calls/syscalls.hpp"
#include "src/os/process/text_file.hpp"
#include "tests/heap/blocks/moving_calls.hpp"
#include "tests/units.hpp"
#include <atomic>
#include <map>
#include <thread>

namespace taiyen::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int relocations = 1000;
#else
constexpr int relocations = 8000;
#endif

ty_status commit_pages(void *, void *address, size_t bytes) {
    return os::commit(address, bytes);
}

// As memory_heap, of memory like that of volatile heaps.
struct huge_heap {
    static constexpr size_t limit = size_t{16} << 30;
    char *base = nullptr;
    ty_heap *heap = nullptr;

    explicit huge_heap(bool movable) {
        void *address = nullptr;
        EXPECT_EQ(os::reserve(0, limit, heap_granule_bytes, &address), TY_OK) << ty_error_text();
        base = static_cast<char *>(address);
        heap_owner owner{};
        owner.provide = commit_pages;
        owner.give_back = decommit_pages;
        owner.movable = movable;
        owner.huge = true;
        EXPECT_EQ(heap_format(base, limit, TY_CLASSES_DENSE, owner), TY_OK) << ty_error_text();
        EXPECT_EQ(heap_attach(base, limit, owner, true, &heap), TY_OK) << ty_error_text();
    }
    ~huge_heap() {
        heap_detach(heap);
        EXPECT_EQ(os::release(base, limit), TY_OK);
    }
};

int mapping_count() {
    os::mapping_reader reader;
    os::mapping found;
    int count = 0;
    EXPECT_TRUE(reader.open());
    while (reader.next(found))
        count++;
    reader.close();
    return count;
}

struct stamped_block {
    char *address;
    size_t size;
    std::map<size_t, uint64_t> stamps; // by offset
};

// Stamps a few places of [from, to).
void stamp(stamped_block &block, size_t from, size_t to, random_source &random) {
    for (int i = 0; i < 4 && to - from >= 8; i++) {
        size_t at = (from + random.below(to - from - 7)) & ~size_t{7};
        if (at < from)
            continue;
        uint64_t value = random.next();
        memcpy(block.address + at, &value, 8);
        block.stamps[at] = value;
    }
}

void check_stamps(const stamped_block &block) {
    for (const auto &[at, expected] : block.stamps) {
        uint64_t value;
        memcpy(&value, block.address + at, 8);
        ASSERT_EQ(value, expected) << "at " << at << " of " << block.size;
    }
}

size_t random_size(random_source &random, size_t largest) {
    size_t size = 2048;
    while (size < largest && random.below(8) != 0)
        size *= 2;
    return size + random.below(size);
}

void make(std::vector<stamped_block> &blocks, ty_heap *heap, random_source &random, size_t largest) {
    stamped_block block{};
    block.size = random_size(random, largest);
    block.address = static_cast<char *>(heap_alloc(heap, block.size));
    ASSERT_NE(block.address, nullptr) << ty_error_text();
    stamp(block, 0, block.size, random);
    blocks.push_back(block);
}

// Returns whether the block moved.
bool resize(stamped_block &block, random_source &random, size_t largest) {
    size_t size = block.size;
    if (random.below(3) != 0 && size < largest)
        size += 1 + random.below(size);
    else
        size = 1 + random.below(size);
    char *moved = static_cast<char *>(heap_resize(block.address, size));
    EXPECT_NE(moved, nullptr) << ty_error_text();
    bool elsewhere = moved != block.address;
    block.address = moved;
    block.stamps.erase(block.stamps.lower_bound(size >= 8 ? size - 7 : 0), block.stamps.end());
    check_stamps(block);
    if (size > block.size)
        stamp(block, block.size, size, random);
    block.size = size;
    return elsewhere;
}

// Returns how often a block moved.
int storm(ty_heap *heap, uint64_t seed, int count, size_t largest) {
    random_source random{seed};
    std::vector<stamped_block> blocks;
    int moved = 0;
    for (int i = 0; i < count && !testing::Test::HasFailure(); i++) {
        size_t which = blocks.empty() ? 0 : random.below(blocks.size());
        if (blocks.size() < 6 || (blocks.size() < 24 && random.below(6) == 0)) {
            make(blocks, heap, random, largest);
        } else if (random.below(8) == 0) {
            check_stamps(blocks[which]);
            EXPECT_EQ(heap_free(blocks[which].address), TY_OK) << ty_error_text();
            blocks[which] = blocks.back();
            blocks.pop_back();
        } else {
            moved += resize(blocks[which], random, largest);
        }
    }
    for (const stamped_block &block : blocks) {
        check_stamps(block);
        EXPECT_EQ(heap_free(block.address), TY_OK) << ty_error_text();
    }
    return moved;
}

int storm_with_others(ty_heap *heap, size_t largest) {
    std::atomic<bool> over{false};
    std::vector<std::thread> others;
    for (uint64_t seed = 1; seed <= 2; seed++)
        others.emplace_back([&, seed] {
            for (uint64_t round = 0; !over; round++)
                storm(heap, seed * 1000 + round, 200, 200'000);
        });
    int moved = 0;
    for (uint64_t part = 0; part < 8; part++) {
        moved += storm(heap, part, relocations / 8, largest);
        EXPECT_EQ(problems_of(heap), "");
    }
    over = true;
    for (std::thread &each : others)
        each.join();
    return moved;
}

void expect_empty(ty_heap *heap) {
    EXPECT_EQ(problems_of(heap), "");
    ty_heap_stats stats{};
    EXPECT_EQ(heap_get_stats(heap, &stats), TY_OK);
    EXPECT_EQ(stats.live_blocks, 0u);
    EXPECT_LE(stats.free_extents, 1u);
}

int refuse_moves(os::sys::call which) {
    return which == os::sys::call::userfaultfd ? ENOSYS : 0;
}

} // namespace

TEST(heap_relocate, content_survives_thousands_of_moves) {
    huge_heap memory(true);
    EXPECT_GT(storm_with_others(memory.heap, 48 * mb), relocations / 8);
    expect_empty(memory.heap);
}

TEST(heap_relocate, content_survives_where_pages_are_copied) {
    huge_heap memory(false);
    EXPECT_GT(storm_with_others(memory.heap, 2 * mb), relocations / 8);
    expect_empty(memory.heap);
}

TEST(heap_relocate, content_survives_where_the_kernel_refuses_to_move) {
    for (os::sys::fault_hook hook : {refuse_moves, refuse_some_moves}) {
        huge_heap memory(true);
        os::sys::hook = hook;
        storm(memory.heap, 17, relocations / 8, 24 * mb);
        os::sys::hook = nullptr;
        expect_empty(memory.heap);
    }
}

TEST(heap_relocate, mappings_do_not_grow_with_moves) {
    huge_heap memory(true);
    storm(memory.heap, 4, 300, 48 * mb);
    int mappings = mapping_count();
    EXPECT_GT(storm(memory.heap, 5, 3000, 48 * mb), 300);
    EXPECT_LE(mapping_count(), mappings + 6); // the C library's own, and where huge pages are not asked for (P2)
}

TEST(heap_relocate, mappings_do_not_grow_with_the_heap) {
    huge_heap memory(true);
    auto grow_to = [&](size_t bytes) {
        for (size_t taken = 0; taken < bytes; taken += 256 * mb)
            EXPECT_NE(heap_alloc(memory.heap, 256 * mb), nullptr);
    };
    grow_to(4096 * mb);
    int mappings = mapping_count();
    grow_to(8192 * mb);
    EXPECT_LE(mapping_count(), mappings + 2); // the C library's own
}

// Others allocate after it all the time; it is to find room more and more seldom.
TEST(heap_relocate, a_growing_block_moves_seldom) {
    huge_heap memory(true);
    std::vector<void *> others;
    size_t size = 2 * mb;
    char *block = static_cast<char *>(heap_alloc(memory.heap, size));
    ASSERT_NE(block, nullptr);
    int moves = 0, grown = 0;
    for (; size < 512 * mb; grown++) {
        others.push_back(heap_alloc(memory.heap, 40'000));
        others.push_back(heap_alloc(memory.heap, 5000 + size / 1000));
        memset(others.back(), 1, 5000);
        block[size - 1] = 3;
        size += mb;
        char *moved = static_cast<char *>(heap_resize(block, size));
        ASSERT_NE(moved, nullptr) << ty_error_text();
        moves += moved != block;
        block = moved;
        ASSERT_EQ(block[size - mb - 1], 3);
    }
    EXPECT_GT(grown, 500);
    EXPECT_LE(moves, 12);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_relocate, a_block_that_shrinks_fills_a_hole) {
    huge_heap memory(true);
    ty_heap *heap = memory.heap;
    auto alloc = [&](size_t size) { return static_cast<char *>(heap_alloc(heap, size)); };
    char *hole = alloc(200'000), *fence = alloc(200'000), *before = alloc(mb), *block = alloc(mb);
    char *after = alloc(200'000);
    ASSERT_EQ(heap_free(hole), TY_OK);
    ASSERT_EQ(heap_free(before), TY_OK);
    memset(block, 7, mb);
    ty_heap_stats stats{};
    ASSERT_EQ(heap_get_stats(heap, &stats), TY_OK);
    size_t free_extents = stats.free_extents;
    char *moved = static_cast<char *>(heap_resize(block, 190'000));
    EXPECT_EQ(moved, hole);
    for (size_t i = 0; i < 190'000; i++)
        ASSERT_EQ(moved[i], 7);
    ASSERT_EQ(heap_get_stats(heap, &stats), TY_OK);
    EXPECT_LE(stats.free_extents, free_extents);
    char *small = static_cast<char *>(heap_resize(moved, 100)); // from a run of pages among the small ones
    ASSERT_NE(small, moved);
    EXPECT_LT(heap_usable_size(small), 128u);
    for (size_t i = 0; i < 100; i++)
        ASSERT_EQ(small[i], 7);
    for (char *each : {fence, after, small})
        EXPECT_EQ(heap_free(each), TY_OK);
    expect_empty(heap);
}

} // namespace taiyen::test
