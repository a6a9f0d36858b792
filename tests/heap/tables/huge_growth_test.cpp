// Goal: what a program does not touch of its blocks is not resident out of proportion, although huge pages are asked
// for; blocks that are written whole get huge pages as before, and so do extents that are made (P2). Method: blocks and
// extents of which little or all is written; the kernel's count of resident pages, and the process's of faults.
#include "../heap_fixture.hpp"
#include "tests/units.hpp"

namespace taiyen::test {
namespace {

struct huge_growth_of : testing::Test {
    memory_heap memory{TY_CLASSES_DENSE, size_t{4} << 30};
    size_t touched_bytes = 0;

    huge_growth_of() {
        memory.detach();
        memory.owner.movable = true;
        memory.owner.huge = true;
        memory.attach(true);
    }
    // Writes a byte each so many bytes.
    void write(char *block, size_t bytes, size_t each) {
        for (size_t at = 0; at < bytes; at += each, touched_bytes += page_bytes)
            block[at] = 1;
    }
    void grow(size_t count, size_t bytes, size_t each) {
        for (size_t i = 0; i < count; i++) {
            auto *block = static_cast<char *>(heap_alloc(memory.heap, bytes));
            ASSERT_NE(block, nullptr) << ty_error_text();
            write(block, bytes, each);
        }
    }
    void expect_in_proportion() {
        size_t resident = os::resident_bytes(memory.base, top_of(memory.heap) * page_bytes);
        EXPECT_LE(resident, 2 * touched_bytes + 40 * mb);
    }
    static size_t faults() {
        rusage usage{};
        EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
        return static_cast<size_t>(usage.ru_minflt);
    }
    // Of blocks that are written whole.
    size_t faults_of(size_t count, size_t bytes) {
        size_t before = faults();
        grow(count, bytes, page_bytes);
        return faults() - before;
    }
};

bool kernel_has_huge_pages() {
    void *memory;
    EXPECT_EQ(os::map_memory(os::huge_page_bytes, os::memory_hint::huge, &memory), TY_OK);
    *static_cast<volatile char *>(memory) = 1;
    bool huge = os::resident_bytes(memory, os::huge_page_bytes) == os::huge_page_bytes;
    os::unmap_memory(memory, os::huge_page_bytes);
    return huge;
}

TEST_F(huge_growth_of, blocks_of_which_a_page_is_touched) {
    grow(1000, mb, mb);
    expect_in_proportion();
}

TEST_F(huge_growth_of, long_blocks_that_are_touched_here_and_there) {
    grow(16, 64 * mb, mb / 2);
    expect_in_proportion();
}

TEST_F(huge_growth_of, blocks_that_are_touched_later) {
    std::vector<char *> blocks;
    for (size_t i = 0; i < 1000; i++)
        blocks.push_back(static_cast<char *>(heap_alloc(memory.heap, mb)));
    for (char *block : blocks)
        write(block, mb, mb);
    expect_in_proportion();
}

TEST_F(huge_growth_of, a_heap_whose_blocks_were_written_whole) {
    grow(64, mb, page_bytes);
    grow(1000, mb, mb);
    expect_in_proportion();
}

// Of as much memory without a heap, for which huge pages are asked: the kernel may have few at the moment.
size_t faults_without_a_heap(size_t bytes) {
    void *memory;
    EXPECT_EQ(os::map_memory(bytes, os::memory_hint::huge, &memory), TY_OK);
    const size_t before = huge_growth_of::faults();
    for (size_t at = 0; at < bytes; at += page_bytes)
        static_cast<volatile char *>(memory)[at] = 1;
    const size_t count = huge_growth_of::faults() - before;
    os::unmap_memory(memory, bytes);
    return count;
}

// Far fewer than one a page. A sanitizer's shadow of what is written has faults of its own.
size_t faults_max(size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    const size_t shadow = bytes / 8 / page_bytes;
#elif defined(__SANITIZE_THREAD__)
    const size_t shadow = 4 * bytes / page_bytes;
#else
    const size_t shadow = 0;
#endif
    return bytes / page_bytes / 8 + shadow + 2 * faults_without_a_heap(bytes);
}

TEST_F(huge_growth_of, blocks_that_are_written_whole) {
    if (!kernel_has_huge_pages())
        GTEST_SKIP() << "no huge pages";
    const size_t faulted = faults_of(512, mb);
    EXPECT_LT(faulted, faults_max(512 * mb));
}

TEST_F(huge_growth_of, blocks_that_are_written_whole_after_others_that_were_not) {
    if (!kernel_has_huge_pages())
        GTEST_SKIP() << "no huge pages";
    grow(200, mb, mb);
    const size_t faulted = faults_of(512, mb);
    EXPECT_LT(faulted, faults_max(512 * mb));
}

// Areas are made in one call, before anything is written: nothing could be found in use.
struct extents_with : huge_growth_of {
    std::vector<ty_extent> extents;

