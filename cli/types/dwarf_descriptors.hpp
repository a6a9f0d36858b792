// Type descriptors of a program's types, in the terms of the text.
#pragma once

#include "types/dwarf_hints.hpp"
#include "types/dwarf_types.hpp"
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace cli::dwarf {

inline constexpr uint64_t word_bytes = 8;
inline constexpr unsigned depth_max = 2 * nesting_max; // of types in types, including those that are laid out in their
                                                       // parent

enum class field_kind { pointer, reference, place, nested };

struct field {
    uint64_t offset = 0;
    std::string name;
    field_kind kind = field_kind::pointer;
    std::string to;    // a type descriptor; empty: bytes
    std::string here;  // a count, as in the text; empty: one
    std::string there; // as above
    uint64_t tag = 0;
    uint64_t base = 0;
    uint64_t bytes = 8; // that it certainly takes
};

struct note {
    uint64_t offset;
    std::string text;
    bool open; // something is left to do
};

struct descriptor {
    std::string name;
    std::string source;
    uint64_t size = 0;
    std::vector<field> fields; // by offset
    std::vector<note> notes;
    bool trace = false;
    bool moved = false;
};

// What a type holds.
enum class content { none, code, addresses };

// Where a type is laid out in a type descriptor.
struct spot {
    uint64_t offset = 0;
    std::string name;                // of the field: "", "where", "where.x"
    const type *container = nullptr; // of the standard library, that the type is a part of
    uint64_t container_offset = 0;
    unsigned depth = 0;
};

class descriptor_maker {
public:
    descriptor_maker(types &all, hints &given) : types_(all), hints_(given) {}

    // Its name as a pointer's target; empty: bytes. run() describes it, and all that it leads to.
    std::string descriptor_of(const type *one);
    // For the type that a root leads to, or a hint names; for an array, its elements and their number (0: as many as
    // there is room for). False: it is only declared.
    bool descriptor_of_named(const type *one, std::string *name, uint64_t *count);
    // False: failure() has the reason.
    bool run();
    const std::string &failure() const { return failure_; }
    // By name.
    const std::map<std::string, descriptor> &descriptors() const { return descriptors_; }
    size_t open_notes() const;

    // For the rules of containers (dwarf_containers.cpp).
    void add_field(descriptor &to, const spot &at, field_kind kind, const std::string &leads_to,
                   const std::string &there = "");
    void add_place(descriptor &to, const spot &at, uint64_t base);
    void add_note(descriptor &to, uint64_t offset, const std::string &text, bool open = true);
    void add_type(descriptor &to, const type *one, const spot &at);
    void add_members(descriptor &to, const type *one, const spot &at);
    void need_trace(descriptor &to, uint64_t offset, const std::string &why);
    void need_moved(descriptor &to, uint64_t offset, const std::string &why);
    content content_of(const type *one, unsigned depth = 0);
    bool is_bytes(const type *one); // by a hint
    types &all() { return types_; }
    bool refuse(const std::string &why);

private:
    void describe(const type *one);
    void add_array(descriptor &to, const type *one, const spot &at);
    void add_record(descriptor &to, const type *one, const spot &at);
    void add_address(descriptor &to, const type *one, const spot &at, const std::string &here, uint64_t words);
    void lead_to(descriptor &in, field &from, const type *to);
    void note_derived(descriptor &in, const field &from, const type *to);
    void apply(descriptor &in, field &to, const hint &given);
    void apply_here(descriptor &in, field &to, const std::string &name);
    std::string count_of(descriptor &in, const std::string &name, const hint &given, uint64_t times);
    bool find_member(const type *in, const std::string &path, uint64_t *offset, const type **of, unsigned depth = 0);
    bool member_of(descriptor &in, const std::string &path, const hint &given, uint64_t *offset, const type **of);
    void finish(descriptor &one);
    bool check_hints();
    bool check_nesting();
    unsigned depth_of(const std::string &name, std::map<std::string, unsigned> &depths);
    bool spend(); // a step of work; damaged information may ask for endless work

    types &types_;
    hints &hints_;
    std::map<std::string, descriptor> descriptors_;
    std::map<std::string, const type *> described_; // by name
    std::deque<const type *> due_;
    std::map<const type *, content> contents_;
    std::vector<std::string> hintable_;
    const type *current_ = nullptr; // being described
    uint64_t steps_ = 0;
    std::string failure_;
};

// Rules for the standard library's use of addresses. True: the type is done.
bool add_standard(descriptor_maker &maker, descriptor &to, const type &one, const spot &at);
// A pointer within a container that does not lead where its type says. True: it is done.
bool add_standard_pointer(descriptor_maker &maker, descriptor &to, const spot &at);
// Whether the name is that of a type without addresses: compilers omit types that they take for the library's own.
bool is_known_plain(const std::string &name);
// Parts of the standard library that are laid out in the type that contains them, as their names mean nothing to users.
bool is_inner(const std::string &name);

// The text. `from`: the program's name.
std::string text_of(const descriptor_maker &made, const std::vector<std::string> &roots, const std::string &from);
// The elements of an array of arrays, and their number; 0: as many as there is room for.
const type *elements_of(types &all, const type *one, uint64_t *count);
std::string quoted_name(const std::string &name);

} // namespace cli::dwarf
