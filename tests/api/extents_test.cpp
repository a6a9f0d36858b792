// Goal: ty_each_extent shows which blocks of a span are live, and ty_make_extents makes exactly the blocks that extents
// report, or refuses an extent without a change. Method: heaps with blocks of many sizes, some freed, are made anew at
// the same places in an empty heap, and compared block by block.
#include "fixture.hpp"

#include <barrier>
#include <cstring>
#include <thread>
#include <utility>

using namespace api_test;

namespace {

using blocks_list = std::vector<std::pair<size_t, size_t>>; // offset, bytes

struct volatile_heap {
    ty_heap *heap = nullptr;

    explicit volatile_heap(ty_class_table classes, bool concurrent = false) {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = size_t{64} << 20;
        options.classes = classes;
        options.concurrent = concurrent;
        EXPECT_EQ(ty_heap_create(&options, &heap), TY_OK) << ty_error_text();
    }
    ~volatile_heap() { EXPECT_EQ(ty_heap_destroy(heap), TY_OK); }
    char *base() const { return static_cast<char *>(ty_heap_base(heap)); }
};

blocks_list blocks_of(ty_heap *heap) {
    struct walk {
        const char *base;
        blocks_list found;
    } walked{static_cast<char *>(ty_heap_base(heap)), {}};
    auto add = [](const ty_block *block, void *context) {
        auto *w = static_cast<walk *>(context);
        w->found.push_back({static_cast<size_t>(static_cast<char *>(block->address) - w->base), block->size_bytes});
        return true;
    };
    EXPECT_EQ(ty_each_block(heap, add, &walked), TY_OK);
    return walked.found;
}

// The extents of a heap, with the bitmaps kept, at the places of another one.
struct kept_extents {
    std::vector<ty_extent> extents;
    std::vector<std::vector<uint64_t>> bitmaps;

    kept_extents(ty_heap *heap, ty_heap *other) {
        EXPECT_EQ(ty_each_extent(heap, add, this), TY_OK);
        for (size_t i = 0; i < extents.size(); i++) {
            if (extents[i].kind == TY_EXTENT_SPAN)
                extents[i].live = bitmaps[i].data();
            size_t offset = size_t(static_cast<char *>(extents[i].address) - static_cast<char *>(ty_heap_base(heap)));
            extents[i].address = static_cast<char *>(ty_heap_base(other)) + offset;
        }
    }
    static bool add(const ty_extent *extent, void *context) {
        auto *self = static_cast<kept_extents *>(context);
        EXPECT_EQ(extent->live != nullptr, extent->kind == TY_EXTENT_SPAN);
        std::vector<uint64_t> bits;
        size_t live = 0;
        if (extent->kind == TY_EXTENT_SPAN)
            bits.assign(extent->live, extent->live + (extent->block_count + 63) / 64);
        for (uint64_t word : bits)
            live += size_t(__builtin_popcountll(word));
        if (extent->kind == TY_EXTENT_SPAN) {
            EXPECT_EQ(live, extent->live_count);
        }
        self->extents.push_back(*extent);
        self->bitmaps.push_back(std::move(bits));
        return true;
    }
};

void fill(ty_heap *heap) {
    std::vector<void *> made;
    for (size_t i = 0; i < 4000; i++)
        made.push_back(ty_alloc(heap, i * 37 % 9000));
    for (int i = 0; i < 20; i++)
        made.push_back(ty_alloc_aligned(heap, 100, 4096));
    made.push_back(ty_alloc(heap, size_t{3} << 20));
    for (size_t i = 0; i < made.size(); i += 3)
        EXPECT_EQ(ty_free(made[i]), TY_OK);
}

class extents : public testing::TestWithParam<ty_class_table> {};

} // namespace

TEST_P(extents, make_the_same_blocks) {
    volatile_heap from(GetParam()), to(GetParam());
    EXPECT_EQ(ty_heap_class_table(from.heap), GetParam());
    fill(from.heap);
    kept_extents kept(from.heap, to.heap);
    size_t made = 0;
    ASSERT_EQ(ty_make_extents(to.heap, kept.extents.data(), kept.extents.size(), &made), TY_OK) << ty_error_text();
    EXPECT_EQ(made, kept.extents.size());
    blocks_list blocks = blocks_of(to.heap);
    EXPECT_EQ(blocks, blocks_of(from.heap));
    EXPECT_EQ(ty_heap_verify(to.heap, nullptr, nullptr), TY_OK) << ty_error_text();

    // They are ordinary blocks: allocation goes on beside them, and all can be freed.
    fill(to.heap);
    EXPECT_EQ(ty_make_extents(to.heap, kept.extents.data(), kept.extents.size(), &made), TY_E_EXISTS);
    for (auto [offset, bytes] : blocks)
        ASSERT_EQ(ty_free(to.base() + offset), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_heap_verify(to.heap, nullptr, nullptr), TY_OK) << ty_error_text();

    // Where all was freed nothing is in use, though this thread keeps spans and runs for itself.
    kept_extents again(from.heap, from.heap);
    for (auto [offset, bytes] : blocks)
        ASSERT_EQ(ty_free(from.base() + offset), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_make_extents(from.heap, again.extents.data(), again.extents.size(), nullptr), TY_OK)
        << ty_error_text();
    EXPECT_EQ(blocks_of(from.heap), blocks);
    EXPECT_EQ(ty_heap_verify(from.heap, nullptr, nullptr), TY_OK) << ty_error_text();
}
INSTANTIATE_TEST_SUITE_P(tables, extents, testing::Values(TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE));

