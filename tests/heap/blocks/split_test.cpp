// Goal: a run of pages becomes two blocks and one again, without a byte touched, and the tables stay sound.
#include "../heap_fixture.hpp"

namespace taiyen::test {
namespace {

constexpr size_t page = os::page_bytes;

TEST(split, a_run_becomes_two_blocks_and_one_again) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    ty_heap *heap = memory.heap;
    auto *block = static_cast<char *>(heap_alloc(heap, 10 * page));
    for (size_t i = 0; i < 10 * page; i++)
        block[i] = char(i / 7);
    std::string before(block, 10 * page);
    ASSERT_EQ(heap_split_extent(heap, block, 3 * page), TY_OK) << ty_error_text();
    EXPECT_EQ(problems_of(heap), "");
    EXPECT_EQ(heap_usable_size(block), 3 * page);
    EXPECT_EQ(heap_usable_size(block + 3 * page), 7 * page);
    ASSERT_EQ(heap_join_extents(heap, block), TY_OK) << ty_error_text();
    EXPECT_EQ(problems_of(heap), "");
    EXPECT_EQ(heap_usable_size(block), 10 * page);
    EXPECT_EQ(heap_usable_size(block + 3 * page), 0u);
    EXPECT_EQ(before, std::string(block, 10 * page));
}

TEST(split, both_parts_are_blocks_like_others) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    ty_heap *heap = memory.heap;
    auto *block = static_cast<char *>(heap_alloc(heap, 10 * page));
    void *wall = heap_alloc(heap, 5 * page);
    ASSERT_EQ(heap_split_extent(heap, block, 6 * page), TY_OK);
    EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_EQ(problems_of(heap), "");
    EXPECT_EQ(heap_free(block + 6 * page), TY_OK);
    EXPECT_EQ(problems_of(heap), "");
    EXPECT_EQ(heap_alloc_at(heap, block, 10 * page), TY_OK);
    EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_EQ(heap_free(wall), TY_OK);
}

TEST(split, what_cannot_be_is_refused_and_changes_nothing) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    ty_heap *heap = memory.heap;
    auto *block = static_cast<char *>(heap_alloc(heap, 10 * page));
    void *small = heap_alloc(heap, 64);
    for (size_t kept : {size_t{0}, size_t{100}, page + 8, 10 * page, 11 * page})
        EXPECT_EQ(heap_split_extent(heap, block, kept), TY_E_ARGUMENT) << kept;
    EXPECT_EQ(heap_split_extent(heap, small, page), TY_E_ARGUMENT);
    EXPECT_EQ(heap_split_extent(heap, block + page, page), TY_E_ARGUMENT);
    EXPECT_EQ(heap_join_extents(heap, small), TY_E_ARGUMENT);
    EXPECT_EQ(heap_split_extent(heap, block, 9 * page), TY_OK);
    EXPECT_EQ(heap_free(block + 9 * page), TY_OK);
    EXPECT_EQ(heap_join_extents(heap, block), TY_E_ARGUMENT); // a free run, or a span, is after it
    EXPECT_EQ(problems_of(heap), "");
    EXPECT_EQ(heap_usable_size(block), 9 * page);
}

} // namespace
} // namespace taiyen::test
