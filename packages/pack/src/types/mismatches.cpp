// All mismatches of one walk, each with its text.
#include "audit.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <taiyen/detail/fault.hpp>

namespace taiyen::pack {

namespace {

// If more offsets of one type look alike, they are reported as one.
constexpr size_t offsets_shown = 16;

std::string hex(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::string example_of(const void *word, uint64_t value) {
    if (!word)
        return value ? " (" + hex(value) + ")" : "";
    return " (at " + hex(reinterpret_cast<uint64_t>(word)) + ": " + hex(value) + ")";
}

std::string counted(uint64_t count, const char *what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

std::string offset_text(uint64_t offset) {
    return offset >= offset_max ? " + 65536 and beyond" : " + " + std::to_string(offset);
}

const char *dead_text(dead_kind kind) {
    switch (kind) {
    case dead_kind::nowhere:
        return "leads to no live block";
    case dead_kind::unaligned:
        return "leads to an object that is not aligned to 8 bytes";
    case dead_kind::no_room:
        return "has more objects than there is room for";
    case dead_kind::bad_end:
        return "has an end that is not a whole number of objects after it, in its block";
    case dead_kind::bad_place:
        return "is no place in what its base leads to";
    case dead_kind::other_heap:
        return "is not the base of this heap";
    case dead_kind::unreachable:
        return "refers to a block that no pointer reaches";
    default:
        return "is no aligned word of the object's block";
    }
}

const char *place_text(place_kind kind) {
    switch (kind) {
    case place_kind::inside:
        return "";
    case place_kind::reserve:
        return ", after what its count says";
    case place_kind::after:
        return ", after the object's end";
    case place_kind::spare:
        return ", where a smaller block would have no room";
    default:
        return ", in bytes without a type descriptor";
    }
}

// For words in an object. A word that is partly padding may be half a number and half of an old value, and so look like
// an address: but rarely like that of a block's first byte, and not all words like the heap's base.
bool is_open_inside(const word_tally &tally) {
    uint64_t others = tally.count - tally.bases;
    return tally.starts * 2 >= others ? others != 0 || tally.bases * 16 >= tally.of * 15 : others * 2 >= tally.of;
}

// SH10: a word in an object that looks like an address is one, unless it is padding. Elsewhere a word is taken for one
// if at least half of the words at its offset look so; far offsets count as one, and there 1 of 32 words is enough, for
// an array's elements of up to 32 words. Where the program may not have asked for the room, remains are very common
// (nearly all words after the cities of the demo's atlas are remains), so there only addresses of blocks that nothing
// else leads to count. Remains of objects are kept in step by a move (SH11). The heap's base is a remain there, too:
// allocators in elements that are gone contain it.
bool is_open(const walker &walk, const place &at, const word_tally &tally) {
    if (at.kind == place_kind::inside &&
        (tally.count * 2 >= tally.of || !taiyen::detail::fault("hidden_address_taken_for_a_remain")))
        return is_open_inside(tally);
    const uint64_t bases = walk.known().of(at.content).holds ? tally.bases : 0;
    if (at.kind == place_kind::spare)
        return (tally.lost - bases) * 2 >= tally.of;
    uint64_t weight = at.offset >= offset_max ? 32 : 2;
    return (tally.count - bases) * weight >= tally.of;
}

} // namespace

std::vector<mismatch> mismatches::collect() {
    program_ranges programs;
    uncovered_words words = find_uncovered(walk_, programs);
    add_roots();
    add_dead();
    add_hidden(words.hidden);
    add_code(words.code, programs);
    add_leaks(words.hidden);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const mismatch &a, const mismatch &b) { return a.open > b.open; });
    return std::move(found_);
}

void mismatches::add_roots() {
    for (const std::string &name : walk_.roots_without_descriptor()) {
        mismatch &one = found_.emplace_back(mismatch{TY_AUDIT_ROOT, true, name, {}});
        one.count = one.of = 1;
        one.text = "root " + name + ": no type descriptor says what it leads to";
    }
    for (const std::string &name : walk_.descriptors_without_root()) {
        mismatch &one = found_.emplace_back(mismatch{TY_AUDIT_ROOT, false, name, {}});
        one.count = one.of = 1;
        one.text = "root " + name + ": it has a type descriptor, and the heap has no such root";
    }
}

void mismatches::add_dead() {
    for (const step &s : walk_.root_steps())
        add_dead_of(s, s.name.c_str());
    for (const plan &one : walk_.known().all) {
        for (const step &s : one.steps)
            add_dead_of(s, one.descriptor->name);
        add_dead_of(one.by_hook, one.descriptor->name);
        if (one.unhooked.count != 0)
            add_unhooked(one);
    }
}

void mismatches::add_unhooked(const plan &one) {
    mismatch &found = found_.emplace_back(mismatch{TY_AUDIT_HOOK, true, one.descriptor->name, {}});
    found.count = found.of = one.unhooked.count;
    found.example = one.unhooked.example;
    const bool blind = strcmp(one.lacks, "trace") == 0;
    found.text = found.descriptor + ": " + counted(found.count, "object") + ": nobody has bound the hook " + one.lacks +
                 (blind ? ", which knows of addresses in them" : ", which they need after a move") + " (at " +
                 hex(reinterpret_cast<uint64_t>(found.example)) + ")";
}

void mismatches::add_dead_of(const step &s, const char *descriptor) {
    for (const auto &[kind, tally] : s.dead) {
        mismatch &one = found_.emplace_back(mismatch{TY_AUDIT_DEAD, true, descriptor, s.field ? s.field->name : ""});
        one.offset = s.offset;
        one.count = tally.count;
        one.of = std::max(s.seen, tally.count);
        one.example = tally.example;
        one.value = tally.value;
        std::string name = s.field ? s.name + " + " + std::to_string(s.offset) : s.name;
        one.text = name + ": " + std::to_string(one.count) + " of " + std::to_string(one.of) + ": " + dead_text(kind);
        if (kind == dead_kind::no_room)
            one.text += ": room for " + std::to_string(tally.room) + " of " + std::to_string(tally.wanted);
        one.text += example_of(tally.example, tally.value);
    }
}

// For each content and kind of place: offsets one by one, or many alike as one.
void mismatches::add_hidden(const std::map<place, word_tally> &tallies) {
    auto first = tallies.begin();
    while (first != tallies.end()) {
        auto last = first;
        size_t open = 0;
        size_t all = 0;
        for (; last != tallies.end() && last->first.content == first->first.content &&
               last->first.kind == first->first.kind;
             ++last) {
            open += is_open(walk_, last->first, last->second);
            ++all;
        }
        if (open != 0)
            add_group(first, last, true);
        if (open != all)
            add_group(first, last, false);
        first = last;
    }
}

void mismatches::add_group(std::map<place, word_tally>::const_iterator first,
                           std::map<place, word_tally>::const_iterator last, bool open) {
    auto size = static_cast<size_t>(
        std::count_if(first, last, [&](const auto &one) { return is_open(walk_, one.first, one.second) == open; }));
    mismatch *group = nullptr;
    uint64_t starts = 0;
    for (auto at = first; at != last; ++at) {
        const auto &[where, tally] = *at;
        if (is_open(walk_, where, tally) != open)
            continue;
        if (!group || size <= offsets_shown) {
            group = &found_.emplace_back(mismatch{TY_AUDIT_HIDDEN, open, walk_.known().of(where.content).name, {}});
            group->offset = where.offset;
            group->example = tally.example;
            group->value = tally.value;
            starts = 0;
        }
        group->count += tally.count;
        group->of += tally.of;
        starts += tally.starts;
        group->text = group->descriptor + offset_text(group->offset) +
                      (size > offsets_shown ? " and " + std::to_string(size - 1) + " other offsets" : "") +
                      place_text(where.kind) + ": " + std::to_string(group->count) + " of " +
                      counted(group->of, "word") + ": addresses of live blocks (" + std::to_string(starts) +
                      " of a first byte) that no field names" + (open ? ": a pointer?" : ": remains?") +
                      example_of(group->example, group->value);
    }
}

void mismatches::add_code(const std::map<place, word_tally> &tallies, const program_ranges &programs) {
    for (const auto &[where, tally] : tallies) {
        const program_range *range = programs.find(tally.value);
        mismatch &one = found_.emplace_back(mismatch{
            TY_AUDIT_CODE, false, walk_.known().of(where.content).name, {}, where.offset, tally.count, tally.of});
        one.example = tally.example;
        one.value = tally.value;
        one.text = one.descriptor + offset_text(where.offset) + place_text(where.kind) + ": " +
                   std::to_string(tally.count) + " of " + counted(tally.of, "word") + " lead into " +
                   (range ? range->name : "a library") + ": code or static data" +
                   example_of(tally.example, tally.value);
    }
}

// What looks unreachable may be reached through words that no field names, directly or indirectly.
void mismatches::add_leaks(const std::map<place, word_tally> &hidden) {
    const bool found_from_words =
        std::any_of(hidden.begin(), hidden.end(), [](const auto &one) { return one.second.lost != 0; });
    const char *reached = found_from_words ? ": no field leads there, but perhaps words that no field names ("
                                           : ": nothing leads there (";
    struct sum {
        uint64_t leaks = 0;
        uint64_t all = 0;
        const void *example = nullptr;
    };
    std::map<size_t, sum> sizes;
    walk_.each_block([&](const found_block &block) {
        sum &one = sizes[block.bytes];
        ++one.all;
        if (walk_.types()[block.ordinal] == 0 && ++one.leaks == 1)
            one.example = block.address;
    });
    for (const auto &[bytes, one] : sizes) {
        if (one.leaks == 0)
            continue;
        mismatch &leak = found_.emplace_back(mismatch{TY_AUDIT_LEAK, false, {}, {}});
        leak.count = one.leaks;
        leak.of = one.all;
        leak.bytes = one.leaks * bytes;
        leak.example = one.example;
        leak.text = counted(one.leaks, "block") + " of " + std::to_string(bytes) + " bytes, of " +
                    std::to_string(one.all) + " of that size" + reached + hex(reinterpret_cast<uint64_t>(one.example)) +
                    ")";
    }
}

} // namespace taiyen::pack
