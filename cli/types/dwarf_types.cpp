#include "types/dwarf_types.hpp"

#include <algorithm>
#include <dwarf.h>

namespace cli::dwarf {

namespace {

// libdw's own call for this aborts the program if split debug information has no line table, and takes the first file
// of DWARF 5, number 0, for none.
const char *file_of(Dwarf_Die die) {
    uint64_t number = 0;
    Dwarf_Half version = 0;
    Dwarf_Die unit;
    Dwarf_Files *files = nullptr;
    size_t count = 0;
    if (!number_of(die, DW_AT_decl_file, &number) ||
        dwarf_cu_info(die.cu, &version, nullptr, &unit, nullptr, nullptr, nullptr, nullptr) != 0 ||
        (number == 0 && version < 5) || dwarf_getsrcfiles(&unit, &files, &count) != 0 || !files || number >= count)
        return nullptr;
    return dwarf_filesrc(files, number, nullptr, nullptr);
}

std::string source_of(Dwarf_Die die) {
    const char *path = file_of(die);
    uint64_t line = 0;
    if (!number_of(die, DW_AT_decl_line, &line))
        return "";
    const std::string name = path ? path : "line";
    return name.substr(name.rfind('/') + 1) + ":" + std::to_string(line);
}

type_kind kind_of(int tag) {
    switch (tag) {
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        return type_kind::address;
    case DW_TAG_array_type:
        return type_kind::array;
    case DW_TAG_subroutine_type:
        return type_kind::function;
    default:
        return type_kind::plain;
    }
}

bool is_record(int tag) {
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_interface_type;
}

// A member's offset. False: it is computed by code.
bool offset_of(Dwarf_Die die, uint64_t *offset) {
    Dwarf_Attribute attribute;
    *offset = 0;
    if (!dwarf_attr(&die, DW_AT_data_member_location, &attribute))
        return true;
    Dwarf_Word number = 0;
    if (dwarf_formudata(&attribute, &number) == 0) {
        *offset = number;
        return true;
    }
    Dwarf_Op *operations = nullptr;
    size_t count = 0;
    if (dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1 ||
        operations[0].atom != DW_OP_plus_uconst)
        return false;
    *offset = operations[0].number;
    return true;
}

// Calls a function for each child of an entry; children follow one another.
template <class F>
bool each_child(Dwarf_Die parent, F call) {
    Dwarf_Die die;
    int result = dwarf_child(&parent, &die);
    while (result == 0) {
        call(die);
        Dwarf_Die next;
        result = dwarf_siblingof(&die, &next);
        if (result == 0 && next.addr <= die.addr)
            return false;
        die = next;
    }
    return result == 1;
}

// The length of one dimension. False: it has none.
bool length_of(Dwarf_Die die, uint64_t *length) {
    uint64_t upper = 0;
    if (number_of(die, DW_AT_count, length))
        return *length != 0 && *length != UINT64_MAX && *length != UINT32_MAX;
    if (!number_of(die, DW_AT_upper_bound, &upper) || upper == UINT64_MAX || upper == UINT32_MAX)
        return false;
    *length = upper + 1;
    return true;
}

} // namespace

const type *types::refuse(const std::string &why) {
    if (failure_.empty())
        failure_ = why;
    return make(type_kind::unknown, "");
}

type *types::make(type_kind kind, const std::string &name) {
    type &one = all_.emplace_back();
    one.kind = kind;
    one.name = name;
    one.filled = true;
    one.size = kind == type_kind::address || kind == type_kind::code ? 8 : 0;
    return &one;
}

const type *types::pointer_to(const type *to) {
    const type *&known = pointers_[to];
    if (!known) {
        type *one = make(type_kind::address, "");
        one->to = to;
        known = one;
    }
    return known;
}

const type *types::of(Dwarf_Die die) {
    if (!peel(&die)) {
        static const type nothing = [] {
            type one;
            one.kind = type_kind::nothing;
            one.filled = true;
            return one;
        }();
        return &nothing;
    }
    if (const auto known = by_entry_.find(die.addr); known != by_entry_.end())
        return known->second;
    const int tag = dwarf_tag(&die);
    const type *one = is_record(tag) || tag == DW_TAG_union_type ? record_of(die, tag) : shell(die, tag);
    by_entry_[die.addr] = one;
    return one;
}

type *types::shell(Dwarf_Die die, int tag) {
    type *one = make(kind_of(tag), "");
    uint64_t size = 0;
    if (number_of(die, DW_AT_byte_size, &size))
        one->size = size;
    one->die = die;
    one->filled = one->kind == type_kind::plain || one->kind == type_kind::function;
    Dwarf_Die function;
    if (tag == DW_TAG_ptr_to_member_type) { // to a data member: a distance
        const bool code = type_of(die, &function) && peel(&function) && dwarf_tag(&function) == DW_TAG_subroutine_type;
        one->kind = code ? type_kind::code : type_kind::plain;
        one->size = code ? 16 : 8;
    }
    const char *name = one->kind == type_kind::plain ? dwarf_diename(&die) : nullptr;
    one->name = name ? name : "";
    return one;
}

// Two entries with one identity are one type.
std::string types::identity_of(Dwarf_Die die) const {
    uint64_t size = 0;
    number_of(die, DW_AT_byte_size, &size);
    return source_of(die) + " " + std::to_string(size);
}

const std::map<std::string, Dwarf_Die> &types::identities_of(const std::string &name) {
    auto [known, fresh] = identities_.try_emplace(name);
    if (!fresh)
        return known->second;
    for (Dwarf_Die die : program_.find(name)) {
        if (!peel(&die) || program_.name_of(die) != name)
            continue;
        if (const int tag = dwarf_tag(&die); is_record(tag) || tag == DW_TAG_union_type)
            known->second.try_emplace(identity_of(die), die);
    }
    return known->second;
}

const type *types::declared(Dwarf_Die die) {
    const std::string name = program_.name_of(die);
    const std::map<std::string, Dwarf_Die> &definitions = identities_of(name);
    if (definitions.size() == 1)
        return of(definitions.begin()->second);
    type *one = make(type_kind::unknown, name.empty() ? "(no name)" : name);
    one->several = !definitions.empty();
    return one;
}

const type *types::record_of(Dwarf_Die die, int tag) {
    if (has_flag(die, DW_AT_declaration))
        return declared(die);
    const std::string name = program_.name_of(die);
    const std::string identity = name + " " + identity_of(die);
    if (!name.empty())
        if (const auto known = by_identity_.find(identity); known != by_identity_.end())
            return known->second;
    type *one = make(is_record(tag) ? type_kind::record : type_kind::either, name);
    one->die = die;
    one->filled = false;
    one->source = source_of(die);
    number_of(die, DW_AT_byte_size, &one->size);
    number_of(die, DW_AT_alignment, &one->alignment);
    if (!name.empty()) {
        by_identity_[identity] = one;
        if (identities_of(name).size() > 1)
            one->name += " (" + one->source + ")";
    }
    return one;
}

const type &types::fill(const type *given) {
    if (given->filled)
        return *given;
    type &one = const_cast<type &>(*given); // all of them are in all_
    one.filled = true;
    Dwarf_Die to;
    if (one.kind == type_kind::address)
        one.to = type_of(one.die, &to) ? of(to) : make(type_kind::nothing, "");
    else if (one.kind == type_kind::array)
        fill_array(one);
    else
        fill_record(one);
    return one;
}

void types::fill_array(type &one) {
    Dwarf_Die to;
    one.to = type_of(one.die, &to) ? of(to) : refuse("an array of nothing");
    one.count = 1;
    const bool sound = each_child(one.die, [&](Dwarf_Die die) {
        uint64_t length = 0;
        const int tag = dwarf_tag(&die);
        if (tag == DW_TAG_enumeration_type)
            one.open = true;
        if (tag != DW_TAG_subrange_type && tag != DW_TAG_generic_subrange)
            return;
        if (!length_of(die, &length))
            one.open = true;
        else if (__builtin_mul_overflow(one.count, length, &one.count))
            refuse("an array is too long");
    });
    if (!sound)
        refuse("the dimensions of an array");
}

void types::fill_record(type &one) {
    const bool sound = each_child(one.die, [&](Dwarf_Die die) {
        Dwarf_Die argument;
        const char *name;
        switch (dwarf_tag(&die)) {
        case DW_TAG_member:
            return add_member(one, die);
        case DW_TAG_inheritance:
            return add_base(one, die);
        case DW_TAG_variant_part:
            one.has_variants = true;
            return;
        case DW_TAG_template_type_parameter:
            name = dwarf_diename(&die);
            if (name && type_of(die, &argument))
                one.arguments.emplace_back(name, of(argument));
            return;
        default:
            return;
        }
    });
    if (!sound)
        refuse("the members of " + one.name);
}

void types::add_member(type &to, Dwarf_Die die) {
    Dwarf_Die of_type;
    uint64_t ignored = 0;
    if (has_flag(die, DW_AT_external) || has_flag(die, DW_AT_declaration)) // static
        return;
    if (number_of(die, DW_AT_bit_size, &ignored))
        return;
    member one;
    const char *name = dwarf_diename(&die);
    one.name = name ? name : "";
    if (!type_of(die, &of_type)) {
        refuse("a member of " + to.name + " has no type");
        return;
    }
    if (!offset_of(die, &one.offset)) {
        to.has_variants = true;
        return;
    }
    const bool table = one.name.starts_with("_vptr");
    one.of = table ? make(type_kind::code, "") : of(of_type);
    to.polymorphic |= table;
    to.members.push_back(std::move(one));
}

void types::add_base(type &to, Dwarf_Die die) {
    Dwarf_Die base;
    uint64_t is_virtual = 0;
    number_of(die, DW_AT_virtuality, &is_virtual);
    member one;
    one.is_base = true;
    if (is_virtual != 0 || !offset_of(die, &one.offset)) {
        to.has_variants = true;
        return;
    }
    if (!type_of(die, &base)) {
        refuse("a base of " + to.name + " has no type");
        return;
    }
    one.of = of(base);
    one.name = one.of->name;
    to.members.push_back(std::move(one));
}

} // namespace cli::dwarf
