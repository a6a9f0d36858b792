// Goal: a pointer audit and a move give one answer: what the pointer audit has nothing against can be moved, to either
// table of size classes, and what it refuses is refused. Method: heaps of random blocks, of objects, counted arrays and
// bytes, with remains at random places; a pointer audit, and then an unpacking with each layout.
#include "../support.hpp"
#include "fixture.hpp"
#include "tests/effort.hpp"

using namespace taiyen::test;

namespace {

struct item {
    item *next;
    uint64_t number;
    item **many; // as many as count says
    uint64_t count;
    char *bytes;
};
TY_TYPE_DECLARE(item);
TY_TYPE_POINTER_TO(item_pointer, &item_descriptor)
TY_TYPE(item, TY_POINTER(item, next, &item_descriptor), TY_POINTER_COUNTED(item, many, count, &item_pointer_descriptor),
        TY_BYTES(item, bytes))

class random_heap {
public:
    random_heap(unsigned seed, ty_class_table classes) : heap(classes), dice_(seed) {
        EXPECT_OK(ty_types_root(descriptors.get(), "items", &item_descriptor, nullptr));
        for (size_t n = 0; n < 60; ++n)
            add_item();
        for (size_t n = 0; n < 60; ++n)
            fill(*items_[n], n + 1 < 60 ? items_[n + 1] : nullptr);
        EXPECT_OK(ty_root_set(heap, "items", items_[0]));
        for (size_t n = dice_() % 4; n > 0; --n)
            remains(dice_() % 3, 8 * (dice_() % 12));
    }
    volatile_heap heap;
    descriptors_owner descriptors = new_descriptors();

private:
    void *zeroed(size_t bytes) {
        blocks_.push_back(static_cast<char *>(ty_alloc_zeroed(heap, bytes)));
        return blocks_.back();
    }
    void add_item() { items_.push_back(static_cast<item *>(zeroed(sizeof(item) + 8 * (dice_() % 6)))); }
    void fill(item &one, item *next) {
        one = {next, dice_() % 100, nullptr, dice_() % 9, nullptr};
        one.many = static_cast<item **>(zeroed(8 * one.count + 8 * (dice_() % 3)));
        for (size_t n = 0; n < one.count; ++n)
            one.many[n] = items_[dice_() % items_.size()];
        const size_t bytes = dice_() % 20 == 0 ? 9000 + dice_() % 40000 : dice_() % 200;
        one.bytes = static_cast<char *>(zeroed(bytes));
        memset(one.bytes, 1, bytes);
    }
    // In blocks of a kind, one of a few or all.
    void remains(size_t kind, size_t offset) {
        const size_t one_in = size_t{1} << dice_() % 5;
        const auto &leak = blocks_[dice_() % blocks_.size()];
        for (item *one : items_) {
            char *block = kind == 0   ? reinterpret_cast<char *>(one)
                          : kind == 1 ? reinterpret_cast<char *>(one->many)
                                      : one->bytes;
            const size_t first = kind == 0 ? sizeof(item) : kind == 1 ? 8 * one->count : 0;
            if (dice_() % one_in == 0 && first + offset + 8 <= ty_usable_size(block))
                memcpy(block + first + offset, &leak, 8);
        }
        if (dice_() % 8 == 0)
            items_[dice_() % items_.size()]->count += 1 + dice_() % 12; // more than there is room for, perhaps
    }
    std::mt19937 dice_;
    std::vector<item *> items_;
    std::vector<char *> blocks_;
};

ty_status move(const packed &stream, const ty_types *descriptors, ty_layout layout, bool force = false) {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.layout = layout;
    options.types = descriptors;
    options.force = force;
    ty_heap *moved = nullptr;
    const ty_status status = unpack(stream.text(), options, &moved);
    if (status != TY_OK)
        return status;
    EXPECT_OK(ty_heap_destroy(moved));
    return status;
}

} // namespace

TEST(descriptors_one_answer, audit_and_moves) {
    size_t refused = 0;
    const auto heaps = static_cast<unsigned>(effort(300));
    for (unsigned seed = 0; seed < heaps; ++seed) {
        random_heap one(seed, seed % 2 ? TY_CLASSES_DENSE : TY_CLASSES_CACHE_LINE);
        const audit_result audit = take_audit(one.heap, one.descriptors.get());
        ASSERT_TRUE(audit.status == TY_OK || audit.status == TY_E_MISMATCH) << ty_error_text();
        refused += audit.status != TY_OK;
        packed stream(one.heap);
        for (ty_layout layout : {TY_LAYOUT_SAME, TY_LAYOUT_DEFRAGMENT, TY_LAYOUT_LINE, TY_LAYOUT_PACKED})
            ASSERT_EQ(audit.status, move(stream, one.descriptors.get(), layout))
                << "seed " << seed << ", layout " << layout << ": " << ty_error_text() << "\n"
                << audit.text();
    }
    EXPECT_GT(refused, heaps / 10); // there is something to differ about
    EXPECT_LT(refused, heaps * 9 / 10);
}

