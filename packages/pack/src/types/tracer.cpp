// The functions that hooks call.
#include "boundary.hpp"
#include "walker.hpp"

using namespace taiyen::pack;

struct ty_tracer {
    walker *walk;
    plan *by;
    walker::object in;
};

namespace taiyen::pack {

void walker::call_trace(plan &as, const object &in) {
    ty_tracer tracer{this, &as, in};
    as.descriptor->trace(&tracer, in.at, as.descriptor->context);
}

namespace {

// The word must be in the object's block: a hook's claim is checked like any other.
bool is_word_of(const walker::object &in, const void *word) {
    const char *at = static_cast<const char *>(word);
    return reinterpret_cast<uintptr_t>(word) % word_bytes == 0 && at >= in.block.address && at < in.block.end() &&
           static_cast<size_t>(in.block.end() - at) >= word_bytes;
}

// The error's detail is that of the type descriptor.
constexpr ty_status unknown_descriptor = TY_E_ARGUMENT;

} // namespace

void walker::hooked_pointer(plan &by, const object &in, void *word, const ty_type *descriptor, size_t count,
                            uint64_t mask) {
    step &s = by.by_hook;
    s.to = plan_of(descriptor);
    if (descriptor && !s.to) {
        status_ = unknown_descriptor;
        return;
    }
    if (!check_mask(by, mask))
        return;
    if (!is_word_of(in, word))
        return add_dead(s, dead_kind::foreign_word, word, 0);
    char *target;
    found_block to;
    if (!meet(s, static_cast<char *>(word), mask, target, to))
        return;
    ty_count there{TY_COUNT_FIXED, count, 0, 0};
    s.there = &there;
    size_t number = count == 0 ? 0 : count_there(s, in, static_cast<char *>(word), target, to);
    s.there = nullptr;
    reach(s, word, target, to, number);
}

bool walker::check_mask(const plan &by, uint64_t mask) {
    if ((mask & address_bits) == 0)
        return true;
    status_ = ty_error_set(TY_E_ARGUMENT, 0, ("trace " + std::string(by.descriptor->name)).c_str(), nullptr, UINT64_MAX,
                           "its hook has a tag that takes bits of the address");
    return false;
}

void walker::hooked_reference(plan &by, const object &in, void *word, uint64_t mask) {
    step &s = by.by_hook;
    if (!check_mask(by, mask))
        return;
    if (!is_word_of(in, word))
        return add_dead(s, dead_kind::foreign_word, word, 0);
    uint64_t value = word_at(word);
    char *target;
    found_block to;
    if (meet(s, static_cast<char *>(word), mask, target, to) && types_[to.ordinal] == 0)
        references_.push_back({word, value, to.ordinal, &s});
}

void walker::hooked_nested(plan &by, const object &in, void *nested, const ty_type *descriptor, size_t count) {
    step &s = by.by_hook;
    plan *as = plan_of(descriptor);
    if (!as) {
        if (descriptor)
            status_ = unknown_descriptor;
        return;
    }
    char *first = static_cast<char *>(nested);
    if (as->plain || count == 0)
        return;
    if (!is_word_of(in, first))
        return add_dead(s, dead_kind::foreign_word, nested, 0);
    size_t room = static_cast<size_t>(in.block.end() - first) / as->size;
    if (count > room)
        add_dead(s, dead_kind::no_room, nested, 0, count, room);
    for (size_t n = 0; n < count && n < room && status_ == TY_OK; ++n) {
        char *at = first + n * as->size;
        visit(*as, {at, in.block, in.depth + 1}, at + as->size);
    }
}

void *walker::hooked_address(plan &by, const void *address, const ty_type *descriptor, size_t count) {
    step &s = by.by_hook;
    s.to = plan_of(descriptor);
    if (descriptor && !s.to) {
        status_ = unknown_descriptor;
        return const_cast<void *>(address);
    }
    if (!address)
        return nullptr;
    ++s.seen;
    ++pointers;
    char *target = static_cast<char *>(moved_ ? moved_(address, moved_context_) : const_cast<void *>(address));
    found_block to;
    if (!target || !find(target, to)) {
        add_dead(s, dead_kind::nowhere, nullptr, reinterpret_cast<uint64_t>(address));
        return const_cast<void *>(address);
    }
    ty_count there{TY_COUNT_FIXED, count, 0, 0};
    s.there = &there;
    size_t number = count == 0 ? 0 : count_there(s, {}, reinterpret_cast<const char *>(&address), target, to);
    s.there = nullptr;
    reach(s, nullptr, target, to, number);
    return target;
}

} // namespace taiyen::pack

void ty_trace_pointer(ty_tracer *tracer, void *word, const ty_type *descriptor, size_t count, uint64_t tag_mask) {
    tracer->walk->hooked_pointer(*tracer->by, tracer->in, word, descriptor, count, tag_mask);
}

void ty_trace_reference(ty_tracer *tracer, void *word, uint64_t tag_mask) {
    tracer->walk->hooked_reference(*tracer->by, tracer->in, word, tag_mask);
}

void ty_trace_nested(ty_tracer *tracer, void *objects, const ty_type *descriptor, size_t count) {
    tracer->walk->hooked_nested(*tracer->by, tracer->in, objects, descriptor, count);
}

void *ty_trace_address(ty_tracer *tracer, const void *address, const ty_type *descriptor, size_t count) {
    return tracer->walk->hooked_address(*tracer->by, address, descriptor, count);
}
