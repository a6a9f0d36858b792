// Goal: streams of format version 1 can be read for ever, and are made in the same way (PK1).
// Method: streams in packages/pack/tests/golden, made by the library that wrote this version first, are unpacked and
// compared; and the heap that they are of is packed again, as it is, byte for byte. TAIYEN_MAKE_GOLDEN=1 makes those
// that are missing.
#include "packages/pack/tests/support.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace taiyen::test {
namespace {

constexpr size_t time_at = 72, time_bytes = 8, checksum_at = 120;

// A heap that is the same on each machine.
struct golden_heap {
    ty_heap *heap = nullptr;
    golden_heap() {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = size_t{64} << 20;
        options.base = reinterpret_cast<void *>(uint64_t{0x2200} << 32);
        EXPECT_OK(ty_heap_create(&options, &heap));
        std::vector<char *> blocks;
        for (size_t i = 0; i < 60; i++) {
            size_t size = i % 12 == 0 ? 5000 + 300 * i : 8 + i * i / 4;
            auto *block = static_cast<char *>(ty_alloc(heap, size));
            for (size_t at = 0; at < ty_usable_size(block); at++)
                block[at] = static_cast<char>(at % 8 == 0 ? i + at / 64 : at % 3);
            blocks.push_back(block);
        }
        for (size_t i = 0; i < blocks.size(); i += 4)
            EXPECT_OK(ty_free(blocks[i + 1]));
        EXPECT_OK(ty_root_set(heap, "first", blocks[0]));
        EXPECT_OK(ty_root_set(heap, "third", blocks[2] + 3));
    }
    ~golden_heap() { EXPECT_OK(ty_heap_destroy(heap)); }
};

std::string path_of(const char *name) {
    return std::string(TAIYEN_PACK_GOLDEN) + name;
}

std::string read(const char *name) {
    std::ifstream file(path_of(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string without_time(std::string stream) {
    stream.replace(time_at, time_bytes, time_bytes, '\0');
    return stream.replace(checksum_at, 8, 8, '\0');
}

TEST(pack_golden, are_read) {
    if (restricted_addresses)
        GTEST_SKIP() << "this build cannot use the golden heap's address";
    golden_heap expected;
    for (const char *name : {"none-1.typ", "lz4-1.typ", "zstd-1.typ"}) {
        std::string stream = read(name);
        ASSERT_FALSE(stream.empty()) << path_of(name);
        ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
        options.place = TY_PLACE_OTHER;
        options.force = true;
        ty_heap *heap;
        ASSERT_OK(unpack(stream, options, &heap));
        EXPECT_EQ(content_of(expected.heap), content_of(heap)) << name;
        EXPECT_EQ(roots_of(expected.heap), roots_of(heap)) << name;
        EXPECT_OK(ty_heap_destroy(heap));
    }
}

TEST(pack_golden, are_made_again) {
    if (restricted_addresses)
        GTEST_SKIP() << "this build cannot use the golden heap's address";
    golden_heap heap;
    for (const auto &[name, codec] : std::map<const char *, ty_codec>{
             {"none-1.typ", TY_CODEC_NONE}, {"lz4-1.typ", TY_CODEC_LZ4}, {"zstd-1.typ", TY_CODEC_ZSTD}}) {
        packed stream(heap.heap, codec);
        if (getenv("TAIYEN_MAKE_GOLDEN") != nullptr && read(name).empty())
            std::ofstream(path_of(name), std::ios::binary) << stream.text();
        if (codec == TY_CODEC_NONE) { // what compressors make changes with their versions
            EXPECT_TRUE(without_time(read(name)) == without_time(stream.text()));
        }
    }
}

} // namespace
} // namespace taiyen::test
