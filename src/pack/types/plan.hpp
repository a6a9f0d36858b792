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
    size_t element = word_bytes; // size of one of those that stand here
    size_t limit = SIZE_MAX;     // where the next field begins; SIZE_MAX: it is the last
    size_t number = 1;           // that stand here, of a fixed count
    plan *to = nullptr;          // NULL: bytes
    uint64_t mask = 0;
    uint64_t other_mask = 0; // of the word at base_offset, or of the end's
    const ty_count *there = nullptr;
    std::string name;   // "TYPE.FIELD", "root NAME"
    uint32_t label = 0; // what blocks are called that it leads to and that have no type descriptor; 0: not needed yet
    uint64_t seen = 0;  // addresses that are not NULL
    std::map<dead_kind, dead_tally> dead;
};

struct plan {
    const ty_type *descriptor = nullptr;
    uint32_t id = 0;
    size_t size = 0;
    bool plain = false;
    bool hooked = false;
    const char *lacks = nullptr; // which hook, as a text says, that the program has not bound
    dead_tally unhooked;         // objects that were reached so
    std::vector<step> steps;     // but those that nest plain type descriptors
    step by_hook;
    std::vector<step> nests; // all that nest, plain type descriptors too, by offset: for naming what is found
    // Room of arrays with a count, within the object: what lies behind their count is not in use.
    std::vector<std::pair<size_t, size_t>> reserves;
};

// Which hook the type descriptor needs, as a text says, that nobody has bound; NULL: none.
const char *missing_hook(const descriptor_set &set, const ty_type *descriptor);

// What the integer of a count says, times its number; SIZE_MAX where that is too large.
size_t integer_at(const char *object, const ty_count &count);

// What a block holds: a type descriptor's objects, or bytes.
struct content {
    const plan *holds = nullptr; // NULL: bytes
    std::string name;
};

class plans {
public:
    // Of all type descriptors of the set.
    explicit plans(const descriptor_set &set);

    // One that the set does not have, nor another of its name and size, is added: a hook has handed it over. NULL: it
    // cannot be, and the error's detail says why.
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
