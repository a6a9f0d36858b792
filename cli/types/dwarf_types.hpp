// A program's types, as far as type descriptors need them, read from its debug information on demand.
#pragma once

#include "types/dwarf_program.hpp"
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace cli::dwarf {

enum class type_kind {
    nothing, // void
    plain,   // numbers, enumerations
    code,    // an address of code: of a virtual table or a member function; see types::is_code
    function,
    address, // a pointer or a reference
    array,
    record, // struct, class
    either, // union
    unknown // only declared
};

struct type;

struct member {
    std::string name; // empty: a struct or union without a name
    const type *of = nullptr;
    uint64_t offset = 0;
    bool is_base = false;
};

struct type {
    type_kind kind = type_kind::plain;
    std::string name;          // empty: it has none
    std::string source;        // "file:line"
    uint64_t size = 0;         // of an array: see types::size_of
    uint64_t alignment = 0;    // that the program asks for; 0: what its members need
    const type *to = nullptr;  // address, array
    uint64_t count = 0;        // array
    bool open = false;         // array without a length
    bool several = false;      // unknown: there are several definitions of that name
    bool polymorphic = false;  // it has virtual functions itself
    bool has_variants = false; // virtual bases, variant parts: their offsets are not known
    std::vector<member> members;
    std::vector<std::pair<std::string, const type *>> arguments; // of a template
    bool filled = false;
    Dwarf_Die die{};
};

inline constexpr uint64_t size_max = uint64_t{1} << 30;
inline constexpr unsigned nesting_max = 64;

class types {
public:
    explicit types(const program &from) : program_(from) {}

    // Not NULL. `to`, members and the like are valid after fill().
    const type *of(Dwarf_Die die);
    const type &fill(const type *one);
    // Followed by any number of '*'. NULL if there is no such type; `several`: if there are several of that name.
    const type *find(const std::string &name, std::vector<std::string> *several);
    const type *pointer_to(const type *to);
    type *make(type_kind kind, const std::string &name);

    // Whether it is an address of code, such as a pointer to a function.
    bool is_code(const type *one);
    uint64_t size_of(const type *one, unsigned depth = 0);
    uint64_t alignment_of(const type *one, unsigned depth = 0);
    // The name of its type descriptor: "city", "city *".
    std::string name_of(const type *one, unsigned depth = 0);

    // The first damage found; empty: none.
    const std::string &failure() const { return failure_; }
    const type *refuse(const std::string &why);
    const program &from() const { return program_; }

private:
    type *shell(Dwarf_Die die, int tag);
    const type *record_of(Dwarf_Die die, int tag);
    const type *declared(Dwarf_Die die);
    std::string identity_of(Dwarf_Die die) const;
    const std::map<std::string, Dwarf_Die> &identities_of(const std::string &name);
    void fill_array(type &one);
    void fill_record(type &one);
    void add_member(type &to, Dwarf_Die die);
    void add_base(type &to, Dwarf_Die die);

    const program &program_;
    std::deque<type> all_;
    std::unordered_map<const void *, const type *> by_entry_;
    std::map<std::string, const type *> by_identity_;
    std::map<std::string, std::map<std::string, Dwarf_Die>> identities_; // by name
    std::map<const type *, const type *> pointers_;
    std::map<const type *, uint64_t> alignments_;
    std::string failure_;
};

} // namespace cli::dwarf
