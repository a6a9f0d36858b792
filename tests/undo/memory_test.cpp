// Goal: a large freed block's memory is given back while it is kept, where the image has it, and an undo brings exactly
// its bytes. Method: a heap in real files, resident memory as the kernel counts it.
#include "tests/os/temporary_folder.hpp"
#include "tests/undo/support.hpp"

#include "src/os/os.hpp"

namespace taiyen::test {
namespace {

constexpr size_t large = size_t{64} << 20;

void fill(char *block, uint64_t seed) {
    for (size_t i = 0; i < large; i += 8, seed += 0x9e3779b97f4a7c15)
        memcpy(block + i, &seed, 8);
}

bool is_filled(const char *block, uint64_t seed) {
    for (size_t i = 0; i < large; i += 8, seed += 0x9e3779b97f4a7c15)
        if (memcmp(block + i, &seed, 8) != 0)
            return false;
    return true;
}

TEST(memory, a_freed_block_is_given_back_and_comes_back) {
    temporary_folder folder;
    std::string path = folder.file("heap.ty");
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = size_t{256} << 20;
    ty_heap *heap = nullptr;
    ty_report report{};
    report.struct_size = sizeof report;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    auto *block = static_cast<char *>(ty_alloc(heap, large));
    fill(block, 1);
    ASSERT_OK(ty_root_set(heap, "block", block));
    ASSERT_OK(ty_close(heap));
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, &report));
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    fill(block, 2); // private copies of all pages
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_run_background_work(heap));
    memset(block + large / 2, 7, 4096); // written since: is kept
    size_t before = os::resident_bytes(block, large);
    ASSERT_OK(ty_undo_begin(heap, "free"));
    ASSERT_OK(ty_undo_free(heap, block));
    ASSERT_OK(ty_undo_end(heap));
    size_t after = os::resident_bytes(block, large);
    if (report.tracking == TY_TRACK_KERNEL && before != 0) { // where the kernel reports it
        EXPECT_GE(before, large);
        EXPECT_LT(after, large / 8);
    }
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block + large / 2, 4096, 7));
    uint64_t word = 2 + (large / 2 / 8) * 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < 4096; i += 8, word += 0x9e3779b97f4a7c15)
        memcpy(block + large / 2 + i, &word, 8);
    EXPECT_TRUE(is_filled(block, 2));
    ASSERT_OK(ty_close(heap));
}

} // namespace
} // namespace taiyen::test
