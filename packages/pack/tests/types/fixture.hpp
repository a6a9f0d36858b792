// A heap in memory with a set of type descriptors, and what a pointer audit says of it.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <taiyen/taiyen.h>
#include <taiyen/types.h>
#include <vector>

namespace taiyen::test {

struct destroy_descriptors {
    void operator()(ty_types *descriptors) const { ty_types_destroy(descriptors); }
};
using descriptors_owner = std::unique_ptr<ty_types, destroy_descriptors>;

inline descriptors_owner new_descriptors() {
    ty_types *descriptors = nullptr;
    EXPECT_EQ(ty_types_create(&descriptors), TY_OK) << ty_error_text();
    return descriptors_owner(descriptors);
}

struct destroy_heap {
    void operator()(ty_heap *heap) const { EXPECT_EQ(ty_heap_destroy(heap), TY_OK); }
};
using heap_owner_ptr = std::unique_ptr<ty_heap, destroy_heap>;

inline heap_owner_ptr new_heap(ty_class_table classes = TY_CLASSES_CACHE_LINE) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{4} << 30;
    options.classes = classes;
    ty_heap *heap = nullptr;
    EXPECT_EQ(ty_heap_create(&options, &heap), TY_OK) << ty_error_text();
    return heap_owner_ptr(heap);
}

struct reported {
    ty_audit_mismatch_kind kind;
    bool open;
    std::string descriptor, field;
    size_t offset;
    uint64_t count, of, bytes;
    std::string text;
};

struct audit_result {
    ty_status status = TY_OK;
    ty_audit figures{};
    std::vector<reported> mismatches;

    const reported *find(ty_audit_mismatch_kind kind, const std::string &descriptor, size_t offset) const {
        for (const reported &one : mismatches)
            if (one.kind == kind && one.descriptor == descriptor && one.offset == offset)
                return &one;
        return nullptr;
    }
    size_t count(ty_audit_mismatch_kind kind) const {
        size_t number = 0;
        for (const reported &one : mismatches)
            number += one.kind == kind;
        return number;
    }
    std::string text() const {
        std::string all;
        for (const reported &one : mismatches)
            all += (one.open ? "open: " : "") + one.text + '\n';
        return all;
    }
};

inline audit_result take_audit(ty_heap *heap, const ty_types *descriptors) {
    audit_result result;
    result.figures.struct_size = sizeof(ty_audit);
    auto note = [](const ty_audit_mismatch *one, void *context) {
        static_cast<audit_result *>(context)->mismatches.push_back(
            {one->kind, one->open, one->descriptor ? one->descriptor : "", one->field ? one->field : "", one->offset,
             one->count, one->of, one->bytes, one->text});
        return true;
    };
    result.status = ty_audit_pointers(heap, descriptors, note, &result, &result.figures);
    return result;
}

inline std::string text_of(const ty_types *descriptors) {
    std::string text;
    auto add = [](const char *piece, size_t bytes, void *context) {
        static_cast<std::string *>(context)->append(piece, bytes);
        return true;
    };
    EXPECT_EQ(ty_types_write(descriptors, add, &text), TY_OK);
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