// Each of many addresses says that it leads to all the rest of one array: that is gone over once.
TEST(descriptors_one_answer, many_addresses_of_one_array) {
    constexpr size_t count = 300000;
    volatile_heap heap;
    auto *items = static_cast<item *>(ty_alloc_zeroed(heap, count * sizeof(item)));
    auto **top = static_cast<item **>(ty_alloc_zeroed(heap, count * sizeof(item *)));
    for (size_t n = 0; n < count; ++n)
        top[n] = &items[n == 0 ? 0 : n % 2 ? n : count - 1 - n];
    static const ty_field field = {"rest", TY_FIELD_POINTER, 0, &item_descriptor, {}, {TY_COUNT_BLOCK, 0, 0, 0}, 0, 0};
    static const ty_type rest = {"rest", 8, &field, 1, nullptr, nullptr, nullptr};
    static const ty_count all_of_block = {TY_COUNT_BLOCK, 0, 0, 0};
    ASSERT_OK(ty_root_set(heap, "top", top));
    descriptors_owner descriptors = new_descriptors();
    ASSERT_OK(ty_types_root(descriptors.get(), "top", &rest, &all_of_block));
    const audit_result audit = take_audit(heap, descriptors.get());
    EXPECT_EQ(audit.status, TY_OK) << audit.text();
    ty_block block;
    ASSERT_OK(ty_block_of(top, &block));
    EXPECT_EQ(audit.figures.objects, block.size_bytes / 8 + ty_usable_size(items) / sizeof(item));
}

// A pointer audit moves nothing, so it needs no hooks: it reports objects that lack one, and of these alone. Moves are
// refused then, or forced.
TEST(descriptors_one_answer, hooks_that_nobody_has) {
    for (const char *hook : {"trace", "moved"}) {
        volatile_heap heap;
        auto **top = static_cast<void **>(ty_alloc_zeroed(heap, 16));
        top[0] = ty_alloc_zeroed(heap, 16);
        ASSERT_OK(ty_root_set(heap, "top", top));
        descriptors_owner descriptors = new_descriptors();
        const std::string text = std::string("taiyen types 1\ntype \"hooked\" 16\n  ") + hook +
                                 "\ntype \"nowhere\" 8\n  moved\n"
                                 "type \"top\" 16\n  field 0 \"first\" pointer \"hooked\"\nroot \"top\" \"top\"\n";
        ASSERT_OK(ty_types_read(descriptors.get(), text.data(), text.size()));
        const audit_result audit = take_audit(heap, descriptors.get());
        EXPECT_EQ(audit.status, TY_E_MISMATCH) << ty_error_text();
        ASSERT_EQ(audit.mismatches.size(), 1u) << audit.text();
        const reported *found = audit.find(TY_AUDIT_HOOK, "hooked", 0);
        ASSERT_NE(found, nullptr) << audit.text();
        EXPECT_TRUE(found->open && found->count == 1);
        EXPECT_NE(found->text.find(std::string("hook ") + hook), std::string::npos) << found->text;
        packed stream(heap);
        EXPECT_EQ(TY_E_MISMATCH, move(stream, descriptors.get(), TY_LAYOUT_DEFRAGMENT));
        EXPECT_EQ(TY_OK, move(stream, descriptors.get(), TY_LAYOUT_DEFRAGMENT, true)) << ty_error_text();
        ty_compact_options options = TY_COMPACT_OPTIONS_INIT;
        options.types = descriptors.get();
        EXPECT_EQ(TY_E_MISMATCH, ty_compact(heap, &options, nullptr));
        options.force = true;
        EXPECT_OK(ty_compact(heap, &options, nullptr));
        top = static_cast<void **>(ty_root(heap, "top"));
        top[0] = nullptr; // nobody needs the hook
        EXPECT_EQ(TY_OK, ty_audit_pointers(heap, descriptors.get(), nullptr, nullptr, nullptr)) << ty_error_text();
    }
}
