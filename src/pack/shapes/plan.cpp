#include "plan.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::pack {

namespace {

uint64_t mask_at(const ty_shape *shape, size_t offset) {
    for (size_t n = 0; n < shape->field_count; ++n)
        if (shape->fields[n].kind != TY_FIELD_NESTED && shape->fields[n].offset == offset)
            return shape->fields[n].tag_mask;
    return 0;
}

step step_of(const ty_shape *shape, const ty_field &field) {
    step one;
    one.field = &field;
    one.kind = field.kind;
    one.offset = field.offset;
    one.element = field.kind == TY_FIELD_NESTED ? field.shape->size_bytes : word_bytes;
    if (field.here.kind == TY_COUNT_FIXED)
        one.number = field.here.number ? field.here.number : 1;
    one.mask = field.tag_mask;
    one.there = &field.there;
    if (field.kind == TY_FIELD_PLACE)
        one.other_mask = mask_at(shape, field.base_offset);
    else if (field.there.kind == TY_COUNT_END)
        one.other_mask = mask_at(shape, field.there.offset);
    one.name = std::string(shape->name) + '.' + field.name;
    return one;
}

// Where the next field begins, for each: a count that says more is wrong.
void find_limits(std::vector<step> &steps) {
    std::sort(steps.begin(), steps.end(), [](const step &a, const step &b) { return a.offset < b.offset; });
    for (size_t n = 0; n + 1 < steps.size(); ++n)
        steps[n].limit = steps[n + 1].offset;
}

} // namespace

const char *missing_hook(const shape_set &set, const ty_shape *shape) {
    const owned_shape *text = set.owned(shape);
    if (text && text->needs_trace && !shape->trace)
        return "trace";
    return text && text->needs_moved && !shape->moved ? "moved" : nullptr;
}

size_t integer_at(const char *object, const ty_count &count) {
    size_t value = 0; // this machine is little-endian, as the library's files are
    memcpy(&value, object + count.offset, count.bytes);
    size_t times = count.number ? count.number : 1;
    size_t product;
    return __builtin_mul_overflow(value, times, &product) ? SIZE_MAX : product;
}

plans::plans(const shape_set &set) {
    contents_.emplace_back(); // 0: not reached
    for (const ty_shape *shape : set.shapes())
        take(set, shape);
    for (plan &one : all)
        fill(one);
}

void plans::take(const shape_set &set, const ty_shape *shape) {
    plan &one = all.emplace_back();
    one.shape = shape;
    one.id = static_cast<uint32_t>(contents_.size());
    one.size = shape->size_bytes;
    one.plain = set.is_plain(shape);
    one.lacks = missing_hook(set, shape);
    one.hooked = shape->trace || shape->moved || one.lacks;
    one.by_hook.name = std::string(shape->name) + ".(hook)";
    contents_.push_back({&one, shape->name});
    by_shape_.emplace(shape, &one);
    by_name_.emplace(shape->name, &one);
}

void plans::fill(plan &one) {
    std::vector<step> steps;
    steps.reserve(one.shape->field_count);
    for (size_t n = 0; n < one.shape->field_count; ++n) {
        const ty_field &field = one.shape->fields[n];
        steps.push_back(step_of(one.shape, field));
        if (field.shape)
            steps.back().to = by_shape_.at(field.shape);
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

plan *plans::find(const ty_shape *shape) {
    auto found = by_shape_.find(shape);
    if (found != by_shape_.end())
        return found->second;
    auto named = by_name_.find(shape->name ? shape->name : "");
    if (named != by_name_.end() && named->second->size == shape->size_bytes)
        return named->second;
    size_t before = handed_over_.shapes().size();
    if (handed_over_.add(shape) != TY_OK)
        return nullptr;
    size_t first = all.size();
    for (size_t n = before; n < handed_over_.shapes().size(); ++n)
        if (!by_shape_.contains(handed_over_.shapes()[n]))
            take(handed_over_, handed_over_.shapes()[n]);
    for (size_t n = first; n < all.size(); ++n)
        fill(all[n]);
    return by_shape_.at(shape);
}

uint32_t plans::add_bytes(const std::string &name) {
    contents_.push_back({nullptr, name});
    return static_cast<uint32_t>(contents_.size() - 1);
}

} // namespace taiyen::pack
