// What the tests of packing share: heaps with random blocks, and a model of what is in them.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <taiyen/pack.h>
#include <taiyen/taiyen.h>
#include <unistd.h>
#include <vector>

#define EXPECT_OK(call) EXPECT_EQ(TY_OK, call) << ty_error_text()
#define ASSERT_OK(call) ASSERT_EQ(TY_OK, call) << ty_error_text()

namespace taiyen::test {

// Distance from the base, and content of all usable bytes.
using content = std::map<uint64_t, std::string>;

inline uint64_t offset_of(ty_heap *heap, const void *address) {
    return static_cast<uint64_t>(static_cast<const char *>(address) - static_cast<char *>(ty_heap_base(heap)));
}

inline content content_of(ty_heap *heap) {
    struct walk {
        ty_heap *heap;
        content found;
    } seen{heap, {}};
    EXPECT_OK(ty_each_block(
        heap,
        [](const ty_block *block, void *context) {
            auto *w = static_cast<walk *>(context);
            w->found[offset_of(w->heap, block->address)] =
                std::string(static_cast<const char *>(block->address), block->size_bytes);
            return true;
        },
        &seen));
    return seen.found;
}

inline std::map<std::string, uint64_t> roots_of(ty_heap *heap) {
    struct walk {
        ty_heap *heap;
        std::map<std::string, uint64_t> found;
    } seen{heap, {}};
    EXPECT_OK(ty_each_root(
        heap,
        [](const char *name, void *address, void *context) {
            auto *w = static_cast<walk *>(context);
            w->found[name] = offset_of(w->heap, address);
            return true;
        },
        &seen));
    return seen.found;
}

// Allocates and frees at random, with content that packs a little; each block's bytes are all written.
inline void fill_at_random(ty_heap *heap, std::mt19937 &dice, size_t steps, size_t long_bytes = 300000) {
    std::vector<char *> live;
    for (size_t i = 0; i < steps; i++) {
        if (!live.empty() && dice() % 3 == 0) {
            size_t at = dice() % live.size();
            memset(live[at], 0x5f, ty_usable_size(live[at]));
            ASSERT_OK(ty_free(live[at]));
            live[at] = live.back();
            live.pop_back();
            continue;
        }
        size_t size = dice() % 40 == 0 ? dice() % long_bytes : dice() % 8 == 0 ? dice() % 20000 : dice() % 300;
        auto *block = static_cast<char *>(ty_alloc(heap, size));
        ASSERT_NE(nullptr, block) << ty_error_text();
        uint64_t seed = dice();
        size_t usable = ty_usable_size(block);
        for (size_t at = 0; at + 8 <= usable; at += 8) {
            uint64_t word = at % 24 == 0 ? seed + at : at % 16 == 0 ? reinterpret_cast<uint64_t>(block) : dice() % 7;
            memcpy(block + at, &word, 8);
        }
        live.push_back(block);
    }
    for (size_t i = 0; i < 5 && i < live.size(); i++)
        ASSERT_OK(ty_root_set(heap, ("root " + std::to_string(i)).c_str(), live[i]));
    if (!live.empty()) {
        ASSERT_OK(ty_root_set(heap, "inside", live[0] + ty_usable_size(live[0]) / 2));
    }
}

// ThreadSanitizer leaves a program parts of the address space alone.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool restricted_addresses = true;
#else
inline constexpr bool restricted_addresses = false;
#endif

// Where nothing else comes to lie, so that a heap can be made there again.
inline void *next_base() {
    static uint64_t made = 0;
    constexpr uint64_t first = uint64_t{restricted_addresses ? 0x5500 : 0x2100} << 32;
    constexpr uint64_t places = restricted_addresses ? 256 : 1024;
    return reinterpret_cast<void *>(first + (made++ % places << (restricted_addresses ? 30 : 36)));
}

struct volatile_heap {
    ty_heap *heap = nullptr;
    explicit volatile_heap(ty_class_table classes = TY_CLASSES_CACHE_LINE, size_t limit = size_t{256} << 20) {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = limit;
        options.classes = classes;
        options.base = next_base();
        EXPECT_OK(ty_heap_create(&options, &heap));
    }
    ~volatile_heap() { destroy(); }
    volatile_heap(const volatile_heap &) = delete;
    void destroy() {
        EXPECT_OK(ty_heap_destroy(heap));
        heap = nullptr;
    }
    operator ty_heap *() const { return heap; }
};

// A stream in memory.
struct packed {
    void *bytes = nullptr;
    size_t size = 0;
    ty_pack_report report{};
    packed(ty_heap *heap, ty_codec codec = TY_CODEC_LZ4, uint32_t threads = 2, int level = 0) {
        ty_pack_options options = TY_PACK_OPTIONS_INIT;
        options.codec = codec;
        options.threads = threads;
        options.level = level;
        report.struct_size = sizeof report;
        EXPECT_OK(ty_pack_memory(heap, &options, &bytes, &size, &report));
    }
    ~packed() { free(bytes); }
    packed(const packed &) = delete;
    std::string text() const { return std::string(static_cast<const char *>(bytes), size); }
};

inline ty_status unpack(const std::string &stream, const ty_unpack_options &options, ty_heap **heap,
                        ty_moves **moves = nullptr) {
    return ty_unpack_memory(stream.data(), stream.size(), &options, heap, moves, nullptr);
}

// Each block's new place has the content of the old one, and there are no others.
inline void expect_moved(const content &before, char *old_base, ty_heap *now, const ty_moves *moves) {
    content after = content_of(now);
    EXPECT_EQ(before.size(), after.size());
    for (const auto &[offset, bytes] : before) {
        auto *moved = static_cast<char *>(ty_moved(moves, old_base + offset));
        ASSERT_NE(nullptr, moved) << offset;
        auto found = after.find(offset_of(now, moved));
        ASSERT_NE(after.end(), found) << offset;
        EXPECT_EQ(bytes, found->second.substr(0, bytes.size())) << offset;
        EXPECT_EQ(moved + bytes.size() - 1, ty_moved(moves, old_base + offset + bytes.size() - 1));
    }
}

struct folder {
    std::string root;
    folder() {
        char name[] = "/tmp/taiyen-pack-XXXXXX";
        root = mkdtemp(name);
    }
    ~folder() { EXPECT_EQ(0, system(("rm -r '" + root + "'").c_str())); }
    std::string path(const char *name) const { return root + "/" + name; }
};

} // namespace taiyen::test
