// Whether a type descriptor is valid (SH1: each one in a set is). It may come from anybody.
#include "descriptor_set.hpp"

#include <algorithm>

namespace taiyen::pack {

namespace {

// Address bits that no tag may use: all but those within a cache line, and the high ones that user space does not use.

size_t element_bytes(const ty_field &field) {
    return field.kind == TY_FIELD_NESTED ? field.descriptor->size_bytes : word_bytes;
}

bool is_address(const ty_field &field) {
    return field.kind != TY_FIELD_NESTED;
}

// The integer of a count must lie in the object.
const char *check_count_integer(const ty_count &count, size_t size) {
    if (count.bytes != 1 && count.bytes != 2 && count.bytes != 4 && count.bytes != 8)
        return "its count is an integer of neither 1, 2, 4 nor 8 bytes";
    if (count.offset > size || count.bytes > size - count.offset)
        return "its count lies outside of the object";
    return nullptr;
}

const char *check_here(const ty_field &field, size_t size) {
    if (field.offset > size)
        return "it lies outside of the object";
    switch (field.here.kind) {
    case TY_COUNT_FIXED: {
        size_t number = field.here.number ? field.here.number : 1;
        return number <= (size - field.offset) / element_bytes(field) ? nullptr : "it does not fit in the object";
    }
    case TY_COUNT_FIELD:
        return check_count_integer(field.here, size);
    case TY_COUNT_BLOCK:
        return nullptr;
    default:
        return "what stands here has a count of no kind that there is";
    }
}

const char *check_there(const ty_field &field, size_t size) {
    switch (field.there.kind) {
    case TY_COUNT_FIXED:
    case TY_COUNT_BLOCK:
        return nullptr;
    case TY_COUNT_FIELD:
        return check_count_integer(field.there, size);
    case TY_COUNT_END:
        if (field.there.offset % word_bytes != 0)
            return "the address of its end is not aligned to 8 bytes";
        if (field.there.offset > size || size - field.there.offset < word_bytes)
            return "the address of its end lies outside of the object";
        return field.there.offset != field.offset ? nullptr : "it is its own end";
    default:
        return "what it leads to has a count of no kind that there is";
    }
}

// A place needs a pointer or a reference, a single one, from which it keeps its distance.
const char *check_place(const ty_type *descriptor, const ty_field &field) {
    if (field.here.kind != TY_COUNT_FIXED || field.here.number > 1)
        return "a place stands alone";
    if (field.tag_mask != 0)
        return "a place has no tag";
    for (size_t n = 0; n < descriptor->field_count; ++n) {
        const ty_field &base = descriptor->fields[n];
        if (base.offset == field.base_offset && (base.kind == TY_FIELD_POINTER || base.kind == TY_FIELD_REFERENCE))
            return nullptr;
    }
    return "there is no pointer at its base";
}

const char *check_field(const ty_type *descriptor, const ty_field &field) {
    if (!field.name || !*field.name)
        return "it has no name";
    if (std::string_view(field.name).size() > name_bytes_max)
        return "its name is too long";
    if (field.kind < TY_FIELD_POINTER || field.kind > TY_FIELD_PLAIN)
        return "it is of no kind that there is";
    if (field.kind == TY_FIELD_NESTED && !field.descriptor)
        return "what is nested has no type descriptor";
    if (field.kind == TY_FIELD_NESTED &&
        (field.descriptor->size_bytes == 0 || field.descriptor->size_bytes > descriptor_bytes_max))
        return "what is nested has no size that there is";
    if (is_address(field) && field.offset % word_bytes != 0)
        return "an address that is not aligned to 8 bytes";
    if ((field.kind == TY_FIELD_HEAP || field.kind == TY_FIELD_PLAIN) && field.tag_mask != 0)
        return "a heap's base, or what holds no address, has no tag";
    if ((field.tag_mask & address_bits) != 0)
        return "its tag takes bits of the address";
    if (const char *wrong = check_here(field, descriptor->size_bytes))
        return wrong;
    if (field.kind == TY_FIELD_POINTER)
        return check_there(field, descriptor->size_bytes);
    return field.kind == TY_FIELD_PLACE ? check_place(descriptor, field) : nullptr;
}

struct extent {
    size_t begin;
    size_t end; // SIZE_MAX: to the object's end and beyond
    const ty_field *field;
};

// The fields by offset, each with the bytes that it certainly takes.
std::vector<extent> extents_of(const ty_type *descriptor) {
    std::vector<extent> extents;
    extents.reserve(descriptor->field_count);
    for (size_t n = 0; n < descriptor->field_count; ++n) {
        const ty_field &field = descriptor->fields[n];
        size_t bytes = element_bytes(field);
        if (field.here.kind == TY_COUNT_FIXED)
            bytes *= field.here.number ? field.here.number : 1;
        extents.push_back({field.offset, field.offset + bytes, &field});
    }
    std::sort(extents.begin(), extents.end(), [](const extent &a, const extent &b) { return a.begin < b.begin; });
    if (!extents.empty() && extents.back().field->here.kind != TY_COUNT_FIXED)
        extents.back().end = SIZE_MAX;
    return extents;
}

const extent *at(const std::vector<extent> &extents, size_t begin, size_t end) {
    auto after =
        std::partition_point(extents.begin(), extents.end(), [&](const extent &one) { return one.end <= begin; });
    return after != extents.end() && after->begin < end ? &*after : nullptr;
}

// A fix would change a count that shares bytes with an address.
bool is_in_address(const std::vector<extent> &extents, const ty_count &count) {
    if (count.kind != TY_COUNT_FIELD)
        return false;
    const extent *one = at(extents, count.offset, count.offset + count.bytes);
    return one && is_address(*one->field);
}

problem check_extents(const ty_type *descriptor) {
    std::vector<extent> extents = extents_of(descriptor);
    for (size_t n = 0; n + 1 < extents.size(); ++n) {
        if (extents[n].end > extents[n + 1].begin)
            return {descriptor, extents[n + 1].field, std::string("it overlaps the field ") + extents[n].field->name};
        if (extents[n].field->here.kind == TY_COUNT_BLOCK)
            return {descriptor, extents[n].field, "it goes on to the end of the block, and there are fields after it"};
    }
    for (const extent &one : extents)
        if (is_in_address(extents, one.field->here) ||
            (one.field->kind == TY_FIELD_POINTER && is_in_address(extents, one.field->there)))
            return {descriptor, one.field, "its count is a part of an address"};
    return {};
}

} // namespace

problem check_descriptor(const ty_type *descriptor) {
    if (!descriptor->name || !*descriptor->name)
        return {descriptor, nullptr, "it has no name"};
    if (std::string_view(descriptor->name).size() > name_bytes_max)
        return {descriptor, nullptr, "its name is too long"};
    if (descriptor->size_bytes == 0 || descriptor->size_bytes > descriptor_bytes_max)
        return {descriptor, nullptr, "its size is 0 or more than 1 GiB"};
    if (descriptor->field_count > field_count_max)
        return {descriptor, nullptr, "it has more than 65,536 fields"};
    if (descriptor->field_count != 0 && !descriptor->fields)
        return {descriptor, nullptr, "its fields are NULL"};
    bool has_places = false;
    for (size_t n = 0; n < descriptor->field_count; ++n) {
        has_places |= descriptor->fields[n].kind == TY_FIELD_PLACE;
        if (!has_places || descriptor->fields[n].kind != TY_FIELD_PLACE)
            if (const char *wrong = check_field(descriptor, descriptor->fields[n]))
                return {descriptor, &descriptor->fields[n], wrong};
    }
    // Last, as only now their bases are known to be valid.
    for (size_t n = 0; has_places && n < descriptor->field_count; ++n)
        if (descriptor->fields[n].kind == TY_FIELD_PLACE)
            if (const char *wrong = check_field(descriptor, descriptor->fields[n]))
                return {descriptor, &descriptor->fields[n], wrong};
    return check_extents(descriptor);
}

} // namespace taiyen::pack
