// Type descriptors prepared for a walk.
#pragma once

#include "descriptor_set.hpp"
#include <map>

namespace taiyen::pack {

struct plan;

// Why an address is dead.
enum class dead_kind { nowhere, unaligned, no_room, bad_end, bad_place, unreachable, foreign_word, other_heap };

struct dead_tally {
    uint64_t count = 0;
    const void *example = nullptr;
    uint64_t value = 0;
    uint64_t wanted = 0; // no_room: the count, and how many there is room for
    uint64_t room = 0;
};

// A field, or (field NULL) what a hook hands over, or a root.
struct step {
    const ty_field *field = nullptr;
    ty_field_kind kind = TY_FIELD_POINTER;
    size_t offset = 0;
    size_t element = word_bytes; // size of one element at this offset
    size_t limit = SIZE_MAX;     // where the next field begins; SIZE_MAX: it is the last
    size_t number = 1;           // of elements, for a fixed count
    plan *to = nullptr;          // NULL: bytes
    uint64_t mask = 0;
    uint64_t other_mask = 0; // of the word at base_offset, or of the end's
    const ty_count *there = nullptr;
    std::string name;   // "TYPE.FIELD", "root NAME"
    uint32_t label = 0; // name of the blocks without type descriptor that it leads to; 0: not needed yet
    uint64_t seen = 0;  // addresses other than NULL
    std::map<dead_kind, dead_tally> dead;
};

struct plan {
    const ty_type *descriptor = nullptr;
    uint32_t id = 0;
    size_t size = 0;
    bool plain = false;
    bool hooked = false;
    const char *lacks = nullptr; // the hook, by its name in a text, that the program has not bound
    dead_tally unhooked;         // objects that were reached although a hook is missing
    std::vector<step> steps;     // all except those that nest plain type descriptors
    step by_hook;
    std::vector<step> nests; // all that nest, plain type descriptors too, by offset: to name what is found
    // Ranges within the object of arrays with a count: elements after the count are not in use.
    std::vector<std::pair<size_t, size_t>> reserves;
};

// The hook, by its name in a text, that the type descriptor needs and that is not bound; NULL: none.
const char *missing_hook(const descriptor_set &set, const ty_type *descriptor);

// The value of a count's integer, times its number; SIZE_MAX if that overflows.
size_t integer_at(const char *object, const ty_count &count);

// What a block holds: a type descriptor's objects, or bytes.
struct content {
    const plan *holds = nullptr; // NULL: bytes
    std::string name;
};

class plans {
public:
    // Prepares all type descriptors of the set.
    explicit plans(const descriptor_set &set);

    // Adds a descriptor that a hook has handed over, if the set has neither it nor another of its name and size. NULL:
    // it is not valid; the error's detail has the reason.
    plan *find(const ty_type *descriptor);
    const content &of(uint32_t id) const { return contents_[id]; }
    uint32_t add_bytes(const std::string &name);
    size_t content_count() const { return contents_.size(); }

    std::deque<plan> all;

private:
    void take(const descriptor_set &set, const ty_type *descriptor);
    void fill(plan &one);

    descriptor_set handed_over_;
    std::unordered_map<const ty_type *, plan *> by_descriptor_;
    std::unordered_map<std::string_view, plan *> by_name_;
    std::deque<content> contents_;
};

} // namespace taiyen::pack
