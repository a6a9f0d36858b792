// Goal: a heap is the same after it was detached and attached again, and after its limit was raised; its free space is
// found and used again; the index of free runs depends on the set of free runs alone.
// Method: direct cases on heaps in memory.
#include "../heap_fixture.hpp"
#include "src/heap/pages/extent_tree.hpp"
#include "src/heap/tables/provide.hpp"
#include <algorithm>

namespace taiyen::test {
namespace {

using os::page_bytes;

TEST(heap_lifecycle, holes_are_used_again_after_an_attach) {
    for (ty_class_table classes : {TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE}) {
        memory_heap memory(classes);
        std::vector<void *> blocks;
        for (int i = 0; i < 20'000; i++)
            blocks.push_back(heap_alloc(memory.heap, 8 + static_cast<size_t>(i) % 40 * 16, 0, false));
        for (size_t i = 0; i < blocks.size(); i += 2)
            ASSERT_EQ(heap_free(blocks[i]), TY_OK);
        memory.reattach();
        size_t touched = stats_of(memory.heap).touched_bytes;
        for (size_t i = 0; i < blocks.size(); i += 2)
            ASSERT_NE(heap_alloc(memory.heap, 8 + i % 40 * 16, 0, false), nullptr);
        EXPECT_LE(stats_of(memory.heap).touched_bytes, touched + touched / 8);
        EXPECT_EQ(stats_of(memory.heap).live_blocks, blocks.size());
        EXPECT_EQ(problems_of(memory.heap), "");
    }
}

TEST(heap_lifecycle, attach_touches_nothing) {
    memory_heap memory(TY_CLASSES_CACHE_LINE, size_t{64} << 30);
    for (int i = 0; i < 50'000; i++)
        ASSERT_NE(heap_alloc(memory.heap, 3000, 0, false), nullptr);
    memory.detach();
    char *tables = memory.base + memory.limit - (size_t{64} << 30) / page_bytes * 80;
    ASSERT_EQ(os::protect(tables, memory.base + memory.limit - tables, false), TY_OK);
    memory.attach(true); // would fault if it wrote to the tables
    ASSERT_EQ(os::commit(tables, memory.base + memory.limit - tables), TY_OK);
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 50'000u);
}

TEST(heap_lifecycle, detach_makes_what_others_freed_part_of_the_metadata) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    void *block = heap_alloc(memory.heap, 64, 0, false);
    std::vector<void *> mine{heap_alloc(memory.heap, 64, 0, false)};
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr, [](void *b) -> void * { return heap_free(b) == TY_OK ? b : nullptr; }, block),
              0);
    void *freed = nullptr;
    pthread_join(thread, &freed);
    ASSERT_EQ(freed, block);
    memory.reattach();
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 1u);
    EXPECT_EQ(heap_free(block), TY_E_ARGUMENT);
    EXPECT_EQ(heap_free(mine[0]), TY_OK);
    EXPECT_EQ(stats_of(memory.heap).live_blocks, 0u);
    EXPECT_EQ(problems_of(memory.heap), "");
}

