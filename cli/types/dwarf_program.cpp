#include "types/dwarf_program.hpp"

#include "common/text.hpp"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <string_view>
#include <unistd.h>

namespace cli::dwarf {

namespace {

constexpr unsigned entry_depth_max = 128; // of entries in entries
constexpr unsigned chain_max = 64;        // of typedefs of typedefs

bool is_alias(int tag) {
    switch (tag) {
    case DW_TAG_typedef:
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
    case DW_TAG_immutable_type:
    case DW_TAG_packed_type:
    case DW_TAG_shared_type:
        return true;
    default:
        return false;
    }
}

bool is_class(int tag) {
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
           tag == DW_TAG_interface_type;
}

// Entries whose children may be types.
bool is_scope(int tag) {
    return is_class(tag) || tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_subprogram ||
           tag == DW_TAG_lexical_block || tag == DW_TAG_common_block;
}

Dwfl_Callbacks callbacks() {
    Dwfl_Callbacks how{};
    how.find_elf = dwfl_build_id_find_elf;
    how.find_debuginfo = dwfl_standard_find_debuginfo;
    how.section_address = dwfl_offline_section_address;
    return how;
}

} // namespace

std::string normal(const std::string &name) {
    std::string_view rest = name;
    for (const std::string_view word : {"struct ", "class ", "union ", "enum "})
        if (rest.starts_with(word))
            rest.remove_prefix(word.size());
    std::string text;
    std::copy_if(rest.begin(), rest.end(), std::back_inserter(text), [](char c) { return c != ' ' && c != '\t'; });
    return text;
}

bool type_of(Dwarf_Die die, Dwarf_Die *type) {
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(&die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, type);
}

bool peel(Dwarf_Die *die) {
    for (unsigned n = 0; n < chain_max; ++n) {
        if (!is_alias(dwarf_tag(die)))
            return true;
        Dwarf_Die type;
        if (!type_of(*die, &type))
            return false;
        *die = type;
    }
    return false;
}

bool has_flag(Dwarf_Die die, unsigned name) {
    Dwarf_Attribute attribute;
    bool flag = false;
    return dwarf_attr(&die, name, &attribute) && dwarf_formflag(&attribute, &flag) == 0 && flag;
}

bool number_of(Dwarf_Die die, unsigned name, uint64_t *number) {
    Dwarf_Attribute attribute;
    Dwarf_Word word = 0;
    if (!dwarf_attr_integrate(&die, name, &attribute) || dwarf_formudata(&attribute, &word) != 0)
        return false;
    *number = word;
    return true;
}

program::~program() {
    if (dwfl_)
        dwfl_end(dwfl_);
}

bool program::refuse(const std::string &why) {
    if (failure_.empty())
        failure_ = text::printable(path_) + ": " + why;
    return false;
}

bool program::damaged(const std::string &what) {
    return refuse("its debug information is damaged: " + what);
}

bool program::open(const std::string &path) {
    static const Dwfl_Callbacks how = callbacks();
    path_ = path;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return refuse(std::string("it cannot be read: ") + std::strerror(errno));
    dwfl_ = dwfl_begin(&how);
    Dwfl_Module *module = dwfl_ ? dwfl_report_offline(dwfl_, path.c_str(), path.c_str(), file) : nullptr;
    if (!module) {
        const std::string why = dwfl_errmsg(-1);
        ::close(file);
        return refuse("it is no program or library that can be read: " + why);
    }
    dwfl_report_end(dwfl_, nullptr, nullptr);
    if (!check_machine(module))
        return false;
    Dwarf_Addr bias = 0;
    Dwarf *dwarf = dwfl_module_getdwarf(module, &bias);
    if (!dwarf)
        return refuse(std::string("it has no debug information (") + dwfl_errmsg(-1) +
                      "): compile it with -g, or put its separate debug file where debuggers find it");
    if (!read_shared(dwarf) || !read_units(dwarf))
        return false;
    if (found_.empty())
        return refuse("it has no debug information of types: compile it with -g");
    name_by_typedefs();
    resolve_bases();
    return true;
}

// Information shared by several programs, in a file that .gnu_debugaltlink names.
bool program::read_shared(Dwarf *dwarf) {
    const char *name = nullptr;
    const void *identity = nullptr;
    if (dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &identity) <= 0)
        return true;
    Dwarf *shared = dwarf_getalt(dwarf);
    return shared ? read_units(shared)
                  : refuse("a part of its debug information is missing: " + text::printable(name) +
                           ", which it shares with others (.gnu_debugaltlink): put it there");
}

bool program::check_machine(Dwfl_Module *module) {
    GElf_Addr bias = 0;
    GElf_Ehdr header;
    Elf *elf = dwfl_module_getelf(module, &bias);
    if (!elf || !gelf_getehdr(elf, &header))
        return refuse(std::string("it is no program or library that can be read: ") + dwfl_errmsg(-1));
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return refuse("it is for a machine whose addresses are not 64 bits, the lowest byte first");
    return true;
}

