// Goal: a pointer that is not a live block ends the process, with a line that says what it is.
// Method: each kind of wrong pointer, in each function that takes one.
#include "support.hpp"

namespace taiyen::test {
namespace {

// Nothing may be allocated between the two: it might get the block.
void free_twice(void *block) {
    free(block);
    free(hidden(block));
}

TEST(malloc_misuse_death, a_block_freed_twice) {
    for (size_t size : {size_t{8}, size_t{100}, size_t{40'000}}) {
        void *block = malloc(size);
        EXPECT_DEATH(free_twice(block), "taiyen-malloc: free: cannot free 0x[0-9a-f]+: .*freed already") << size;
        free(block);
    }
}

TEST(malloc_misuse_death, foreign_and_interior_pointers) {
    int local = 0;
    char *block = static_cast<char *>(malloc(100));
    char *run = static_cast<char *>(malloc(100'000));
    EXPECT_DEATH(free(hidden(&local)), "taiyen-malloc: free: .*lies in no heap");
    EXPECT_DEATH(free(hidden(block + 16)), "free: .*inside the block at 0x[0-9a-f]+ of 112 bytes");
    EXPECT_DEATH(free(hidden(run + 4096)), "free: .*inside the block at");
    EXPECT_DEATH(::operator delete(hidden(&local)), "operator delete: .*lies in no heap");
    free(block);
    free(run);
}

// In a process of its own: other tests of this one have used more of the heap.
TEST(malloc_misuse_death, pointers_where_nothing_was_allocated) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    char *run = static_cast<char *>(malloc(100'000));
    EXPECT_DEATH(free(hidden(run + (size_t{1} << 30))), "free: .*never used");
    free(run);
    GTEST_FLAG_SET(death_test_style, "fast");
}

void resize_freed(void *block, size_t size) {
    free(block);
    realloc(hidden(block), size);
}

TEST(malloc_misuse_death, other_functions) {
    int local = 0;
    void *block = malloc(100);
    EXPECT_DEATH(resize_freed(block, 10), "realloc: .*freed already");
    EXPECT_DEATH(resize_freed(block, 0), "realloc: .*freed already");
    EXPECT_DEATH(realloc(hidden(&local), 10), "realloc: .*lies in no heap");
    EXPECT_DEATH(malloc_usable_size(hidden(&local)), "malloc_usable_size: .*lies in no heap");
    free(block);
}

} // namespace
} // namespace taiyen::test