TEST(make_extents, wrong_ones_change_nothing) {
    volatile_heap heap(TY_CLASSES_DENSE);
    char *user = heap.base() + (size_t{1} << 20);
    uint64_t bits[128] = {3}; // both blocks of a span of two pages
    const ty_extent run{TY_EXTENT_BLOCK, user + 65536, 8192, 8192, 1, 1, nullptr};
    const ty_extent span{TY_EXTENT_SPAN, user, 0, 4096, 0, 2, bits};
    auto refuse = [&](ty_extent extent, ty_status expected) {
        size_t made = 99, before = blocks_of(heap.heap).size();
        expect_refusal(ty_make_extents(heap.heap, &extent, 1, &made), expected);
        EXPECT_EQ(made, 0u);
        EXPECT_EQ(blocks_of(heap.heap).size(), before);
    };
    auto changed = [](ty_extent extent, auto change) {
        change(extent);
        return extent;
    };
    refuse(changed(span, [](ty_extent &a) { a.live_count = 3; }), TY_E_ARGUMENT);
    refuse(changed(span, [](ty_extent &a) { a.live = nullptr; }), TY_E_ARGUMENT);
    refuse(changed(span, [](ty_extent &a) { a.block_size_bytes = 4095; }), TY_E_ARGUMENT);
    refuse(changed(span, [](ty_extent &a) { a.block_size_bytes = SIZE_MAX; }), TY_E_ARGUMENT);
    refuse(changed(span, [](ty_extent &a) { a.block_count = 77; }), TY_E_ARGUMENT);
    refuse(changed(span, [](ty_extent &a) { a.size_bytes = 77; }), TY_E_ARGUMENT);
    refuse(changed(span, [](ty_extent &a) { a.address = static_cast<char *>(a.address) + 4096; }), TY_E_ARGUMENT);
    refuse(changed(span, [](ty_extent &a) { a.address = nullptr; }), TY_E_ARGUMENT);
    refuse(changed(span, [&](ty_extent &a) { a.address = heap.base(); }), TY_E_ARGUMENT);
    refuse(changed(run, [](ty_extent &a) { a.size_bytes = 0; }), TY_E_ARGUMENT);
    refuse(changed(run, [](ty_extent &a) { a.size_bytes = 5000; }), TY_E_ARGUMENT);
    refuse(changed(run, [](ty_extent &a) { a.size_bytes = ~size_t{4095}; }), TY_E_ARGUMENT);
    refuse(changed(run, [](ty_extent &a) { a.address = static_cast<char *>(a.address) + 8; }), TY_E_ARGUMENT);
    bits[0] |= uint64_t{1} << 63; // no span has so many blocks of this size
    refuse(changed(span, [](ty_extent &a) { a.live_count = 3; }), TY_E_ARGUMENT);
    bits[0] = 3;

    ty_extent both[] = {span, {TY_EXTENT_FREE, nullptr, 0, 0, 0, 0, nullptr}, run, run};
    size_t made = 0;
    expect_refusal(ty_make_extents(heap.heap, both, 4, &made), TY_E_EXISTS);
    EXPECT_EQ(made, 3u);
    EXPECT_EQ(blocks_of(heap.heap).size(), 3u);
    EXPECT_EQ(ty_usable_size(user + 4096), 4096u);
    refuse(span, TY_E_EXISTS);
    EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK);
    expect_refusal(ty_make_extents(heap.heap, nullptr, 1, nullptr), TY_E_ARGUMENT, "NULL");
    expect_refusal(ty_make_extents(nullptr, both, 1, nullptr), TY_E_ARGUMENT, "NULL");
    EXPECT_EQ(ty_heap_class_table(nullptr), TY_CLASSES_CACHE_LINE);
}

