// Goal: the first program of the design (a volatile heap) works as printed, and each wrong use of it is refused with a
// text that helps. Method: through the public API alone.
#include "fixture.hpp"
#include "src/heap/tables/heap_runtime.hpp"
#include "src/os/calls/syscalls.hpp"
#include "tests/stats.hpp"

#include <cstring>
#include <sys/mman.h>
#include <thread>

using namespace api_test;

namespace {

class a_volatile_heap : public testing::Test {
protected:
    void SetUp() override {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = size_t{256} << 20;
        ASSERT_EQ(ty_heap_create(&options, &heap_), TY_OK) << ty_error_text();
    }
    void TearDown() override { EXPECT_EQ(ty_heap_destroy(heap_), TY_OK) << ty_error_text(); }

    ty_heap *heap_ = nullptr;
};

} // namespace

TEST(volatile_heap, is_made_and_used_as_the_first_page_says) {
    ty_heap *heap;
    ASSERT_EQ(ty_heap_create(nullptr, &heap), TY_OK) << ty_error_text();
    char *text = static_cast<char *>(ty_alloc(heap, 100));
    ASSERT_NE(text, nullptr);
    strcpy(text, "the block knows its heap");
    text = static_cast<char *>(ty_resize(text, 5000));
    ASSERT_NE(text, nullptr);
    EXPECT_STREQ(text, "the block knows its heap");
    EXPECT_EQ(ty_free(text), TY_OK);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

TEST(volatile_heap, a_free_keeps_errno_also_where_memory_is_not_given_back) {
    ty_heap *heap;
    ASSERT_EQ(ty_heap_create(nullptr, &heap), TY_OK) << ty_error_text();
    heap->memory.period_ns = 0; // what is in use now, and was at the free before, is what counts
    void *first = ty_alloc(heap, size_t{32} << 20);
    void *block = ty_alloc(heap, size_t{32} << 20);
    EXPECT_EQ(ty_free(first), TY_OK);
    static bool asked;
    asked = false;
    taiyen::os::sys::hook = [](taiyen::os::sys::call which) {
        asked |= which == taiyen::os::sys::call::madvise;
        return which == taiyen::os::sys::call::madvise ? EIO : 0;
    };
    errno = 77;
    EXPECT_EQ(ty_free(block), TY_OK);
    EXPECT_EQ(errno, 77);
    taiyen::os::sys::hook = nullptr;
    EXPECT_TRUE(asked);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

// As under valgrind, or a limit of the address space. Where the program says how much, it gets that or an error.
TEST(volatile_heap, is_smaller_where_its_address_space_is_refused) {
    static int refusals;
    auto create = [](size_t limit_bytes, ty_heap **heap) {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = limit_bytes;
        refusals = 3;
        taiyen::os::sys::hook = [](taiyen::os::sys::call which) {
            return which == taiyen::os::sys::call::mmap && refusals > 0 && refusals-- > 0 ? ENOMEM : 0;
        };
        ty_status status = ty_heap_create(&options, heap);
        taiyen::os::sys::hook = nullptr;
        return status;
    };
    ty_heap *heap = nullptr;
    ASSERT_EQ(create(0, &heap), TY_OK) << ty_error_text();
    EXPECT_EQ(refusals, 0);
    EXPECT_EQ(heap->limit_bytes, size_t{8} << 30);
    EXPECT_NE(ty_alloc(heap, size_t{100} << 20), nullptr) << ty_error_text();
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
    EXPECT_EQ(create(size_t{64} << 30, &heap), TY_E_MEMORY);
}

TEST(volatile_heap, costs_address_space_and_not_memory) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{1} << 38;
    ty_heap *heap;
    ASSERT_EQ(ty_heap_create(&options, &heap), TY_OK) << ty_error_text();
    const ty_heap_stats stats = taiyen::test::heap_stats_of(heap);
    EXPECT_EQ(stats.limit_bytes, size_t{1} << 38);
    EXPECT_LT(stats.resident_bytes, size_t{1} << 20);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

TEST(volatile_heap, lies_where_it_is_asked_to) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    ty_heap *first;
    ASSERT_EQ(ty_heap_create(&options, &first), TY_OK);
    ty_heap_stats stats = taiyen::test::heap_stats_of(first);
    ASSERT_EQ(ty_heap_destroy(first), TY_OK);

    options.base = stats.base; // free now
    ty_heap *second;
    ASSERT_EQ(ty_heap_create(&options, &second), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_heap_of(stats.base), second);
    ASSERT_EQ(ty_heap_get_stats(second, &stats), TY_OK);
    EXPECT_EQ(stats.base, options.base);
    ty_heap *third = nullptr;
    expect_refusal(ty_heap_create(&options, &third), TY_E_ADDRESS);
    EXPECT_EQ(third, nullptr);
    EXPECT_EQ(ty_heap_destroy(second), TY_OK);
    EXPECT_EQ(ty_heap_of(stats.base), nullptr);
}

TEST(volatile_heap, says_what_occupies_its_place) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    ty_heap *heap;
    ASSERT_EQ(ty_heap_create(&options, &heap), TY_OK);
    const ty_heap_stats stats = taiyen::test::heap_stats_of(heap);
    ASSERT_EQ(ty_heap_destroy(heap), TY_OK);

    void *middle = static_cast<char *>(stats.base) + (size_t{32} << 20);
    ASSERT_EQ(mmap(middle, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), middle);
    options.base = stats.base;
    const ty_status status = ty_heap_create(&options, &heap);
    munmap(middle, 4096);
    char address[32];
    snprintf(address, sizeof address, "%llx", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(middle)));
    expect_refusal(status, TY_E_ADDRESS, address);
}

