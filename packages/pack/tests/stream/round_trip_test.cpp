// Goal: what is unpacked is what was packed. Method: heaps of random blocks of all kinds of classes, packed with each
// codec and number of threads, unpacked to each kind, each place and each layout, and compared byte by byte.
#include "packages/pack/tests/support.hpp"
#include "tests/stats.hpp"

namespace taiyen::test {
namespace {

ty_unpack_options elsewhere_defragmented() {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.layout = TY_LAYOUT_DEFRAGMENT;
    return options;
}

// At the same place, as a volatile heap: the heap itself.
void check_same_place(ty_class_table classes, ty_codec codec, uint32_t threads, unsigned seed) {
    std::mt19937 dice(seed);
    volatile_heap heap(classes);
    fill_at_random(heap, dice, 3000);
    content before = content_of(heap);
    auto roots = roots_of(heap);
    char *base = static_cast<char *>(ty_heap_base(heap));
    packed stream(heap, codec, threads);
    EXPECT_EQ(before.size(), stream.report.live_blocks);
    EXPECT_EQ(stream.size, stream.report.packed_bytes);
    heap.destroy();
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.threads = threads;
    ty_moves *moves;
    ASSERT_OK(unpack(stream.text(), options, &heap.heap, &moves));
    EXPECT_EQ(base, ty_heap_base(heap));
    EXPECT_EQ(before, content_of(heap));
    EXPECT_EQ(roots, roots_of(heap));
    EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
    ptrdiff_t offset = 1;
    EXPECT_TRUE(ty_moves_offset(moves, &offset));
    EXPECT_EQ(0, offset);
    ty_moves_destroy(moves);
    fill_at_random(heap, dice, 1000); // it is a heap like others
    EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
}

TEST(pack_round_trip, same_place) {
    unsigned seed = 1;
    for (ty_class_table classes : {TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE})
        for (ty_codec codec : {TY_CODEC_LZ4, TY_CODEC_ZSTD, TY_CODEC_NONE})
            for (uint32_t threads : {1u, 2u, 5u}) {
                SCOPED_TRACE(seed);
                check_same_place(classes, codec, threads, seed++);
            }
}

TEST(pack_round_trip, empty) {
    volatile_heap heap;
    packed stream(heap);
    heap.destroy();
    ASSERT_OK(unpack(stream.text(), TY_UNPACK_OPTIONS_INIT, &heap.heap));
    EXPECT_TRUE(content_of(heap).empty());
}

// Beside the heap that was packed, by an offset or laid out anew: both work.
TEST(pack_round_trip, elsewhere) {
    unsigned seed = 100;
    for (ty_class_table classes : {TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE})
        for (ty_layout layout : {TY_LAYOUT_SAME, TY_LAYOUT_DEFRAGMENT, TY_LAYOUT_LINE, TY_LAYOUT_PACKED}) {
            SCOPED_TRACE(seed);
            std::mt19937 dice(seed++);
            volatile_heap heap(classes);
            fill_at_random(heap, dice, 4000);
            char *base = static_cast<char *>(ty_heap_base(heap));
            packed stream(heap);
            ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
            options.place = TY_PLACE_EITHER;
            options.layout = layout;
            ty_heap *copy;
            ty_moves *moves;
            ASSERT_OK(unpack(stream.text(), options, &copy, &moves));
            EXPECT_NE(base, ty_heap_base(copy));
            expect_moved(content_of(heap), base, copy, moves);
            for (const auto &[name, offset] : roots_of(heap))
                EXPECT_EQ(ty_moved(moves, base + offset), ty_root(copy, name.c_str())) << name;
            EXPECT_OK(ty_heap_verify(copy, nullptr, nullptr));
            fill_at_random(copy, dice, 1000);
            EXPECT_OK(ty_heap_verify(copy, nullptr, nullptr));
            EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
            ty_moves_destroy(moves);
            EXPECT_OK(ty_heap_destroy(copy));
        }
}

// ty_each_move reports the same as ty_moved, and what is no block has no place.
TEST(pack_round_trip, moves_are_of_blocks_alone) {
    volatile_heap heap;
    auto *kept = static_cast<char *>(ty_alloc(heap, 100));
    auto *freed = static_cast<char *>(ty_alloc(heap, 100));
    auto *pages = static_cast<char *>(ty_alloc(heap, 100000));
    ASSERT_OK(ty_free(freed));
    packed stream(heap);
    ty_heap *copy;
    ty_moves *moves;
    ASSERT_OK(unpack(stream.text(), elsewhere_defragmented(), &copy, &moves));
    EXPECT_EQ(nullptr, ty_moved(moves, freed));
    EXPECT_EQ(nullptr, ty_moved(moves, nullptr));
    EXPECT_EQ(nullptr, ty_moved(moves, ty_heap_base(heap)));
    EXPECT_EQ(nullptr, ty_moved(moves, static_cast<char *>(ty_heap_base(heap)) - 1));
    EXPECT_EQ(nullptr, ty_moved(moves, UINTPTR_MAX - 8 + reinterpret_cast<char *>(0)));
    EXPECT_EQ(nullptr, ty_moved(moves, pages + ty_usable_size(pages)));
    char *pointer = kept + 5;
    EXPECT_TRUE(ty_move_pointer(moves, &pointer));
    EXPECT_EQ(static_cast<char *>(ty_moved(moves, kept)) + 5, pointer);
    EXPECT_FALSE(ty_move_pointer(moves, &freed));
    struct seen_moves {
        const ty_moves *moves;
        size_t count;
    } seen{moves, 0};
    ty_each_move(
        moves,
        [](const void *old_address, const ty_block *block, void *context) {
            auto *s = static_cast<seen_moves *>(context);
            EXPECT_EQ(ty_moved(s->moves, old_address), block->address);
            s->count++;
            return true;
        },
        &seen);
    EXPECT_EQ(2u, seen.count);
    ty_moves_destroy(moves);
    EXPECT_OK(ty_heap_destroy(copy));
}

// Many blocks in few pages each: all pages of blocks are full afterwards, but for the last of each size.
TEST(pack_round_trip, defragmented_is_tight) {
    volatile_heap heap;
    std::vector<void *> blocks;
    for (int i = 0; i < 200000; i++)
        blocks.push_back(ty_alloc(heap, 24 + static_cast<size_t>(i) % 100));
    for (size_t i = 0; i < blocks.size(); i++)
        if (i % 5 != 0) {
            ASSERT_OK(ty_free(blocks[i]));
        }
    packed stream(heap);
    ty_heap *copy;
    ty_moves *moves;
    ASSERT_OK(unpack(stream.text(), elsewhere_defragmented(), &copy, &moves));
    const ty_heap_stats stats = heap_stats_of(copy);
    EXPECT_GT(static_cast<double>(stats.live_bytes) / static_cast<double>(stats.used_bytes), 0.97);
    ty_moves_destroy(moves);
    EXPECT_OK(ty_heap_destroy(copy));
}

// Blocks that were asked for with an alignment keep it where the class table stays.
TEST(pack_round_trip, alignment_is_kept) {
    for (ty_class_table classes : {TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE})
        for (size_t alignment : {32, 64, 128, 4096}) {
            volatile_heap heap(classes);
            std::vector<void *> blocks;
            for (size_t bytes = 40; bytes < 40000; bytes += bytes / 7)
                for (int i = 0; i < 5; i++)
                    blocks.push_back(ty_alloc_aligned(heap, bytes, alignment));
            for (size_t i = 0; i < blocks.size(); i += 2)
                ASSERT_OK(ty_free(blocks[i]));
            packed stream(heap);
            ty_heap *copy;
            ty_moves *moves;
            ASSERT_OK(unpack(stream.text(), elsewhere_defragmented(), &copy, &moves));
            for (size_t i = 1; i < blocks.size(); i += 2)
                EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(ty_moved(moves, blocks[i])) % alignment)
                    << ty_usable_size(blocks[i]) << " bytes, of " << alignment;
            EXPECT_OK(ty_heap_verify(copy, nullptr, nullptr));
            ty_moves_destroy(moves);
            EXPECT_OK(ty_heap_destroy(copy));
        }
}

// From each kind to each kind, in files.
TEST(pack_round_trip, kinds) {
    folder where;
    std::mt19937 dice(7);
    for (ty_kind from : {TY_VOLATILE, TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL}) {
        ty_heap *heap;
        ty_open_options made = TY_OPEN_OPTIONS_INIT;
        made.kind = from;
        made.limit_bytes = size_t{256} << 20;
        made.log_bytes = size_t{1} << 20;
        ty_heap_options plain = TY_HEAP_OPTIONS_INIT;
        plain.limit_bytes = made.limit_bytes;
        plain.base = next_base();
        std::string source = where.path("source");
        if (from == TY_VOLATILE) {
            ASSERT_OK(ty_heap_create(&plain, &heap));
        } else {
            ASSERT_OK(ty_open(source.c_str(), &made, &heap, nullptr));
        }
        ty_txn *txn = nullptr;
        if (from == TY_TRANSACTIONAL) {
            ASSERT_OK(ty_begin(heap, nullptr, &txn));
        }
        fill_at_random(heap, dice, 800, 100000);
        if (txn != nullptr) {
            ASSERT_OK(ty_commit(txn));
        }
        content before = content_of(heap);
        auto roots = roots_of(heap);
        packed stream(heap);
        if (from == TY_VOLATILE) {
            ASSERT_OK(ty_heap_destroy(heap));
        } else {
            ASSERT_OK(ty_close(heap));
        }
        for (ty_kind to : {TY_VOLATILE, TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL}) {
            SCOPED_TRACE(from * 10 + to);
            std::string path = where.path("target");
            ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
            options.kind = to;
            options.path = to != TY_VOLATILE ? path.c_str() : nullptr;
            ty_heap *copy;
            ASSERT_OK(unpack(stream.text(), options, &copy));
            EXPECT_EQ(to, ty_heap_kind(copy));
            EXPECT_EQ(before, content_of(copy));
            EXPECT_EQ(roots, roots_of(copy));
            if (to == TY_VOLATILE) {
                EXPECT_OK(ty_heap_destroy(copy));
                continue;
            }
            EXPECT_OK(ty_close(copy));
            if (to != TY_ARCHIVE) {
                EXPECT_OK(ty_scrub(path.c_str(), nullptr, nullptr, nullptr, nullptr));
            }
            ASSERT_OK(ty_open(path.c_str(), nullptr, &copy, nullptr));
            EXPECT_EQ(before, content_of(copy));
            EXPECT_OK(ty_close(copy));
            for (const char *part : {"", "-journal", "-log"})
                unlink((path + part).c_str());
            EXPECT_NE(0, access((path + "-unpacking").c_str(), F_OK));
        }
        for (const char *part : {"", "-journal", "-log"})
            unlink((source + part).c_str());
    }
}

// PK4: what was freed, and what lies after the live blocks in their spans and pages, is not in the stream.
TEST(pack_round_trip, freed_bytes_stay_behind) {
    const std::string secret = "the plan that nobody is to see, 0123456789";
    for (ty_class_table classes : {TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE}) {
        volatile_heap heap(classes);
        std::vector<char *> blocks;
        for (size_t size : {48u, 200u, 3000u, 9000u, 70000u})
            for (int i = 0; i < 20; i++) {
                auto *block = static_cast<char *>(ty_alloc_zeroed(heap, size));
                for (size_t at = 0; at + secret.size() <= size; at += 64)
                    memcpy(block + at, secret.data(), i % 2 == 0 ? secret.size() : 1);
                blocks.push_back(block);
            }
        packed with(heap, TY_CODEC_NONE);
        EXPECT_NE(std::string::npos, with.text().find(secret));
        for (size_t i = 0; i < blocks.size(); i += 2)
            ASSERT_OK(ty_free(blocks[i]));
        packed without(heap, TY_CODEC_NONE);
        EXPECT_EQ(std::string::npos, without.text().find(secret));
    }
}

// Limits: a smaller one that is enough, and one that is not.
TEST(pack_round_trip, limits) {
    std::mt19937 dice(3);
    volatile_heap heap(TY_CLASSES_CACHE_LINE, size_t{512} << 20);
    fill_at_random(heap, dice, 2000);
    content before = content_of(heap);
    packed stream(heap);
    heap.destroy();
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    for (size_t limit : {size_t{64} << 20, size_t{1} << 30}) {
        options.limit_bytes = limit;
        options.place = TY_PLACE_EITHER; // a larger one may not have room there
        options.force = true;
        ty_heap *copy;
        ASSERT_OK(unpack(stream.text(), options, &copy));
        EXPECT_EQ(before, content_of(copy));
        ASSERT_OK(ty_heap_destroy(copy));
    }
    volatile_heap large(TY_CLASSES_CACHE_LINE, size_t{512} << 20);
    ASSERT_NE(nullptr, ty_alloc(large, size_t{100} << 20));
    packed too_large(large, TY_CODEC_LZ4, 1);
    large.destroy();
    options = TY_UNPACK_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    EXPECT_EQ(TY_E_MEMORY, unpack(too_large.text(), options, &large.heap)) << ty_error_text();
    options.limit_bytes = 0;
    ASSERT_OK(unpack(too_large.text(), options, &large.heap));
    ASSERT_OK(unpack(stream.text(), TY_UNPACK_OPTIONS_INIT, &heap.heap));
}

} // namespace
} // namespace taiyen::test