// Spans that another thread keeps, empty or in part, are taken from it, or refused as they are; it goes on in others.
TEST(make_extents, where_another_thread_has_its_spans) {
    volatile_heap heap(TY_CLASSES_CACHE_LINE), like(TY_CLASSES_CACHE_LINE);
    std::barrier<> step(2);
    std::vector<void *> kept, made;
    std::thread other([&] {
        auto allocate = [&](std::vector<void *> &to) {
            for (size_t i = 0; i < 3000; i++)
                to.push_back(ty_alloc(heap.heap, i * 37 % 3000));
        };
        allocate(made);
        for (void *block : made)
            EXPECT_EQ(ty_free(block), TY_OK);
        step.arrive_and_wait(); // all is free: extents are made
        step.arrive_and_wait();
        allocate(kept);
        for (size_t i = 0; i < kept.size(); i += 2)
            EXPECT_EQ(ty_free(kept[i]), TY_OK);
        step.arrive_and_wait(); // half is free: extents are refused
        step.arrive_and_wait();
        for (size_t i = 1; i < kept.size(); i += 2)
            EXPECT_EQ(ty_free(kept[i]), TY_OK);
        allocate(kept);
    });
    fill(like.heap);
    kept_extents wanted(like.heap, heap.heap);
    step.arrive_and_wait();
    size_t extents_made = 0;
    EXPECT_EQ(ty_make_extents(heap.heap, wanted.extents.data(), wanted.extents.size(), &extents_made), TY_OK)
        << ty_error_text();
    const blocks_list blocks = blocks_of(heap.heap);
    EXPECT_EQ(blocks, blocks_of(like.heap));
    EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
    step.arrive_and_wait();
    step.arrive_and_wait();
    const blocks_list before = blocks_of(heap.heap);
    kept_extents own(heap.heap, heap.heap);
    for (const ty_extent &extent : own.extents)
        if (extent.kind != TY_EXTENT_FREE && extent.live_count != 0) {
            EXPECT_EQ(ty_make_extents(heap.heap, &extent, 1, nullptr), TY_E_EXISTS);
        }
    EXPECT_EQ(blocks_of(heap.heap), before);
    step.arrive_and_wait();
    other.join();
    EXPECT_EQ(blocks_of(heap.heap).size(), blocks.size() + 3000);
    EXPECT_EQ(ty_heap_verify(heap.heap, nullptr, nullptr), TY_OK) << ty_error_text();
}

TEST(make_extents, of_heaps_that_have_none) {
    volatile_heap concurrent(TY_CLASSES_CACHE_LINE, true), checked(TY_CLASSES_CACHE_LINE);
    const ty_extent extent{TY_EXTENT_BLOCK, concurrent.base() + (1 << 20), 8192, 8192, 1, 1, nullptr};
    expect_refusal(ty_make_extents(concurrent.heap, &extent, 1, nullptr), TY_E_UNSUPPORTED);
    ty_check_options checks = TY_CHECK_OPTIONS_INIT;
    checks.checks = TY_CHECK_BOUNDS;
    ASSERT_EQ(ty_heap_start_checks(checked.heap, &checks), TY_OK) << ty_error_text();
    expect_refusal(ty_make_extents(checked.heap, &extent, 1, nullptr), TY_E_UNSUPPORTED);
    auto count = [](const ty_block *, void *) { return true; };
    expect_refusal(ty_each_internal_block(checked.heap, count, nullptr), TY_E_UNSUPPORTED);
    expect_refusal(ty_each_internal_block(concurrent.heap, nullptr, nullptr), TY_E_ARGUMENT, "callback");
}

TEST(make_extents, of_heaps_in_files) {
    folder in;
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL}) {
        std::string path = in.path("kind" + std::to_string(kind) + ".ty");
        ty_open_options options = small_options();
        options.kind = kind;
        ty_heap *heap = nullptr;
        ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
        volatile_heap from(ty_heap_class_table(heap));
        fill(from.heap);
        kept_extents kept(from.heap, heap);
        size_t made = 0;
        ty_status status = ty_make_extents(heap, kept.extents.data(), kept.extents.size(), &made);
        if (kind == TY_TRANSACTIONAL) {
            expect_refusal(status, TY_E_UNSUPPORTED);
            ASSERT_EQ(ty_close(heap), TY_OK);
            continue;
        }
        ASSERT_EQ(status, TY_OK) << ty_error_text();
        ASSERT_EQ(ty_close(heap), TY_OK) << ty_error_text();
        options.mode = TY_OPEN_READ_ONLY;
        options.kind = TY_KIND_DEFAULT;
        ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
        EXPECT_EQ(blocks_of(heap), blocks_of(from.heap));
        EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK);
        expect_refusal(ty_make_extents(heap, kept.extents.data(), kept.extents.size(), &made), TY_E_PERMISSION);
        ASSERT_EQ(ty_close(heap), TY_OK);
    }
}
