// Goal: what other threads free is soon everybody's, although the thread that allocated it sleeps, or works on other
// sizes alone (R9).
// Method: threads in turn allocate blocks, which another one frees; the heap has room for fewer than all of them had.
#include "../heap_fixture.hpp"
#include "../worker.hpp"
#include <memory>

namespace taiyen::test {
namespace {

constexpr size_t block_bytes = 240, blocks_each = (size_t{12} << 20) / block_bytes, owners_max = 12;
constexpr size_t room_bytes = size_t{96} << 20;

struct sleeping_owners : testing::Test {
    memory_heap memory{TY_CLASSES_CACHE_LINE, room_bytes};
    std::vector<std::unique_ptr<worker>> owners;
    std::vector<void *> blocks = std::vector<void *>(blocks_each);

    // False: the heap is full.
    bool add_owner() {
        owners.push_back(std::make_unique<worker>());
        bool all = true;
        owners.back()->run([&] {
            for (void *&block : blocks)
                all = (block = heap_alloc(memory.heap, block_bytes)) != nullptr && all;
        });
        return all;
    }
    void free_from(size_t begin, size_t end, size_t but_each) {
        for (size_t i = begin; i < end; i++) {
            if (but_each == 0 || i % but_each != 0) {
                ASSERT_EQ(heap_free(blocks[i]), TY_OK);
            }
        }
    }
};

TEST_F(sleeping_owners, keep_no_spans_that_are_empty) {
    for (size_t i = 0; i < owners_max; i++) {
        ASSERT_TRUE(add_owner()) << i << " sleep: " << ty_error_text();
        free_from(0, blocks_each, 0);
    }
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST_F(sleeping_owners, keep_no_spans_with_room) {
    for (size_t i = 0; i < owners_max; i++) {
        ASSERT_TRUE(add_owner()) << i << " sleep: " << ty_error_text();
        free_from(0, blocks_each, 16);
    }
    EXPECT_EQ(problems_of(memory.heap), "");
}

TEST_F(sleeping_owners, may_work_on_other_sizes) {
    for (size_t i = 0; i < owners_max; i++) {
        ASSERT_TRUE(add_owner()) << i << " sleep: " << ty_error_text();
        for (size_t part = 0; part < 100; part++) {
            free_from(blocks_each * part / 100, blocks_each * (part + 1) / 100, 0);
            owners.back()->run([&] {
                void *others[200];
                for (void *&block : others)
                    block = heap_alloc(memory.heap, 64);
                for (void *block : others)
                    EXPECT_EQ(heap_free(block), TY_OK);
            });
        }
    }
    EXPECT_EQ(problems_of(memory.heap), "");
}

} // namespace
} // namespace taiyen::test
