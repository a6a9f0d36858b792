// Goal: the functions of malloc(3) and its relatives keep what C, POSIX and glibc promise.
// Method: each promise, over many sizes; the program is linked with the library, so that all of its blocks are ours.
#include "support.hpp"
#include "tests/shards.hpp"
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <vector>

namespace taiyen::test {
namespace {

constexpr size_t sizes_to = 70'000;
size_t next_size(size_t size) {
    return size < 600 ? size + 1 : size + size / 37;
}

TEST(malloc_family, is_the_librarys) {
    for (const char *name : {"malloc", "calloc", "realloc", "reallocarray", "free", "aligned_alloc", "posix_memalign",
                             "memalign", "valloc", "pvalloc", "malloc_usable_size", "malloc_trim", "mallinfo",
                             "mallinfo2", "_Znwm", "_ZdlPv", "_ZdlPvm"}) {
        Dl_info info{};
        ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, name), &info), 0) << name;
        EXPECT_NE(strstr(info.dli_fname, "libtaiyen-malloc"), nullptr) << name << " is of " << info.dli_fname;
    }
}

TEST(malloc_family, no_bytes_are_a_block_too) {
    void *blocks[] = {malloc(0), malloc(0), calloc(0, 8), calloc(8, 0), aligned_alloc(64, 0), memalign(32, 0)};
    for (size_t i = 0; i < std::size(blocks); i++) {
        ASSERT_NE(blocks[i], nullptr) << i;
        EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[i]) % alignof(max_align_t), 0u) << i;
        for (size_t j = 0; j < i; j++)
            EXPECT_NE(blocks[i], blocks[j]);
    }
    for (void *block : blocks)
        free(block);
}

TEST(malloc_family, blocks_are_aligned_for_any_object) {
    for (size_t size = 1; size < sizes_to; size = next_size(size)) {
        size_t alignment = size <= 8 ? 8 : 16;
        std::vector<void *> blocks;
        for (int i = 0; i < 3; i++) {
            blocks.push_back(malloc(size));
            blocks.push_back(calloc(1, size));
            blocks.push_back(realloc(malloc(1), size));
            blocks.push_back(realloc(malloc(sizes_to), size));
            blocks.push_back(::operator new(size));
        }
        for (void *block : blocks) {
            ASSERT_TRUE(aligned(block, alignment)) << size << " bytes at " << block;
            ASSERT_GE(malloc_usable_size(block), size);
            free(block);
        }
    }
}

TEST(malloc_family, usable_bytes_belong_to_the_block) {
    std::vector<void *> blocks;
    for (size_t size = 0; size < sizes_to; size = next_size(size))
        blocks.push_back(malloc(size));
    unsigned char seed = 0;
    for (void *block : blocks)
        fill(block, malloc_usable_size(block), seed++);
    seed = 0;
    for (void *block : blocks) {
        EXPECT_TRUE(filled(block, malloc_usable_size(block), seed++));
        free(block);
    }
    EXPECT_EQ(malloc_usable_size(nullptr), 0u);
}

