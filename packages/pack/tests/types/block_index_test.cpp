// Goal: the index says of every address what the heap itself says (SH4). Method: heaps of both class tables with blocks
// of all sizes, a part of them freed; each page, and random addresses, against ty_block_of.
#include "fixture.hpp"
#include "packages/pack/src/types/block_index.hpp"

#include <random>

using namespace taiyen::test;
using taiyen::pack::block_index;
using taiyen::pack::found_block;

namespace {

void fill(ty_heap *heap, std::mt19937_64 &dice) {
    std::vector<void *> blocks;
    for (int n = 0; n < 20000; ++n) {
        size_t bits = dice() % 18;
        blocks.push_back(ty_alloc(heap, (dice() & ((size_t{1} << bits) - 1)) + 1));
        ASSERT_NE(blocks.back(), nullptr);
    }
    blocks.push_back(ty_alloc(heap, size_t{5} << 20));
    for (void *block : blocks)
        if (dice() % 3 == 0) {
            ASSERT_EQ(ty_free(block), TY_OK);
        }
}

void compare(const block_index &index, const char *address) {
    ty_block block;
    found_block found;
    bool live = ty_block_of(address, &block) == TY_OK;
    ASSERT_EQ(index.find(address, found), live) << static_cast<const void *>(address);
    if (live) {
        ASSERT_EQ(found.address, block.address);
        ASSERT_EQ(found.bytes, block.size_bytes);
    }
}

class block_indices : public testing::TestWithParam<ty_class_table> {};

} // namespace

TEST_P(block_indices, say_what_the_heap_says) {
    heap_owner_ptr heap = new_heap(GetParam());
    std::mt19937_64 dice(11);
    fill(heap.get(), dice);
    block_index index;
    ASSERT_EQ(index.build(heap.get()), TY_OK);
    auto size = static_cast<size_t>(index.end() - index.base());
    for (int n = 0; n < 300000; ++n)
        compare(index, index.base() + dice() % (size + 8192));
    found_block found;
    EXPECT_FALSE(index.find(nullptr, found));
    EXPECT_FALSE(index.find(index.base() - 1, found));
    EXPECT_FALSE(index.find(index.end(), found));
    EXPECT_FALSE(index.find(reinterpret_cast<void *>(UINT64_MAX), found));
}

TEST_P(block_indices, number_blocks_in_order) {
    heap_owner_ptr heap = new_heap(GetParam());
    std::mt19937_64 dice(12);
    fill(heap.get(), dice);
    block_index index;
    ASSERT_EQ(index.build(heap.get()), TY_OK);
    std::vector<ty_block> blocks;
    auto note = [](const ty_block *block, void *context) {
        static_cast<std::vector<ty_block> *>(context)->push_back(*block);
        return true;
    };
    ASSERT_EQ(ty_each_block(heap.get(), note, &blocks), TY_OK);
    ASSERT_EQ(index.size(), blocks.size());
    size_t next = 0;
    index.each([&](const found_block &block) {
        ASSERT_EQ(block.address, blocks[next].address);
        ASSERT_EQ(block.bytes, blocks[next].size_bytes);
        ASSERT_EQ(block.ordinal, next);
        found_block found;
        for (char *inside : {block.address, block.address + block.bytes / 2, block.end() - 1}) {
            ASSERT_TRUE(index.find(inside, found));
            ASSERT_EQ(found.ordinal, next);
        }
        ++next;
    });
    EXPECT_EQ(next, blocks.size());
}

TEST_P(block_indices, of_an_empty_heap) {
    heap_owner_ptr heap = new_heap(GetParam());
    block_index index;
    ASSERT_EQ(index.build(heap.get()), TY_OK);
    found_block found;
    EXPECT_EQ(index.size(), 0u);
    EXPECT_FALSE(index.find(ty_heap_base(heap.get()), found));
}

INSTANTIATE_TEST_SUITE_P(of, block_indices, testing::Values(TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE));
