#include "plan.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::pack {

namespace {

uint64_t mask_at(const ty_type *descriptor, size_t offset) {
    for (size_t n = 0; n < descriptor->field_count; ++n)
        if (descriptor->fields[n].kind != TY_FIELD_NESTED && descriptor->fields[n].offset == offset)
            return descriptor->fields[n].tag_mask;
    return 0;
}

step step_of(const ty_type *descriptor, const ty_field &field) {
    step one;
    one.field = &field;
    one.kind = field.kind;
    one.offset = field.offset;
    one.element = field.kind == TY_FIELD_NESTED ? field.descriptor->size_bytes : word_bytes;
    if (field.here.kind == TY_COUNT_FIXED)
        one.number = field.here.number ? field.here.number : 1;
    one.mask = field.tag_mask;
    one.there = &field.there;
    if (field.kind == TY_FIELD_PLACE)
        one.other_mask = mask_at(descriptor, field.base_offset);
    else if (field.there.kind == TY_COUNT_END)
        one.other_mask = mask_at(descriptor, field.there.offset);
    one.name = std::string(descriptor->name) + '.' + field.name;
    return one;
}

// For each step, where the next field begins: a count that goes beyond is wrong.
void find_limits(std::vector<step> &steps) {
    std::sort(steps.begin(), steps.end(), [](const step &a, const step &b) { return a.offset < b.offset; });
    for (size_t n = 0; n + 1 < steps.size(); ++n)
        steps[n].limit = steps[n + 1].offset;
}

} // namespace

const char *missing_hook(const descriptor_set &set, const ty_type *descriptor) {
    const owned_descriptor *text = set.owned(descriptor);
    if (text && text->needs_trace && !descriptor->trace)
        return "trace";
    return text && text->needs_moved && !descriptor->moved ? "moved" : nullptr;
}

size_t integer_at(const char *object, const ty_count &count) {
    size_t value = 0; // this machine is little-endian, as are the library's files
    memcpy(&value, object + count.offset, count.bytes);
    size_t times = count.number ? count.number : 1;
    size_t product;
    return __builtin_mul_overflow(value, times, &product) ? SIZE_MAX : product;
}

plans::plans(const descriptor_set &set) {
    contents_.emplace_back(); // number 0: not reached
    for (const ty_type *descriptor : set.descriptors())
        take(set, descriptor);
    for (plan &one : all)
        fill(one);
}

void plans::take(const descriptor_set &set, const ty_type *descriptor) {
    plan &one = all.emplace_back();
    one.descriptor = descriptor;
    one.id = static_cast<uint32_t>(contents_.size());
    one.size = descriptor->size_bytes;
    one.plain = set.is_plain(descriptor);
    one.lacks = missing_hook(set, descriptor);
    one.hooked = descriptor->trace || descriptor->moved || one.lacks;
    one.by_hook.name = std::string(descriptor->name) + ".(hook)";
    contents_.push_back({&one, descriptor->name});
    by_descriptor_.emplace(descriptor, &one);
    by_name_.emplace(descriptor->name, &one);
}

void plans::fill(plan &one) {
    std::vector<step> steps;
    steps.reserve(one.descriptor->field_count);
    for (size_t n = 0; n < one.descriptor->field_count; ++n) {
        const ty_field &field = one.descriptor->fields[n];
        steps.push_back(step_of(one.descriptor, field));
        if (field.descriptor)
            steps.back().to = by_descriptor_.at(field.descriptor);
    }
    find_limits(steps);
    for (const step &s : steps) {
        if (s.kind == TY_FIELD_NESTED)
            one.nests.push_back(s);
        if (s.field->here.kind != TY_COUNT_FIXED && s.offset < one.size)
            one.reserves.emplace_back(s.offset, std::min(s.limit, one.size));
    }
    std::erase_if(steps, [](const step &s) { return s.kind == TY_FIELD_NESTED && s.to->plain; });
    one.steps = std::move(steps);
}

plan *plans::find(const ty_type *descriptor) {
    auto found = by_descriptor_.find(descriptor);
    if (found != by_descriptor_.end())
        return found->second;
    auto named = by_name_.find(descriptor->name ? descriptor->name : "");
    if (named != by_name_.end() && named->second->size == descriptor->size_bytes)
        return named->second;
    size_t before = handed_over_.descriptors().size();
    if (handed_over_.add(descriptor) != TY_OK)
        return nullptr;
    size_t first = all.size();
    for (size_t n = before; n < handed_over_.descriptors().size(); ++n)
        if (!by_descriptor_.contains(handed_over_.descriptors()[n]))
            take(handed_over_, handed_over_.descriptors()[n]);
    for (size_t n = first; n < all.size(); ++n)
        fill(all[n]);
    return by_descriptor_.at(descriptor);
}

uint32_t plans::add_bytes(const std::string &name) {
    contents_.push_back({nullptr, name});
    return static_cast<uint32_t>(contents_.size() - 1);
}

} // namespace taiyen::pack
