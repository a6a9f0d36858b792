// What an address leads to: bytes, an object, or an array of objects, of which some may have been reached already.
#include "walker.hpp"

namespace taiyen::pack {

void walker::reach(step &s, const void *word, char *target, const found_block &to, size_t count) {
    if (!s.to || count == 0)
        return reach_bytes(s, to);
    bool aligned = (reinterpret_cast<uintptr_t>(target) | s.to->size) % word_bytes == 0;
    if (aligned)
        return reach_objects(*s.to, target, count, to);
    if (!s.to->plain) {
        reach_bytes(s, to);
        return tell_dead(s, dead_kind::unaligned, word, reinterpret_cast<uint64_t>(target));
    }
    // Objects without addresses, between words: nothing in them is visited, and their block is known as theirs.
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

// Adds to the list the runs of those that were not reached yet.
void walker::reach_objects(plan &as, char *first, size_t count, const found_block &to) {
    uint32_t &type = types_[to.ordinal];
    if (type == 0 || !known_.of(type).holds)
        type = as.id;
    bool known = type == as.id;
    size_t run = 0;
    auto end_run = [&](char *end) {
        if (run != 0 && !as.plain)
            list_.push_back({end - run * as.size, run, &as, count == 1});
        objects += run;
        run = 0;
    };
    char *at = first;
    for (size_t n = 0; n < count; ++n, at += as.size) {
        bool fresh = known ? starts_.set(at) : others_.insert(at, as.id); // SH5
        if (fresh)
            ++run;
        else
            end_run(at);
    }
    end_run(at);
}

plan *walker::plan_of(const ty_shape *shape) {
    return shape ? known_.find(shape) : nullptr;
}

} // namespace taiyen::pack
