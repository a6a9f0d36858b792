// Takes the lines of a description away, each by itself: the pointer audit must name the type and the place in it.
#pragma once

#include "fixture.hpp"

namespace taiyen::test {

inline std::vector<std::string> lines_of(const std::string &text) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
        size_t end = text.find('\n', at);
        lines.push_back(text.substr(at, end - at + 1));
        at = end + 1;
    }
    return lines;
}

inline std::string without(const std::vector<std::string> &lines, size_t line) {
    std::string text;
    for (size_t n = 0; n < lines.size(); ++n)
        text += n == line ? "" : lines[n];
    return text;
}

// The bytes that a field takes in its object, as the complete description has it.
inline std::pair<size_t, size_t> extent_of(const ty_type *descriptor, size_t offset) {
    for (size_t n = 0; n < descriptor->field_count; ++n) {
        const ty_field &field = descriptor->fields[n];
        if (field.offset != offset)
            continue;
        size_t bytes = field.kind == TY_FIELD_NESTED ? field.descriptor->size_bytes : sizeof(void *);
        size_t number = field.here.kind == TY_COUNT_FIXED ? field.here.number + !field.here.number : 1 << 20;
        return {offset, offset + bytes * number};
    }
    return {0, descriptor->size_bytes};
}

// An open mismatch of the type, within the extent of what is missing.
inline bool is_named(const audit_result &result, const std::string &type, std::pair<size_t, size_t> extent) {
    for (const reported &one : result.mismatches)
        if (one.kind == TY_AUDIT_HIDDEN && one.open && one.descriptor == type && one.offset >= extent.first &&
            one.offset < extent.second)
            return true;
    return false;
}

// bind gives a set its hooks, as far as the text has them.
inline void expect_each_deleted_line_named(ty_heap *heap, const ty_types *complete, void (*bind)(ty_types *)) {
    std::vector<std::string> lines = lines_of(text_of(complete));
    std::string type;
    size_t deleted = 0;
    for (size_t n = 0; n < lines.size(); ++n) {
        if (lines[n].starts_with("type "))
            type = lines[n].substr(6, lines[n].rfind('"') - 6);
        bool field = lines[n].starts_with("  field ");
        if (!field && !lines[n].starts_with("  trace"))
            continue;
        ++deleted;
        std::string text = without(lines, n);
        descriptors_owner descriptors = new_descriptors();
        if (ty_types_read(descriptors.get(), text.data(), text.size()) != TY_OK) {
            EXPECT_NE(std::string(ty_error_text()).find("no pointer at its base"), std::string::npos)
                << ty_error_text();
            continue;
        }
        bind(descriptors.get());
        audit_result result = take_audit(heap, descriptors.get());
        EXPECT_EQ(result.status, TY_E_MISMATCH) << lines[n];
        const ty_type *descriptor = ty_types_find(complete, type.c_str());
        auto extent = extent_of(descriptor, field ? std::stoul(lines[n].substr(8)) : SIZE_MAX);
        EXPECT_TRUE(is_named(result, type, extent)) << type << ": " << lines[n] << result.text();
    }
    EXPECT_GT(deleted, 0u);
}

} // namespace taiyen::test