bool program::read_units(Dwarf *from) {
    Dwarf_CU *unit = nullptr;
    Dwarf_CU *next = nullptr;
    Dwarf_Die entry, sub;
    uint8_t kind = 0;
    int result;
    while ((result = dwarf_get_units(from, unit, &next, nullptr, &kind, &entry, &sub)) == 0) {
        unit = next;
        if (kind == DW_UT_skeleton && !sub.addr)
            return missing_dwo(entry);
        if (!read_unit(kind == DW_UT_skeleton ? sub : entry))
            return false;
    }
    return result == 1 ? true : damaged(dwarf_errmsg(-1));
}

bool program::missing_dwo(Dwarf_Die unit) {
    Dwarf_Attribute attribute;
    auto text_of = [&](unsigned name) {
        const char *text = dwarf_attr(&unit, name, &attribute) ? dwarf_formstring(&attribute) : nullptr;
        return std::string(text ? text : "");
    };
    std::string name = text_of(DW_AT_dwo_name);
    if (name.empty())
        name = text_of(DW_AT_GNU_dwo_name);
    const std::string folder = text_of(DW_AT_comp_dir);
    if (!name.starts_with("/") && !folder.empty())
        name = folder + "/" + name;
    return refuse("a part of its debug information is missing, or does not belong to it: " + text::printable(name) +
                  " (-gsplit-dwarf): put it there, or compile without -gsplit-dwarf");
}

bool program::read_unit(Dwarf_Die unit) {
    if (!unit.addr)
        return damaged("a unit without an entry");
    last_ = unit.addr;
    return read_children(unit, {}, 0);
}

// Each entry must lie after the one before it, so that damaged links cannot form a cycle.
bool program::read_children(Dwarf_Die parent, const scope &in, unsigned depth) {
    if (depth > entry_depth_max)
        return damaged("entries are nested deeper than 128");
    Dwarf_Die die;
    int result = dwarf_child(&parent, &die);
    while (result == 0) {
        if (die.addr <= last_)
            return damaged("an entry lies before the one that leads to it");
        last_ = die.addr;
        if (!read_one(die, in, depth))
            return false;
        Dwarf_Die next;
        result = dwarf_siblingof(&die, &next);
        die = next;
    }
    return result == 1 ? true : damaged(dwarf_errmsg(-1));
}

bool program::read_one(Dwarf_Die die, const scope &in, unsigned depth) {
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_invalid)
        return damaged("an entry of no kind");
    if (tag == DW_TAG_inheritance)
        note_base(die, in);
    const bool type = is_class(tag) || tag == DW_TAG_typedef || tag == DW_TAG_base_type;
    if (!type && !is_scope(tag))
        return true;
    const std::string whole = whole_name(die, in);
    if (type)
        note_type(die, tag, whole);
    if (!is_scope(tag) || dwarf_haschildren(&die) <= 0)
        return true;
    const bool unnamed = whole.empty() || tag == DW_TAG_lexical_block;
    return read_children(die, {unnamed ? in.name : whole + "::", whole}, depth + 1);
}

// A definition apart from its declaration has the declaration's name.
std::string program::whole_name(Dwarf_Die die, const scope &in) const {
    Dwarf_Attribute attribute;
    Dwarf_Die declaration;
    if (dwarf_attr(&die, DW_AT_specification, &attribute) && dwarf_formref_die(&attribute, &declaration)) {
        std::string name = name_of(declaration);
        if (!name.empty())
            return name;
    }
    const char *name = dwarf_diename(&die);
    if (!name && dwarf_tag(&die) == DW_TAG_namespace)
        name = "(anonymous namespace)";
    return name && *name ? in.name + name : std::string();
}

void program::note_type(Dwarf_Die die, int tag, const std::string &whole) {
    if (tag == DW_TAG_typedef)
        typedefs_.push_back(die);
    if (whole.empty())
        return;
    names_[die.addr] = &*texts_.insert(whole).first;
    if (!has_flag(die, DW_AT_declaration))
        found_[normal(whole)].push_back(die);
}

void program::note_base(Dwarf_Die die, const scope &in) {
    Dwarf_Die base;
    if (!in.whole.empty() && type_of(die, &base) && peel(&base))
        bases_.emplace_back(in.whole, base);
}

// typedef struct { ... } name;
void program::name_by_typedefs() {
    for (const Dwarf_Die &one : typedefs_) {
        Dwarf_Die type;
        if (!type_of(one, &type) || !is_class(dwarf_tag(&type)) || names_.contains(type.addr))
            continue;
        if (auto name = names_.find(one.addr); name != names_.end())
            names_[type.addr] = name->second;
    }
}

void program::resolve_bases() {
    for (const auto &[derived, base] : bases_)
        if (std::string name = name_of(base); !name.empty())
            derived_[name].insert(derived);
}

std::string program::name_of(const Dwarf_Die &die) const {
    const auto found = names_.find(die.addr);
    return found == names_.end() ? std::string() : *found->second;
}

const std::vector<Dwarf_Die> &program::find(const std::string &name) const {
    static const std::vector<Dwarf_Die> none;
    const auto found = found_.find(normal(name));
    return found == found_.end() ? none : found->second;
}

std::vector<std::string> program::names() const {
    std::set<std::string> all;
    for (const auto &[key, dies] : found_)
        all.insert(name_of(dies.front()));
    return {all.begin(), all.end()};
}

const std::set<std::string> &program::derived_from(const std::string &name) const {
    static const std::set<std::string> none;
    const auto found = derived_.find(name);
    return found == derived_.end() ? none : found->second;
}

} // namespace cli::dwarf
