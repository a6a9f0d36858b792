// Goal: each call of the façade does what its comment says, and wrong arguments are refused with a text that says what
// the pointer is.
// Method: small direct cases.
#include "../heap_fixture.hpp"

namespace taiyen::test {
namespace {

using os::page_bytes;

testing::AssertionResult said(ty_status status, const char *words) {
    if (status == TY_OK)
        return testing::AssertionFailure() << "succeeded";
    if (std::strstr(ty_error_text(), words) != nullptr)
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << ty_error_text();
}

char *allocate(ty_heap *heap, size_t size) {
    return static_cast<char *>(heap_alloc(heap, size, 0, false));
}

TEST(heap_call, refused_pointers_are_described) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    char *small = allocate(memory.heap, 60);
    char *other = allocate(memory.heap, 60);
    char *run = allocate(memory.heap, 20'000);
    char *run_after = allocate(memory.heap, 20'000);
    int local = 0;
    EXPECT_TRUE(said(heap_free(&local), "the address lies in no heap"));
    EXPECT_TRUE(said(heap_free(reinterpret_cast<void *>(UINTPTR_MAX - 7)), "the address lies in no heap"));
    char text[64];
    snprintf(text, sizeof text, "inside the block at %p of 64 bytes", static_cast<void *>(small));
    EXPECT_TRUE(said(heap_free(small + 8), text));
    EXPECT_TRUE(said(heap_free(run + 4096), "inside the block at"));
    EXPECT_TRUE(said(heap_free(run + 1), "of 20480 bytes"));
    EXPECT_TRUE(said(heap_free(memory.base), "in the heap's own tables"));
    EXPECT_TRUE(said(heap_free(memory.base + memory.limit - 8), "in the heap's own tables"));
    EXPECT_TRUE(said(heap_free(memory.base + memory.limit / 2), "never used"));
    EXPECT_EQ(heap_free(small), TY_OK);
    EXPECT_TRUE(said(heap_free(small), "freed already"));
    EXPECT_TRUE(said(heap_free(small + 8), "inside a free block"));
    EXPECT_EQ(heap_free(run), TY_OK);
    EXPECT_TRUE(said(heap_free(run), "in a free extent"));
    char *first = allocate(memory.heap, 320); // of 102 in 8 pages, where a 103rd one would start but not end
    EXPECT_EQ((first - memory.base) % (8 * static_cast<ptrdiff_t>(page_bytes)), 0);
    EXPECT_TRUE(said(heap_free(first + 102 * 320), "inside a free block"));
    EXPECT_TRUE(said(heap_free(first + 320), "freed already"));
    EXPECT_EQ(heap_free(first), TY_OK);
    EXPECT_EQ(heap_resize(small, 10), nullptr);
    EXPECT_EQ(heap_resize_in_place(small, 10), TY_E_ARGUMENT);
    EXPECT_EQ(heap_usable_size(small), 0u);
    EXPECT_EQ(heap_free(nullptr), TY_OK);
    EXPECT_EQ(heap_free(other), TY_OK);
    EXPECT_EQ(heap_free(run_after), TY_OK);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_call, requests_that_cannot_be_met) {
    memory_heap memory(TY_CLASSES_CACHE_LINE, size_t{4} << 20);
    EXPECT_EQ(allocate(memory.heap, size_t{4} << 20), nullptr);
    EXPECT_EQ(allocate(memory.heap, SIZE_MAX), nullptr);
    EXPECT_EQ(heap_alloc(memory.heap, 8, 24, false), nullptr);
    EXPECT_EQ(heap_alloc(memory.heap, 8, size_t{1} << 62, false), nullptr);
    EXPECT_EQ(heap_alloc(memory.heap, SIZE_MAX, size_t{1} << 62, false), nullptr);
    ty_error error;
    ty_error_detail(&error);
    EXPECT_EQ(error.status, TY_E_MEMORY);
    std::vector<char *> blocks;
    while (char *block = allocate(memory.heap, 3000))
        blocks.push_back(block);
    EXPECT_GT(blocks.size() * 3264, (size_t{4} << 20) - 300'000);
    EXPECT_EQ(problems_of(memory.heap), "");
    for (char *block : blocks)
        EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_NE(allocate(memory.heap, size_t{3} << 20), nullptr) << "all of it is one extent again";
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_call, alloc_at) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    char *block = memory.base + size_t{100} * page_bytes;
    EXPECT_EQ(heap_alloc_at(memory.heap, block, 64), TY_OK) << ty_error_text();
    EXPECT_EQ(heap_alloc_at(memory.heap, block, 64), TY_E_EXISTS);
    EXPECT_EQ(heap_alloc_at(memory.heap, block, 8192), TY_E_EXISTS);
    EXPECT_EQ(heap_alloc_at(memory.heap, block + 128, 8), TY_E_EXISTS) << "the page is a span of another class";
    EXPECT_EQ(heap_alloc_at(memory.heap, block + 8, 64), TY_E_ARGUMENT);
    EXPECT_EQ(heap_alloc_at(memory.heap, block + 64, 60), TY_OK);
    EXPECT_EQ(heap_alloc_at(memory.heap, memory.base, 64), TY_E_ARGUMENT);
    EXPECT_EQ(heap_alloc_at(memory.heap, memory.base + memory.limit - 4096, 64), TY_E_ARGUMENT);
    EXPECT_EQ(heap_alloc_at(memory.heap, block + memory.limit, 64), TY_E_ARGUMENT);
    EXPECT_EQ(heap_alloc_at(memory.heap, block + 3 * page_bytes + 8, 8192), TY_E_ARGUMENT);
    char *run = memory.base + size_t{50} * page_bytes;
    EXPECT_EQ(heap_alloc_at(memory.heap, run, 40'000), TY_OK) << ty_error_text();
    EXPECT_EQ(heap_usable_size(run), 40'960u);
    EXPECT_EQ(problems_of(memory.heap), "");
    EXPECT_EQ(heap_free(run), TY_OK);
    EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_EQ(heap_free(block + 64), TY_OK);
    EXPECT_EQ(problems_of(memory.heap), "");
}

// What a thread frees it allocates again first, so that programs work on cached memory.
TEST(heap_call, a_freed_block_is_the_next_to_be_allocated) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    std::vector<char *> blocks;
    for (int i = 0; i < 1000; i++)
        blocks.push_back(allocate(memory.heap, 100));
    for (int i : {700, 20, 999})
        EXPECT_EQ(heap_free(blocks[static_cast<size_t>(i)]), TY_OK);
    for (int i : {999, 20, 700})
        EXPECT_EQ(allocate(memory.heap, 100), blocks[static_cast<size_t>(i)]);
    EXPECT_EQ(problems_of(memory.heap), "");
}

// The blocks freed last are remembered. Once their span is given back they must be forgotten: its pages may be another
// block's.
TEST(heap_call, freed_blocks_of_a_span_that_was_given_back_are_not_allocated) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    const size_t in_span = 64; // of 64 bytes
    std::vector<char *> blocks;
    for (size_t i = 0; i < 4 * in_span; i++)
        blocks.push_back(allocate(memory.heap, 64));
    for (size_t i = 0; i < 2 * in_span; i++) // the first one is kept for a while
        EXPECT_EQ(heap_free(blocks[i]), TY_OK);
    char *run = allocate(memory.heap, page_bytes);
    ASSERT_EQ(run, blocks[in_span]) << "the span was given back";
    for (size_t i = 0; i < 2 * in_span; i++) {
        char *block = allocate(memory.heap, 64);
        EXPECT_TRUE(block < run || block >= run + page_bytes) << i;
    }
    EXPECT_EQ(problems_of(memory.heap), "");
}

// alloc_at may take a block that its thread has just freed.
TEST(heap_call, a_freed_block_that_alloc_at_took_is_not_allocated_again) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    char *block = allocate(memory.heap, 64);
    char *other = allocate(memory.heap, 64);
    EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_EQ(heap_alloc_at(memory.heap, block, 64), TY_OK) << ty_error_text();
    for (int i = 0; i < 200; i++)
        ASSERT_NE(allocate(memory.heap, 64), block);
    EXPECT_EQ(heap_free(other), TY_OK);
    EXPECT_EQ(problems_of(memory.heap), "");
}

// Blocks of a heap allocated again by their addresses, backwards, in another heap at the same offsets.
TEST(heap_call, alloc_at_in_any_order_gives_the_same_blocks) {
    memory_heap first(TY_CLASSES_DENSE), second(TY_CLASSES_DENSE);
    random_source random{7};
    std::vector<std::pair<size_t, size_t>> blocks;
    for (int i = 0; i < 3000; i++) {
        size_t size = random.below(i % 50 == 0 ? 50'000 : 2000);
        blocks.emplace_back(allocate(first.heap, size) - first.base, size);
    }
    for (auto at = blocks.rbegin(); at != blocks.rend(); ++at)
        ASSERT_EQ(heap_alloc_at(second.heap, second.base + at->first, at->second), TY_OK) << ty_error_text();
    for (auto [offset, size] : blocks) {
        EXPECT_EQ(heap_usable_size(second.base + offset), heap_usable_size(first.base + offset));
        EXPECT_EQ(heap_free(second.base + offset), TY_OK);
    }
    EXPECT_EQ(problems_of(second.heap), "");
}

TEST(heap_call, resize_in_place_uses_the_room_after) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    char *run = allocate(memory.heap, 10 * page_bytes);
    EXPECT_EQ(heap_resize_in_place(run, 100 * page_bytes), TY_OK) << "above it nothing was used";
    char *after = allocate(memory.heap, 10 * page_bytes);
    EXPECT_EQ(after, run + 100 * page_bytes);
    EXPECT_EQ(heap_resize_in_place(run, 101 * page_bytes), TY_E_MEMORY);
    EXPECT_EQ(heap_resize_in_place(run, 50 * page_bytes), TY_OK);
    EXPECT_EQ(heap_usable_size(run), 50 * page_bytes);
    EXPECT_EQ(heap_resize_in_place(run, 101 * page_bytes), TY_E_MEMORY);
    EXPECT_EQ(heap_resize_in_place(run, 100 * page_bytes), TY_OK);
    EXPECT_EQ(heap_free(after), TY_OK);
    EXPECT_EQ(heap_resize(run, 200 * page_bytes), run) << "into the free extent after and above it";
    EXPECT_EQ(problems_of(memory.heap), "");
    EXPECT_EQ(heap_resize(run, 1), run);
    EXPECT_EQ(heap_usable_size(run), page_bytes);
    char *small = allocate(memory.heap, 100);
    EXPECT_EQ(heap_resize_in_place(small, 128), TY_OK);
    EXPECT_EQ(heap_resize_in_place(small, 129), TY_E_MEMORY);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_call, zeroed_pages_that_were_never_used_stay_untouched) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    size_t bytes = size_t{64} << 20;
    char *block = static_cast<char *>(heap_alloc(memory.heap, bytes, 0, true));
    ASSERT_NE(block, nullptr);
    EXPECT_LT(os::resident_bytes(block, bytes), size_t{1} << 20);
    std::memset(block, 1, 1 << 20);
    EXPECT_EQ(heap_free(block), TY_OK);
    block = static_cast<char *>(heap_alloc(memory.heap, bytes, 0, true));
    for (size_t i = 0; i < bytes; i += 512)
        ASSERT_EQ(block[i], 0);
}

TEST(heap_call, look_ups) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    char *small = allocate(memory.heap, 100);
    char *run = allocate(memory.heap, 10'000);
    EXPECT_EQ(heap_of(small), memory.heap);
    EXPECT_EQ(heap_of(memory.base + memory.limit - 1), memory.heap);
    EXPECT_EQ(heap_of(memory.base + memory.limit), nullptr);
    EXPECT_EQ(heap_of(nullptr), nullptr);
    ty_block block;
    EXPECT_EQ(heap_block_of(small + 99, &block), TY_OK);
    EXPECT_EQ(block.address, small);
    EXPECT_EQ(block.size_bytes, 128u);
    EXPECT_EQ(heap_block_of(run + 9999, &block), TY_OK);
    EXPECT_EQ(block.address, run);
    EXPECT_EQ(heap_block_of(small + 128, &block), TY_E_NOT_FOUND);
    EXPECT_EQ(heap_block_of(memory.base, &block), TY_E_NOT_FOUND);
    EXPECT_EQ(heap_block_of(&block, &block), TY_E_NOT_FOUND);
}

TEST(heap_call, extents_tile_the_heap) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    for (int i = 0; i < 100; i++)
        allocate(memory.heap, static_cast<size_t>(i) * 97);
    struct walk {
        char *next;
        size_t live = 0;
    } walked{memory.base};
    EXPECT_EQ(heap_each_extent(
                  memory.heap,
                  [](const ty_extent *extent, void *context) {
                      walk *w = static_cast<walk *>(context);
                      EXPECT_EQ(extent->address, w->next);
                      w->next += extent->size_bytes;
                      w->live += extent->live_count;
                      return true;
                  },
                  &walked),
              TY_OK);
    EXPECT_EQ(walked.next, memory.base + memory.limit);
    EXPECT_EQ(walked.live, 100u);
}

TEST(heap_call, roots) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    char *block = allocate(memory.heap, 100);
    EXPECT_EQ(heap_root(memory.heap, "a"), nullptr);
    EXPECT_EQ(heap_root_set(memory.heap, "", block), TY_E_ARGUMENT);
    EXPECT_EQ(heap_root_set(memory.heap, std::string(48, 'x').c_str(), block), TY_E_ARGUMENT);
    EXPECT_EQ(heap_root_set(memory.heap, "a", &block), TY_E_ARGUMENT);
    for (uint32_t i = 0; i < TY_ROOT_COUNT_MAX; i++)
        EXPECT_EQ(heap_root_set(memory.heap, (std::string(45, 'r') + std::to_string(i)).c_str(), block + i), TY_OK);
    EXPECT_EQ(heap_root_set(memory.heap, "a", block), TY_E_MEMORY);
    EXPECT_EQ(heap_root_set(memory.heap, (std::string(45, 'r') + "7").c_str(), nullptr), TY_OK);
    EXPECT_EQ(heap_root_set(memory.heap, "a", block), TY_OK);
    EXPECT_EQ(heap_root_set(memory.heap, "a", block + 1), TY_OK);
    memory.reattach();
    EXPECT_EQ(heap_root(memory.heap, "a"), block + 1);
    EXPECT_EQ(heap_root(memory.heap, (std::string(45, 'r') + "62").c_str()), block + 62);
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST(heap_call, read_only_heaps_are_not_written) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    char *block = allocate(memory.heap, 100);
    char *run = allocate(memory.heap, 10'000);
    ASSERT_EQ(heap_root_set(memory.heap, "a", block), TY_OK);
    memory.detach();
    size_t used = size_t{200} * page_bytes;
    ASSERT_EQ(os::protect(memory.base, size_t{10} * page_bytes, false), TY_OK); // writing would end the test
    memory.attach(false);
    EXPECT_EQ(problems_of(memory.heap), "");
    EXPECT_EQ(heap_usable_size(block), 128u);
    EXPECT_EQ(heap_usable_size(run), 12'288u);
    EXPECT_EQ(heap_root(memory.heap, "a"), block);
    EXPECT_EQ(allocate(memory.heap, 10), nullptr);
    EXPECT_EQ(heap_free(block), TY_E_PERMISSION);
    EXPECT_EQ(heap_resize(block, 1), nullptr);
    EXPECT_EQ(heap_alloc_at(memory.heap, block, 1), TY_E_PERMISSION);
    EXPECT_EQ(heap_root_set(memory.heap, "b", block), TY_E_PERMISSION);
    EXPECT_EQ(heap_grow(memory.heap, size_t{2} << 30), TY_E_ARGUMENT);
    ty_heap_stats stats{};
    EXPECT_EQ(heap_get_stats(memory.heap, &stats), TY_OK);
    EXPECT_EQ(stats.live_blocks, 2u);
    EXPECT_LT(stats.touched_bytes, used);
    memory.detach();
    ASSERT_EQ(os::protect(memory.base, size_t{10} * page_bytes, true), TY_OK);
}

TEST(heap_call, purge_gives_free_pages_back) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    std::vector<char *> blocks;
    for (int i = 0; i < 100; i++) {
        blocks.push_back(allocate(memory.heap, 65'536));
        std::memset(blocks.back(), 1, 65'536);
    }
    for (size_t i = 0; i < blocks.size(); i += 2)
        EXPECT_EQ(heap_free(blocks[i]), TY_OK);
    size_t released = 0;
    EXPECT_EQ(heap_purge(memory.heap, &released), TY_OK);
    EXPECT_EQ(released, size_t{50} * 65'536);
    EXPECT_EQ(heap_purge(memory.heap, &released), TY_OK);
    EXPECT_EQ(released, 0u);
    EXPECT_EQ(blocks[1][65'535], 1);
}

TEST(heap_call, statistics_of_an_empty_heap) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    ty_heap_stats stats{};
    EXPECT_EQ(heap_get_stats(memory.heap, &stats), TY_OK);
    EXPECT_EQ(stats.live_blocks, 0u);
    EXPECT_EQ(stats.free_bytes, 0u);
    EXPECT_EQ(stats.availability, 1.0);
    EXPECT_EQ(problems_of(memory.heap), "");
    char *block = allocate(memory.heap, stats.largest_free_bytes);
    EXPECT_NE(block, nullptr) << "so much can be allocated";
    EXPECT_EQ(heap_free(block), TY_OK);
    EXPECT_EQ(allocate(memory.heap, stats.largest_free_bytes + 1), nullptr);
}

TEST(heap_call, wrong_places_and_foreign_bytes_are_refused) {
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    ty_heap *heap = nullptr;
    heap_owner owner = memory.owner;
    EXPECT_EQ(heap_attach(memory.base, memory.limit, owner, true, &heap), TY_E_ADDRESS) << "attached already";
    EXPECT_EQ(heap_attach(memory.base + 4096, memory.limit, owner, true, &heap), TY_E_ARGUMENT);
    EXPECT_EQ(heap_attach(memory.base, 4096, owner, true, &heap), TY_E_ARGUMENT);
    EXPECT_EQ(heap_attach(memory.base, memory.limit / 2, owner, true, &heap), TY_E_DAMAGED) << "less than its limit";
    EXPECT_EQ(heap_format(memory.base + 1, memory.limit, TY_CLASSES_CACHE_LINE, owner), TY_E_ARGUMENT);
    memory.detach();
    memory.base[0]++;
    EXPECT_EQ(heap_attach(memory.base, memory.limit, owner, true, &heap), TY_E_DAMAGED);
    memory.base[0]--;
    memory.base[8]++;
    EXPECT_EQ(heap_attach(memory.base, memory.limit, owner, true, &heap), TY_E_FORMAT);
    memory.base[8]--;
    memory.attach(true);
}

// The owner of the memory can refuse: the allocation fails with its status and the heap stays whole.
TEST(heap_call, memory_that_cannot_be_had) {
    struct purse {
        size_t left;
    } purse{3 << 20};
    memory_heap memory(TY_CLASSES_CACHE_LINE);
    memory.detach();
    heap_owner stingy{&purse,
                      [](void *context, void *address, size_t bytes) -> ty_status {
                          struct purse *p = static_cast<struct purse *>(context);
                          if (bytes > p->left)
                              return failure(TY_E_SPACE, "provide %zu bytes", bytes);
                          p->left -= bytes;
                          return os::commit(address, bytes);
                      },
                      nullptr};
    ASSERT_EQ(heap_attach(memory.base, memory.limit, stingy, true, &memory.heap), TY_OK);
    std::vector<char *> blocks;
    while (char *block = allocate(memory.heap, 5000))
        blocks.push_back(block);
    ty_error error;
    ty_error_detail(&error);
    EXPECT_EQ(error.status, TY_E_SPACE);
    EXPECT_GT(blocks.size(), 200u);
    EXPECT_EQ(problems_of(memory.heap), "");
    purse.left = 1 << 20;
    EXPECT_NE(allocate(memory.heap, 5000), nullptr);
    EXPECT_EQ(problems_of(memory.heap), "");
}

} // namespace
} // namespace taiyen::test
