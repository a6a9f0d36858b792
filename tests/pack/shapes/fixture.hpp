// A heap in memory with a set of shapes, and what a census says of it.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <taiyen/shapes.h>
#include <taiyen/taiyen.h>
#include <vector>

namespace taiyen::test {

struct destroy_shapes {
    void operator()(ty_shapes *shapes) const { ty_shapes_destroy(shapes); }
};
using shapes_owner = std::unique_ptr<ty_shapes, destroy_shapes>;

inline shapes_owner new_shapes() {
    ty_shapes *shapes = nullptr;
    EXPECT_EQ(ty_shapes_create(&shapes), TY_OK) << ty_error_text();
    return shapes_owner(shapes);
}

struct destroy_heap {
    void operator()(ty_heap *heap) const { EXPECT_EQ(ty_heap_destroy(heap), TY_OK); }
};
using heap_owner_ptr = std::unique_ptr<ty_heap, destroy_heap>;

inline heap_owner_ptr new_heap(ty_class_table classes = TY_CLASSES_LINE) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{4} << 30;
    options.classes = classes;
    ty_heap *heap = nullptr;
    EXPECT_EQ(ty_heap_create(&options, &heap), TY_OK) << ty_error_text();
    return heap_owner_ptr(heap);
}

struct told {
    ty_census_finding_kind kind;
    bool open;
    std::string shape, field;
    size_t offset;
    uint64_t count, of, bytes;
    std::string text;
};

struct census_result {
    ty_status status = TY_OK;
    ty_census figures{};
    std::vector<told> findings;

    const told *find(ty_census_finding_kind kind, const std::string &shape, size_t offset) const {
        for (const told &one : findings)
            if (one.kind == kind && one.shape == shape && one.offset == offset)
                return &one;
        return nullptr;
    }
    size_t count(ty_census_finding_kind kind) const {
        size_t number = 0;
        for (const told &one : findings)
            number += one.kind == kind;
        return number;
    }
    std::string text() const {
        std::string all;
        for (const told &one : findings)
            all += (one.open ? "open: " : "") + one.text + '\n';
        return all;
    }
};

inline census_result take_census(ty_heap *heap, const ty_shapes *shapes) {
    census_result result;
    result.figures.struct_size = sizeof(ty_census);
    auto note = [](const ty_census_finding *one, void *context) {
        static_cast<census_result *>(context)->findings.push_back({one->kind, one->open, one->shape ? one->shape : "",
                                                                   one->field ? one->field : "", one->offset,
                                                                   one->count, one->of, one->bytes, one->text});
        return true;
    };
    result.status = ty_take_census(heap, shapes, note, &result, &result.figures);
    return result;
}

inline std::string text_of(const ty_shapes *shapes) {
    std::string text;
    auto add = [](const char *piece, size_t bytes, void *context) {
        static_cast<std::string *>(context)->append(piece, bytes);
        return true;
    };
    EXPECT_EQ(ty_shapes_write(shapes, add, &text), TY_OK);
    return text;
}

// From the heap's blocks, all zero.
template <class type>
type *make(ty_heap *heap, size_t count = 1) {
    auto *made = static_cast<type *>(ty_alloc_zeroed(heap, sizeof(type) * count));
    EXPECT_NE(made, nullptr) << ty_error_text();
    return made;
}

inline char *make_text(ty_heap *heap, const char *text) {
    char *made = static_cast<char *>(ty_alloc_zeroed(heap, strlen(text) + 1));
    memcpy(made, text, strlen(text));
    return made;
}

} // namespace taiyen::test
