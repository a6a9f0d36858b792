// What an address leads to: bytes, an object, or an array of objects, some of which may have been reached before.
#include "walker.hpp"

#include <algorithm>

namespace taiyen::pack {

void walker::reach(step &s, const void *word, char *target, const found_block &to, size_t count) {
    if (!s.to || count == 0)
        return reach_bytes(s, to);
    bool aligned = (reinterpret_cast<uintptr_t>(target) | s.to->size) % word_bytes == 0;
    if (aligned)
        return reach_objects(*s.to, target, count, to);
    if (!s.to->plain) {
        reach_bytes(s, to);
        return add_dead(s, dead_kind::unaligned, word, reinterpret_cast<uint64_t>(target));
    }
    // Objects without addresses need not be aligned: nothing in them is visited, and their block gets their type.
    uint32_t &type = types_[to.ordinal];
    if (type == 0 || !known_.of(type).holds) {
        type = s.to->id;
        objects += count;
    }
}

void walker::reach_bytes(step &s, const found_block &to) {
    uint32_t &type = types_[to.ordinal];
    if (type == 0)
        type = label_of(s);
}

uint32_t walker::label_of(step &s) {
    if (s.label == 0)
        s.label = known_.add_bytes(s.name);
    return s.label;
}

// Many addresses may lead into one long array: parts that were walked are skipped.
void walker::reach_objects(plan &as, char *first, size_t count, const found_block &to) {
    uint32_t &type = types_[to.ordinal];
    if (type == 0 || !known_.of(type).holds)
        type = as.id;
    const bool known = type == as.id;
    if (count < long_array)
        return reach_run(as, first, count, known, count == 1);
    auto &gone_over = long_arrays_[{as.id, reinterpret_cast<uintptr_t>(first) % as.size}];
    char *const end = first + count * as.size;
    char *from = first, *whole_first = first, *whole_end = end;
    auto next = gone_over.upper_bound(first);
    if (next != gone_over.begin() && std::prev(next)->second >= first)
        --next;
    while (next != gone_over.end() && next->first <= end) {
        if (from < next->first)
            reach_run(as, from, static_cast<size_t>(next->first - from) / as.size, known, false);
        from = std::max(from, next->second);
        whole_first = std::min(whole_first, next->first);
        whole_end = std::max(whole_end, next->second);
        next = gone_over.erase(next);
    }
    if (from < end)
        reach_run(as, from, static_cast<size_t>(end - from) / as.size, known, false);
    gone_over.emplace(whole_first, whole_end);
}

// Appends the runs of objects that were not reached yet to the work list.
void walker::reach_run(plan &as, char *first, size_t count, bool known, bool alone) {
    size_t run = 0;
    auto end_run = [&](char *end) {
        if (run != 0 && !as.plain)
            list_.push_back({end - run * as.size, run, &as, alone});
        objects += run;
        run = 0;
    };
    char *at = first;
    for (size_t n = 0; n < count; ++n, at += as.size) {
        bool fresh = known ? starts_.set(at) : others_.insert(at, as.id); // SH5: once as each type descriptor
        if (fresh)
            ++run;
        else
            end_run(at);
    }
    end_run(at);
}

plan *walker::plan_of(const ty_type *descriptor) {
    return descriptor ? known_.find(descriptor) : nullptr;
}

} // namespace taiyen::pack