    void add_extent(uint64_t page, uint64_t pages) {
        extents.push_back({TY_EXTENT_BLOCK, page_address(memory.heap, page), pages * page_bytes, 0, 0, 0, nullptr});
    }
    void make() {
        size_t made;
        ASSERT_EQ(heap_make_extents(memory.heap, extents.data(), extents.size(), &made), TY_OK) << ty_error_text();
    }
    // A write in each page of runs, as who makes extents does; resident is no more than these and some megabytes.
    size_t faults_of_extents() {
        size_t before = faults();
        for (const ty_extent &extent : extents)
            write(static_cast<char *>(extent.address), extent.size_bytes, page_bytes);
        return faults() - before;
    }
    void expect_resident_beyond_touched(size_t most) {
        size_t resident = os::resident_bytes(memory.base, top_of(memory.heap) * page_bytes);
        EXPECT_LE(resident, touched_bytes + most);
    }
};

constexpr size_t unproven_bytes = 40 * mb; // of a heap that grows (P2), and control pages

TEST_F(extents_with, nothing_free_between_them) {
    if (!kernel_has_huge_pages())
        GTEST_SKIP() << "no huge pages";
    for (uint64_t i = 1; i < 256; i++)
        add_extent(i * huge_page_pages, huge_page_pages);
    make();
    size_t faulted = faults_of_extents();
    EXPECT_LT(faulted, faults_max(touched_bytes));
}

TEST_F(extents_with, little_free_between_them) {
    if (!kernel_has_huge_pages())
        GTEST_SKIP() << "no huge pages";
    for (uint64_t i = 1; i < 256; i++)
        add_extent(i * huge_page_pages, huge_page_pages - huge_page_pages / 16);
    make();
    size_t faulted = faults_of_extents();
    EXPECT_LT(faulted, faults_max(touched_bytes));
    expect_resident_beyond_touched(touched_bytes / 15 + mb);
}

TEST_F(extents_with, an_eighth_free_between_them) {
    for (uint64_t i = 1; i < 256; i++)
        add_extent(i * huge_page_pages, huge_page_pages * 7 / 8);
    make();
    faults_of_extents();
    expect_resident_beyond_touched(unproven_bytes);
}

// The ends of long runs are as good as free: a part of a huge page is theirs.
TEST_F(extents_with, long_ones_and_much_free) {
    for (uint64_t i = 1; i < 256; i++)
        add_extent(i * 4 * huge_page_pages, huge_page_pages * 3 / 2);
    make();
    faults_of_extents();
    expect_resident_beyond_touched(unproven_bytes);
}

// Spans of which one block is live, and so one page.
TEST_F(extents_with, a_live_block_in_each_span) {
    const uint32_t size_class = memory.heap->class_of[1024 / 8];
    const class_info &info = memory.heap->classes[size_class];
    const uint64_t one[16] = {uint64_t{1} << 5};
    for (uint64_t page = huge_page_pages; page < 200 * huge_page_pages; page += info.pages)
        extents.push_back({TY_EXTENT_SPAN, page_address(memory.heap, page), 0, info.block_bytes, 0, 1, one});
    make();
    for (const ty_extent &extent : extents)
        write(static_cast<char *>(extent.address) + 5 * info.block_bytes, 1, 1);
    expect_resident_beyond_touched(unproven_bytes);
}

// All pages of spans hold live blocks, though not all blocks are live.
TEST_F(extents_with, a_live_block_in_each_page_of_spans) {
    if (!kernel_has_huge_pages())
        GTEST_SKIP() << "no huge pages";
    const uint32_t size_class = memory.heap->class_of[512 / 8];
    const class_info &info = memory.heap->classes[size_class];
    ASSERT_EQ(info.block_bytes, 512u);
    uint64_t live[16] = {};
    size_t count = 0;
    for (uint64_t i = 7; i < info.blocks; i += page_bytes / 512, count++)
        live[i / 64] |= uint64_t{1} << i % 64;
    for (uint64_t page = huge_page_pages; page < 200 * huge_page_pages; page += info.pages)
        extents.push_back({TY_EXTENT_SPAN, page_address(memory.heap, page), 0, 512, 0, count, live});
    make();
    size_t before = faults();
    for (const ty_extent &extent : extents)
        write(static_cast<char *>(extent.address) + size_t{7} * 512, info.pages * page_bytes - size_t{7} * 512,
              page_bytes);
    const size_t faulted = faults() - before;
    EXPECT_LT(faulted, faults_max(touched_bytes));
}

} // namespace
} // namespace taiyen::test
