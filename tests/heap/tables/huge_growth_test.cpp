// Goal: what a program does not touch of its blocks is not resident out of proportion, although huge pages are asked
// for; blocks that are written whole get huge pages as before (P2). Method: blocks of which little or all is written;
// the kernel's count of resident pages, and the process's of faults.
#include "../heap_fixture.hpp"

namespace taiyen::test {
namespace {

constexpr size_t mebibyte = size_t{1} << 20;

struct huge_growth_of : testing::Test {
    memory_heap memory{TY_CLASSES_PACKED, size_t{4} << 30};
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
        EXPECT_LE(resident, 2 * touched_bytes + 40 * mebibyte);
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
    grow(1000, mebibyte, mebibyte);
    expect_in_proportion();
}

TEST_F(huge_growth_of, long_blocks_that_are_touched_here_and_there) {
    grow(16, 64 * mebibyte, mebibyte / 2);
    expect_in_proportion();
}

TEST_F(huge_growth_of, blocks_that_are_touched_later) {
    std::vector<char *> blocks;
    for (size_t i = 0; i < 1000; i++)
        blocks.push_back(static_cast<char *>(heap_alloc(memory.heap, mebibyte)));
    for (char *block : blocks)
        write(block, mebibyte, mebibyte);
    expect_in_proportion();
}

TEST_F(huge_growth_of, a_heap_whose_blocks_were_written_whole) {
    grow(64, mebibyte, page_bytes);
    grow(1000, mebibyte, mebibyte);
    expect_in_proportion();
}

// Far fewer than one a page. A sanitizer's shadow of what is written has faults of its own.
constexpr size_t faults_max(size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    const size_t shadow = bytes / 8 / page_bytes;
#elif defined(__SANITIZE_THREAD__)
    const size_t shadow = 4 * bytes / page_bytes;
#else
    const size_t shadow = 0;
#endif
    return bytes / page_bytes / 8 + shadow;
}

TEST_F(huge_growth_of, blocks_that_are_written_whole) {
    if (!kernel_has_huge_pages())
        GTEST_SKIP() << "no huge pages";
    EXPECT_LT(faults_of(512, mebibyte), faults_max(512 * mebibyte));
}

TEST_F(huge_growth_of, blocks_that_are_written_whole_after_others_that_were_not) {
    if (!kernel_has_huge_pages())
        GTEST_SKIP() << "no huge pages";
    grow(200, mebibyte, mebibyte);
    EXPECT_LT(faults_of(512, mebibyte), faults_max(512 * mebibyte));
}

} // namespace
} // namespace taiyen::test