void raise_and_use(size_t limit, size_t raised) {
    memory_heap memory(TY_CLASSES_CACHE_LINE, limit, raised);
    std::vector<std::pair<char *, size_t>> blocks;
    auto add = [&](size_t size) {
        char *block = static_cast<char *>(heap_alloc(memory.heap, size, 0, false));
        if (block == nullptr)
            return false;
        std::memset(block, static_cast<int>(blocks.size()), size);
        blocks.emplace_back(block, size);
        return true;
    };
    while (add(2000) && add(100) && add(9000)) {
    }
    for (size_t i = 0; i < blocks.size(); i += 3)
        ASSERT_EQ(heap_free(blocks[i].first), TY_OK);
    EXPECT_EQ(heap_grow(memory.heap, limit), TY_E_ARGUMENT);
    ASSERT_EQ(heap_grow(memory.heap, raised), TY_OK) << ty_error_text();
    memory.limit = raised;
    EXPECT_EQ(heap_limit(memory.heap), raised);
    EXPECT_EQ(problems_of(memory.heap), "");
    for (size_t i = 0; i < blocks.size(); i++) {
        if (i % 3 == 0)
            continue;
        for (size_t k = 0; k < blocks[i].second; k += 99)
            ASSERT_EQ(blocks[i].first[k], static_cast<char>(i));
    }
    EXPECT_EQ(heap_of(memory.base + raised - 1), memory.heap);
    memory.reattach();
    char *zeroed = static_cast<char *>(heap_alloc(memory.heap, (raised - limit) / 2, 0, true));
    ASSERT_NE(zeroed, nullptr) << ty_error_text();
    for (size_t i = 0; i < (raised - limit) / 2; i++)
        ASSERT_EQ(zeroed[i], 0) << "the old tables' place is zero";
    for (size_t i = 0; i < blocks.size(); i++) {
        if (i % 3 != 0) {
            ASSERT_EQ(heap_free(blocks[i].first), TY_OK) << ty_error_text();
        }
    }
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_lifecycle, raise_far) {
    raise_and_use(size_t{4} << 20, size_t{32} << 20);
}

TEST(heap_lifecycle, raise_a_little_so_that_old_and_new_tables_overlap) {
    raise_and_use(size_t{64} << 20, (size_t{64} << 20) + 40 * page_bytes);
}

// Free runs of given lengths at given pages, in the order of `order`: the tree's links.
std::vector<uint32_t> tree_of_runs(const std::vector<uint32_t> &order, const std::vector<uint32_t> &removed) {
    std::vector<page_descriptor> descriptors(5000);
    uint32_t root = 0;
    extent_tree tree(descriptors.data(), &root, descriptors.size());
    for (uint32_t page : order) {
        descriptors[page] = {page_free, 0, 0, 1 + page % 7, 0, 0};
        EXPECT_TRUE(tree.insert(page));
    }
    for (uint32_t page : removed)
        EXPECT_TRUE(tree.remove(page));
    std::vector<uint32_t> links{root};
    for (const page_descriptor &descriptor : descriptors) {
        links.push_back(descriptor.left);
        links.push_back(descriptor.right);
    }
    return links;
}

TEST(heap_run_tree, its_shape_depends_on_the_set_alone) {
    std::vector<uint32_t> set, more;
    for (uint32_t page = 10; page < 4000; page += 10)
        set.push_back(page);
    std::vector<uint32_t> rising = tree_of_runs(set, {});
    random_source random{5};
    for (int i = 0; i < 10; i++) {
        std::vector<uint32_t> order = set, removed;
        for (uint32_t page = 15; page < 4000; page += 30) {
            order.push_back(page);
            removed.push_back(page);
        }
        for (size_t k = order.size(); k > 1; k--)
            std::swap(order[k - 1], order[random.below(k)]);
        EXPECT_EQ(tree_of_runs(order, removed), rising);
    }
}

TEST(heap_run_tree, lower_bound_is_best_fit_then_lowest) {
    std::vector<page_descriptor> descriptors(5000);
    uint32_t root = 0;
    extent_tree tree(descriptors.data(), &root, descriptors.size());
    random_source random{6};
    std::vector<std::pair<uint32_t, uint32_t>> model;
    for (int i = 0; i < 20'000; i++) {
        uint32_t page = 2 + static_cast<uint32_t>(random.below(4998));
        if (descriptors[page].kind == page_free) {
            ASSERT_TRUE(tree.remove(page));
            std::erase(model, std::make_pair(descriptors[page].length, page));
            descriptors[page] = {};
        } else {
            descriptors[page] = {page_free, 0, 0, 1 + static_cast<uint32_t>(random.below(50)), 0, 0};
            ASSERT_TRUE(tree.insert(page));
            auto key = std::make_pair(descriptors[page].length, page);
            model.insert(std::lower_bound(model.begin(), model.end(), key), key);
        }
        auto wanted =
            std::make_pair(static_cast<uint32_t>(random.below(55)), static_cast<uint32_t>(random.below(5000)));
        auto found = std::lower_bound(model.begin(), model.end(), wanted);
        ASSERT_EQ(tree.lower_bound(wanted.first, wanted.second),
                  found == model.end() ? extent_tree::none : found->second);
    }
}