TEST(malloc_family, calloc_gives_zeros) {
    for (size_t size : {size_t{1}, size_t{24}, size_t{100}, size_t{5000}, size_t{16384}, size_t{16385}, size_t{100'000},
                        size_t{3} << 20}) {
        for (int i = 0; i < 4; i++) { // the same memory again
            auto *block = static_cast<unsigned char *>(calloc(size, 1));
            ASSERT_NE(block, nullptr);
            size_t set = 0;
            for (size_t byte = 0; byte < size; byte++)
                set += block[byte] != 0;
            EXPECT_EQ(set, 0u) << size;
            memset(block, 0xff, malloc_usable_size(block));
            free(block);
        }
    }
}

TEST(malloc_family, what_cannot_be_is_enomem) {
    const size_t sizes[] = {too_much(),       opaque(PTRDIFF_MAX),  opaque(size_t{PTRDIFF_MAX} + 1),
                            opaque(SIZE_MAX), opaque(SIZE_MAX - 8), opaque(SIZE_MAX - 16)};
    char *block = static_cast<char *>(malloc(50));
    fill(block, 50, 3);
    auto expect_enomem = [](const char *what, void *result) {
        EXPECT_EQ(result, nullptr) << what;
        EXPECT_EQ(errno, ENOMEM) << what;
        errno = 0;
    };
    errno = 0;
    for (size_t size : sizes) {
        expect_enomem("malloc", malloc(size));
        expect_enomem("calloc", calloc(1, size));
        expect_enomem("realloc", realloc(hidden(block), size));
        expect_enomem("realloc of nothing", realloc(nullptr, size));
        expect_enomem("aligned_alloc", aligned_alloc(64, size));
        expect_enomem("memalign", memalign(8192, size));
        expect_enomem("valloc", valloc(size));
        expect_enomem("pvalloc", pvalloc(size));
    }
    expect_enomem("aligned_alloc", aligned_alloc(size_t{1} << 50, 8));
    expect_enomem("calloc", calloc(opaque(SIZE_MAX / 2), 3));
    expect_enomem("calloc", calloc(opaque(size_t{1} << 32), opaque(size_t{1} << 32)));
    expect_enomem("reallocarray", reallocarray(hidden(block), opaque(size_t{1} << 33), opaque(size_t{1} << 33)));
    EXPECT_TRUE(filled(block, 50, 3)) << "a realloc that fails leaves the block as it is";
    free(block);
}

TEST(malloc_family, free_keeps_errno) {
    for (size_t size : {size_t{10}, size_t{40'000}, size_t{8} << 20}) {
        void *block = malloc(size);
        errno = 77;
        free(block);
        EXPECT_EQ(errno, 77);
        free(nullptr);
        EXPECT_EQ(errno, 77);
    }
}

TEST(malloc_family, realloc_keeps_the_content) {
    uint64_t random = 1;
    void *block = nullptr;
    size_t held = 0;
    for (int i = 0; i < 20'000; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        size_t size = 1 + (random >> 33) % (1u << (random >> 60)) * 13;
        block = i % 2 ? realloc(block, size) : reallocarray(block, 1, size);
        ASSERT_NE(block, nullptr);
        ASSERT_GE(malloc_usable_size(block), size);
        ASSERT_TRUE(filled(block, held < size ? held : size, 5)) << "from " << held << " to " << size;
        fill(block, size, 5);
        held = size;
    }
    errno = 0;
    EXPECT_EQ(realloc(block, 0), nullptr) << "it is freed";
    EXPECT_EQ(errno, 0);
}

TEST(malloc_family, a_block_made_small_gives_its_memory_back) {
    for (size_t from : {size_t{1000}, size_t{16384}, size_t{20'000}, size_t{5} << 20}) {
        void *block = malloc(from);
        fill(block, 100, 9);
        block = realloc(block, 100);
        EXPECT_TRUE(filled(block, 100, 9));
        EXPECT_LE(malloc_usable_size(block), 128u) << from;
        free(block);
    }
    void *block = realloc(malloc(size_t{5} << 20), 40'000);
    EXPECT_LE(malloc_usable_size(block), 40'960u);
    free(block);
}

TEST(malloc_family, alignments) {
    void *untouched = &untouched;
    for (size_t wrong : {0, 1, 2, 4, 24, 12345}) {
        errno = 7;
        EXPECT_EQ(posix_memalign(&untouched, wrong, 100), EINVAL) << wrong;
        EXPECT_EQ(errno, 7);
    }
    EXPECT_EQ(posix_memalign(&untouched, 64, too_much()), ENOMEM);
    EXPECT_EQ(errno, 7) << "the result reports it, errno does not";
    EXPECT_EQ(untouched, &untouched);
    for (size_t wrong : {0, 3, 24, 48}) {
        errno = 0;
        EXPECT_EQ(aligned_alloc(opaque(wrong), 96), nullptr) << wrong;
        EXPECT_EQ(errno, EINVAL);
    }
    for (size_t alignment = 1; alignment <= size_t{1} << 26; alignment *= 2) {
        for (size_t size : {size_t{1}, size_t{8}, size_t{9}, size_t{24}, size_t{100}, size_t{4097}, size_t{300'000}}) {
            void *blocks[4] = {aligned_alloc(alignment, size), memalign(alignment, size),
                               memalign(alignment - alignment / 4, size)};
            if (alignment >= sizeof(void *)) {
                ASSERT_EQ(posix_memalign(&blocks[3], alignment, size), 0);
            }
            for (void *block : blocks) {
                EXPECT_TRUE(aligned(block, alignment)) << size << " bytes at " << block;
                if (block != nullptr)
                    fill(block, size, 1);
                free(block);
            }
        }
    }
    errno = 0;
    EXPECT_EQ(memalign(opaque(SIZE_MAX), 8), nullptr);
    EXPECT_EQ(errno, EINVAL);
    void *page = valloc(10);
    void *pages = pvalloc(4097);
    EXPECT_TRUE(aligned(page, 4096) && aligned(pages, 4096));
    EXPECT_GE(malloc_usable_size(pages), 8192u);
    free(page);
    free(pages);
}

TEST(malloc_family, figures) {
    static_assert(sizeof(struct mallinfo2) == 10 * sizeof(size_t) && sizeof(struct mallinfo) == 10 * sizeof(int));
    constexpr size_t bytes = size_t{10} << 20;
    struct mallinfo2 before = mallinfo2();
    void *block = malloc(bytes);
    struct mallinfo2 with = mallinfo2();
    EXPECT_EQ(with.uordblks - before.uordblks, bytes);
    EXPECT_GE(with.arena, with.uordblks);
    EXPECT_EQ(mallinfo().uordblks, static_cast<int>(with.uordblks));
    void *huge = malloc(size_t{3} << 30); // never touched
    EXPECT_EQ(mallinfo().uordblks, INT32_MAX) << "more than an int holds";
    free(huge);
    free(block);
    EXPECT_EQ(mallinfo2().uordblks, before.uordblks);
    EXPECT_EQ(mallinfo2().hblkhd, 0u);
}

TEST(malloc_family, trim_gives_free_memory_back) {
    std::vector<void *> blocks;
    for (int i = 0; i < 100'000; i++) {
        blocks.push_back(malloc(500));
        memset(blocks.back(), 1, 500);
    }
    size_t before = resident_pages();
    for (void *block : blocks)
        free(block); // which gives some back, but never all
    EXPECT_EQ(malloc_trim(0), 1);
    EXPECT_LT(resident_pages() + 10'000, before);
}

constexpr size_t limited_bytes = size_t{1280} << 20; // not much above a power of two

// Run by the next test, in a process of its own.
TEST(malloc_family, DISABLED_under_a_limit) {
    EXPECT_EQ(malloc(opaque(limited_bytes)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    void *others = mmap(nullptr, size_t{400} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(others, MAP_FAILED) << "others get no address space";
    std::vector<void *> blocks;
    for (int i = 0; i < 300; i++) {
        blocks.push_back(malloc(size_t{1} << 20));
        ASSERT_NE(blocks.back(), nullptr) << i << " MiB";
        memset(blocks.back(), 1, size_t{1} << 20);
    }
    for (void *block : blocks)
        free(block);
}

int run_under_limit(int resource) {
    pid_t child = fork();
    if (child == 0) {
        rlimit limit{limited_bytes, limited_bytes};
        setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
        leave_shards();
        execl("/proc/self/exe", "test_malloc", "--gtest_filter=malloc_family.DISABLED_under_a_limit",
              "--gtest_also_run_disabled_tests", nullptr);
        _exit(127);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

TEST(malloc_family, a_limit_on_address_space_leaves_room_for_others) {
    EXPECT_EQ(run_under_limit(RLIMIT_AS), 0);
    EXPECT_EQ(run_under_limit(RLIMIT_DATA), 0);
}

} // namespace
} // namespace taiyen::test