TEST(volatile_heap, refuses_options_that_cannot_be) {
    ty_heap *heap = nullptr;
    expect_refusal(ty_heap_create(nullptr, nullptr), TY_E_ARGUMENT);
    const auto refused = [&](auto change, const char *named) {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        change(options);
        expect_refusal(ty_heap_create(&options, &heap), TY_E_ARGUMENT, named);
        EXPECT_EQ(heap, nullptr);
    };
    refused([](auto &o) { o.limit_bytes = SIZE_MAX; }, "limit_bytes");
    refused([](auto &o) { o.base = reinterpret_cast<void *>(uintptr_t{0x10000001000}); }, "base");
    const int no_table = 7;
    refused([&](auto &o) { memcpy(&o.classes, &no_table, sizeof no_table); }, "class table 7");
    refused([](auto &o) { o.struct_size = 0; }, "TY_HEAP_OPTIONS_INIT");
    refused([](auto &o) { o.struct_size = 1 << 20; }, "TY_HEAP_OPTIONS_INIT");
}

TEST(volatile_heap, is_refused_where_files_are_needed) {
    ty_heap *heap;
    ASSERT_EQ(ty_heap_create(nullptr, &heap), TY_OK);
    uint64_t number = 0;
    expect_refusal(ty_close(heap), TY_E_ARGUMENT, "ty_heap_destroy");
    expect_refusal(ty_discard(heap), TY_E_ARGUMENT, "ty_heap_destroy");
    expect_refusal(ty_snapshot(heap), TY_E_ARGUMENT, "volatile");
    expect_refusal(ty_snapshot_start(heap, &number), TY_E_ARGUMENT, "volatile");
    expect_refusal(ty_snapshot_wait(heap, 1), TY_E_ARGUMENT, "volatile");
    expect_refusal(ty_run_background_work(heap), TY_E_ARGUMENT, "volatile");
    expect_refusal(ty_background_work_status(heap), TY_E_ARGUMENT, "volatile");
    expect_refusal(ty_write_back_early(heap, 0), TY_E_UNSUPPORTED, "volatile");
    expect_refusal(ty_dirty_count(heap, &number), TY_E_UNSUPPORTED, "volatile");
    expect_refusal(ty_dirty_bitmap(heap, 0, 1, &number), TY_E_UNSUPPORTED, "volatile");
    EXPECT_EQ(ty_heap_kind(heap), TY_VOLATILE);
    EXPECT_EQ(ty_heap_epoch(heap), 0u);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

TEST(volatile_heap, null_is_refused_or_does_nothing) {
    EXPECT_EQ(ty_heap_destroy(nullptr), TY_OK);
    EXPECT_EQ(ty_free(nullptr), TY_OK);
    EXPECT_EQ(ty_close(nullptr), TY_OK);
    EXPECT_EQ(ty_discard(nullptr), TY_OK);
    EXPECT_EQ(ty_heap_of(nullptr), nullptr);
    EXPECT_EQ(ty_alloc(nullptr, 1), nullptr);
    expect_good_text(TY_E_ARGUMENT, "NULL");
    EXPECT_EQ(ty_alloc_zeroed(nullptr, 1), nullptr);
    EXPECT_EQ(ty_alloc_aligned(nullptr, 1, 8), nullptr);
    EXPECT_EQ(ty_resize(nullptr, 1), nullptr);
    EXPECT_EQ(ty_usable_size(nullptr), 0u);
    EXPECT_EQ(ty_root(nullptr, "a"), nullptr);
    EXPECT_EQ(ty_heap_kind(nullptr), TY_KIND_DEFAULT);
    EXPECT_EQ(ty_heap_epoch(nullptr), 0u);
    expect_refusal(ty_resize_in_place(nullptr, 1), TY_E_ARGUMENT, "NULL");
    expect_refusal(ty_alloc_at(nullptr, nullptr, 1), TY_E_ARGUMENT, "NULL");
    expect_refusal(ty_heap_verify(nullptr, nullptr, nullptr), TY_E_ARGUMENT, "NULL");
    expect_refusal(ty_snapshot(nullptr), TY_E_ARGUMENT, "NULL");
}

TEST_F(a_volatile_heap, callbacks_and_outputs_must_be_there) {
    expect_refusal(ty_each_block(heap_, nullptr, nullptr), TY_E_ARGUMENT, "callback");
    expect_refusal(ty_each_extent(heap_, nullptr, nullptr), TY_E_ARGUMENT, "callback");
    expect_refusal(ty_each_root(heap_, nullptr, nullptr), TY_E_ARGUMENT, "callback");
    expect_refusal(ty_heap_get_stats(heap_, nullptr), TY_E_ARGUMENT, "ty_heap_stats");
    expect_refusal(ty_block_of(heap_, nullptr), TY_E_ARGUMENT, "NULL");
    EXPECT_EQ(ty_heap_purge(heap_, nullptr), TY_OK);
}

TEST_F(a_volatile_heap, alignment_is_a_power_of_two_within_the_limit) {
    for (size_t wrong : {size_t{3}, size_t{48}, size_t{512} << 20}) {
        EXPECT_EQ(ty_alloc_aligned(heap_, 10, wrong), nullptr) << wrong;
        expect_good_text(TY_E_ARGUMENT, std::to_string(wrong));
    }
    for (size_t alignment = 1; alignment <= size_t{2} << 20; alignment *= 2) {
        void *block = ty_alloc_aligned(heap_, 10, alignment);
        ASSERT_NE(block, nullptr) << alignment << ": " << ty_error_text();
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
        EXPECT_EQ(ty_free(block), TY_OK);
    }
    void *block = ty_alloc_aligned(heap_, 10, 0); // as any block is
    ASSERT_NE(block, nullptr) << ty_error_text();
    EXPECT_EQ(ty_free(block), TY_OK);
}

TEST_F(a_volatile_heap, wrong_pointers_are_refused_and_change_nothing) {
    for (size_t size : {size_t{24}, size_t{700}, size_t{5000}, size_t{1} << 20}) {
        char *block = static_cast<char *>(ty_alloc(heap_, size));
        char *neighbour = static_cast<char *>(ty_alloc(heap_, size));
        ASSERT_TRUE(block && neighbour);
        memset(neighbour, 0x5a, size);
        expect_refusal(ty_free(block + 1), TY_E_ARGUMENT); // interior
        expect_refusal(ty_free(block + size / 2), TY_E_ARGUMENT);
        EXPECT_EQ(ty_resize(block + 8, 100), nullptr);
        expect_good_text(TY_E_ARGUMENT);
        EXPECT_EQ(ty_usable_size(block + 8), 0u);
        EXPECT_GE(ty_usable_size(block), size);
        ASSERT_EQ(ty_free(block), TY_OK);
        expect_refusal(ty_free(block), TY_E_ARGUMENT); // freed already
        EXPECT_EQ(ty_resize(block, 100), nullptr);
        expect_good_text(TY_E_ARGUMENT);
        expect_refusal(ty_resize_in_place(block, 100), TY_E_ARGUMENT);
        EXPECT_EQ(neighbour[size - 1], 0x5a);
        EXPECT_EQ(ty_free(neighbour), TY_OK);
    }
    int on_stack = 0;
    std::vector<int> elsewhere(100);
    expect_refusal(ty_free(&on_stack), TY_E_ARGUMENT); // foreign
    expect_refusal(ty_free(elsewhere.data()), TY_E_ARGUMENT);
    expect_refusal(ty_free(reinterpret_cast<void *>(uintptr_t{16})), TY_E_ARGUMENT);
    expect_refusal(ty_free(reinterpret_cast<void *>(UINTPTR_MAX)), TY_E_ARGUMENT);
    const ty_heap_stats stats = taiyen::test::heap_stats_of(heap_);
    expect_refusal(ty_free(stats.base), TY_E_ARGUMENT); // the heap's own header
    expect_refusal(ty_free(static_cast<char *>(stats.base) + stats.limit_bytes - 4096), TY_E_ARGUMENT);
    EXPECT_EQ(stats.live_blocks, 0u);
    EXPECT_EQ(ty_heap_verify(heap_, nullptr, nullptr), TY_OK);
}

TEST_F(a_volatile_heap, has_roots_too) {
    void *block = ty_alloc(heap_, 100);
    int elsewhere = 0;
    EXPECT_EQ(ty_root(heap_, "a"), nullptr);
    EXPECT_EQ(ty_root_set(heap_, "a", block), TY_OK);
    EXPECT_EQ(ty_root(heap_, "a"), block);
    expect_refusal(ty_root_set(heap_, "b", &elsewhere), TY_E_ARGUMENT, "lie in the heap");
    expect_refusal(ty_root_set(heap_, "", block), TY_E_ARGUMENT, "empty");
    expect_refusal(ty_root_set(heap_, nullptr, block), TY_E_ARGUMENT, "NULL");
    expect_refusal(ty_root_set(heap_, std::string(TY_ROOT_NAME_MAX + 1, 'x').c_str(), block), TY_E_ARGUMENT, "47");
    EXPECT_EQ(ty_root_set(heap_, std::string(TY_ROOT_NAME_MAX, 'x').c_str(), block), TY_OK);
    EXPECT_EQ(ty_root_set(heap_, "a", nullptr), TY_OK);
    EXPECT_EQ(ty_root(heap_, "a"), nullptr);
}

TEST_F(a_volatile_heap, that_is_full_says_so_and_goes_on) {
    EXPECT_EQ(ty_alloc(heap_, size_t{1} << 30), nullptr);
    expect_good_text(TY_E_MEMORY, "a block of 1073741824 bytes: more than the heap's limit");
    EXPECT_EQ(ty_alloc(heap_, SIZE_MAX), nullptr);
    EXPECT_EQ(ty_alloc(heap_, SIZE_MAX - 4095), nullptr);
    std::vector<void *> blocks;
    while (void *block = ty_alloc(heap_, size_t{8} << 20))
        blocks.push_back(block);
    expect_good_text(TY_E_MEMORY);
    EXPECT_GE(blocks.size(), 28u); // of 32, for the tables
    ASSERT_EQ(ty_free(blocks.back()), TY_OK);
    blocks.back() = ty_alloc(heap_, size_t{8} << 20);
    EXPECT_NE(blocks.back(), nullptr);
    for (void *block : blocks)
        EXPECT_EQ(ty_free(block), TY_OK);
}

TEST_F(a_volatile_heap, error_details_belong_to_the_thread) {
    expect_refusal(ty_resize_in_place(nullptr, 1), TY_E_ARGUMENT);
    std::thread([] { EXPECT_STREQ(ty_error_text(), ""); }).join();
    expect_good_text(TY_E_ARGUMENT, "resize");
}
