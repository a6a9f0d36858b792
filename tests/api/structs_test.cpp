// Goal: programs compiled with shorter or longer versions of the public structs than the library's get what they asked
// for, or a refusal, and no byte beyond their struct is read or written.
// Method: structs cut and extended by hand, at the end of a page after which nothing may be touched.
#include "fixture.hpp"

#include <cstddef>
#include <cstring>
#include <sys/mman.h>

using namespace api_test;

namespace {

// Bytes that end where an inaccessible page starts.
class edge {
public:
    edge() {
        map_ = static_cast<char *>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (mprotect(map_ + 4096, 4096, PROT_NONE) != 0)
            map_ = nullptr;
    }
    ~edge() { munmap(map_, 8192); }
    edge(const edge &) = delete;
    edge &operator=(const edge &) = delete;

    // The last `bytes`, filled with `filler`, with a struct_size in front.
    void *last(size_t bytes, int filler) {
        char *start = map_ + 4096 - bytes;
        memset(start, filler, bytes);
        memcpy(start, &bytes, sizeof bytes);
        return start;
    }

private:
    char *map_;
};

} // namespace

TEST(public_structs, shorter_options_count_as_zeros) {
    edge page;
    void *options = page.last(offsetof(ty_heap_options, base), 0);
    const size_t limit = size_t{128} << 20;
    memcpy(static_cast<char *>(options) + offsetof(ty_heap_options, limit_bytes), &limit, sizeof limit);
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_heap_create(static_cast<ty_heap_options *>(options), &heap), TY_OK) << ty_error_text();
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    ASSERT_EQ(ty_heap_get_stats(heap, &stats), TY_OK);
    EXPECT_EQ(stats.limit_bytes, limit);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

TEST(public_structs, longer_options_must_be_zero_where_unknown) {
    edge page;
    auto *options = static_cast<char *>(page.last(sizeof(ty_heap_options) + 24, 0));
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_heap_create(reinterpret_cast<ty_heap_options *>(options), &heap), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
    options[sizeof(ty_heap_options) + 23] = 1;
    expect_refusal(ty_heap_create(reinterpret_cast<ty_heap_options *>(options), &heap), TY_E_ARGUMENT, "newer");

    auto *open = reinterpret_cast<ty_open_options *>(page.last(sizeof(ty_open_options) + 8, 0));
    reinterpret_cast<char *>(open)[sizeof(ty_open_options)] = 1;
    expect_refusal(ty_open("/nowhere/heap.ty", open, &heap, nullptr), TY_E_ARGUMENT, "newer");
}

TEST(public_structs, outputs_are_cut_and_extended) {
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_heap_create(nullptr, &heap), TY_OK);
    ty_heap_stats whole{};
    whole.struct_size = sizeof whole;
    ASSERT_EQ(ty_heap_get_stats(heap, &whole), TY_OK);
    EXPECT_EQ(whole.struct_size, sizeof whole);

    edge page;
    auto *shorter = static_cast<ty_heap_stats *>(page.last(offsetof(ty_heap_stats, touched_bytes), 0x77));
    ASSERT_EQ(ty_heap_get_stats(heap, shorter), TY_OK);
    EXPECT_EQ(shorter->struct_size, offsetof(ty_heap_stats, touched_bytes));
    EXPECT_EQ(shorter->limit_bytes, whole.limit_bytes);

    auto *longer = static_cast<char *>(page.last(sizeof(ty_heap_stats) + 16, 0x77));
    ASSERT_EQ(ty_heap_get_stats(heap, reinterpret_cast<ty_heap_stats *>(longer)), TY_OK);
    EXPECT_EQ(reinterpret_cast<ty_heap_stats *>(longer)->limit_bytes, whole.limit_bytes);
    EXPECT_EQ(reinterpret_cast<ty_heap_stats *>(longer)->struct_size, sizeof(ty_heap_stats) + 16);
    for (size_t i = sizeof(ty_heap_stats); i < sizeof(ty_heap_stats) + 16; ++i)
        EXPECT_EQ(longer[i], 0);

    for (size_t wrong : {size_t{0}, size_t{4}, size_t{1} << 40}) {
        whole.struct_size = wrong;
        expect_refusal(ty_heap_get_stats(heap, &whole), TY_E_ARGUMENT, "ty_heap_stats");
    }
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

TEST(public_structs, open_options_are_checked) {
    folder files;
    const std::string path = files.path("heap.ty");
    ty_heap *heap = nullptr;
    const auto refused = [&](auto change, const char *named) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        change(options);
        expect_refusal(ty_open(path.c_str(), &options, &heap, nullptr), TY_E_ARGUMENT, named);
        EXPECT_EQ(heap, nullptr);
    };
    const int wrong = 99;
    refused([&](auto &o) { memcpy(&o.mode, &wrong, sizeof wrong); }, "mode");
    refused([&](auto &o) { memcpy(&o.kind, &wrong, sizeof wrong); }, "kind");
    refused([&](auto &o) { memcpy(&o.classes, &wrong, sizeof wrong); }, "class table");
    refused([&](auto &o) { memcpy(&o.tracking, &wrong, sizeof wrong); }, "tracking");
    refused([&](auto &o) { memcpy(&o.background, &wrong, sizeof wrong); }, "background");
    refused([](auto &o) { o.kind = TY_VOLATILE; }, "ty_heap_create");
    refused([](auto &o) { o.limit_bytes = size_t{1} << 60; }, "limit_bytes");
    refused([](auto &o) { o.base = reinterpret_cast<void *>(uintptr_t{4096}); }, "base");
    refused([](auto &o) { o.journal_path = ""; }, "journal_path");
    ty_storage storage = *ty_storage_default();
    storage.struct_size = sizeof storage - 8;
    refused([&](auto &o) { o.storage = &storage; }, "sizeof(ty_storage)");
    storage.struct_size = sizeof storage;
    storage.punch = nullptr;
    refused([&](auto &o) { o.storage = &storage; }, "ty_storage");

    expect_refusal(ty_open(nullptr, nullptr, &heap, nullptr), TY_E_ARGUMENT, "path");
    expect_refusal(ty_open("", nullptr, &heap, nullptr), TY_E_ARGUMENT, "path");
    expect_refusal(ty_open(std::string(5000, 'x').c_str(), nullptr, &heap, nullptr), TY_E_ARGUMENT, "path");
    expect_refusal(ty_open(path.c_str(), nullptr, nullptr, nullptr), TY_E_ARGUMENT, "NULL");
    expect_refusal(ty_scrub(nullptr, nullptr, nullptr, nullptr, nullptr), TY_E_ARGUMENT, "path");
    expect_refusal(ty_log_read(nullptr, nullptr, nullptr, nullptr, nullptr), TY_E_ARGUMENT, "path");
    ty_info info{};
    expect_refusal(ty_read_info(nullptr, nullptr, &info), TY_E_ARGUMENT, "path");
    expect_refusal(ty_read_info(path.c_str(), nullptr, &info), TY_E_ARGUMENT, "ty_info");
    expect_refusal(ty_read_info(path.c_str(), nullptr, nullptr), TY_E_ARGUMENT, "ty_info");
    EXPECT_TRUE(look_at_disk(files.root()).sizes.empty());
}