TEST(heap_lifecycle, provide_is_rare) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    for (int i = 0; i < 50'000; i++)
        ASSERT_NE(heap_alloc(memory.heap, 1000, 0, false), nullptr);
    EXPECT_LT(memory.provided, 300);
}

#if !defined(__SANITIZE_THREAD__) // whose shadow is faulted in, too
// A read would map the kernel's page of zeros there first.
TEST(heap_lifecycle, bitmaps_of_new_spans_are_faulted_in_by_a_write) {
    memory_heap memory(TY_CLASSES_DENSE);
    constexpr size_t spans = 1024, pages_of_bitmaps = spans * span_pages_max * page_bitmap_bytes_v1 / page_bytes;
    ASSERT_NE(heap_alloc(memory.heap, 16'384), nullptr); // what a thread's first allocation touches
    size_t before = faults();
    for (size_t i = 0; i < spans * 4; i++)
        ASSERT_NE(heap_alloc(memory.heap, 16'384), nullptr);
    EXPECT_LT(faults() - before, 2 * pages_of_bitmaps) << "other tables are not half as long";
}
#endif

// What an owner is asked for; it backs pieces of a huge page and more with huge pages.
struct asked_pieces {
    size_t largest = 0;
    uintptr_t end = 0; // of that

    explicit asked_pieces(memory_heap &memory) {
        memory.owner.context = this;
        memory.owner.provide = [](void *context, void *address, size_t bytes) {
            static_cast<asked_pieces *>(context)->note(address, bytes);
            return os::commit(address, bytes);
        };
        memory.reattach();
    }
    void note(void *address, size_t bytes) {
        if (bytes <= largest)
            return;
        largest = bytes;
        end = reinterpret_cast<uintptr_t>(address) + bytes;
    }
    bool are_huge() const { return largest >= os::huge_page_bytes; }
};

// Allocates until so many bytes are provided or one of the pieces was huge.
void grow(memory_heap &memory, size_t block_bytes, size_t bytes, const asked_pieces &asked) {
    while (memory.heap->provided * page_bytes < bytes && !asked.are_huge())
        ASSERT_NE(heap_alloc(memory.heap, block_bytes, 0, false), nullptr);
}

TEST(heap_lifecycle, small_heaps_ask_for_less_than_a_huge_page) {
    constexpr size_t mb = size_t{1} << 20;
    for (size_t block_bytes : {size_t{1000}, size_t{100'000}, size_t{300'000}}) {
        SCOPED_TRACE(block_bytes);
        size_t small = block_bytes < 256 << 10 ? 10 * mb : 3 * mb;
        memory_heap memory(TY_CLASSES_CACHE_LINE);
        asked_pieces asked(memory);
        grow(memory, block_bytes, small, asked);
        EXPECT_FALSE(asked.are_huge());
        grow(memory, block_bytes, small + 6 * mb, asked); // up to where huge pages start, and one of them
        EXPECT_TRUE(asked.are_huge());
        EXPECT_EQ(asked.end % os::huge_page_bytes, 0);
    }
}

TEST(heap_lifecycle, a_block_of_huge_pages_gets_them_in_any_heap) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    asked_pieces asked(memory);
    ASSERT_NE(heap_alloc(memory.heap, os::huge_page_bytes + 1, 0, false), nullptr);
    EXPECT_TRUE(asked.are_huge());
    EXPECT_EQ(asked.end % os::huge_page_bytes, 0);
}

} // namespace
} // namespace taiyen::test
