// A program's debug information: its units, and its types by name. Covers what libdw finds: sections of the program
// itself, separate debug files, those of a .gnu_debugaltlink, and .dwo files.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cli::dwarf {

// A name in the form for lookups: without blanks (compilers differ in "> >" and "T *"), and without a leading "struct".
std::string normal(const std::string &name);

class program {
public:
    program() = default;
    ~program();
    program(const program &) = delete;
    program &operator=(const program &) = delete;

    // False: failure() has the reason.
    bool open(const std::string &path);
    const std::string &failure() const { return failure_; }

    // The full name of a type, with its namespaces; empty: it has none.
    std::string name_of(const Dwarf_Die &die) const;
    // Definitions of that name, including typedefs, in the order of the program.
    const std::vector<Dwarf_Die> &find(const std::string &name) const;
    std::vector<std::string> names() const;
    // Names of the classes that have a class of that name as a base.
    const std::set<std::string> &derived_from(const std::string &name) const;

private:
    struct scope {
        std::string name;  // followed by "::"
        std::string whole; // of the class, for its bases
    };
    bool refuse(const std::string &why);
    bool damaged(const std::string &what);
    bool check_machine(Dwfl_Module *module);
    bool read_shared(Dwarf *dwarf);
    bool read_units(Dwarf *from);
    bool read_unit(Dwarf_Die unit);
    bool missing_dwo(Dwarf_Die unit);
    bool read_children(Dwarf_Die parent, const scope &in, unsigned depth);
    bool read_one(Dwarf_Die die, const scope &in, unsigned depth);
    void note_type(Dwarf_Die die, int tag, const std::string &whole);
    void note_base(Dwarf_Die die, const scope &in);
    std::string whole_name(Dwarf_Die die, const scope &in) const;
    void name_by_typedefs();
    void resolve_bases();

    std::string path_;
    std::string failure_;
    Dwfl *dwfl_ = nullptr;
    const void *last_ = nullptr; // the entry of the unit that was read last
    std::unordered_set<std::string> texts_;
    std::unordered_map<const void *, const std::string *> names_; // by the entry's address
    std::map<std::string, std::vector<Dwarf_Die>> found_;         // by normalised name
    std::vector<Dwarf_Die> typedefs_;
    std::vector<std::pair<std::string, Dwarf_Die>> bases_; // class, the base's type
    std::map<std::string, std::set<std::string>> derived_;
};

// The type in an entry's DW_AT_type. False: it has none.
bool type_of(Dwarf_Die die, Dwarf_Die *type);
// Strips typedefs, const and the like. False: it ends at nothing (void), or in a cycle.
bool peel(Dwarf_Die *die);
bool has_flag(Dwarf_Die die, unsigned name);
// A constant. False: the entry has none.
bool number_of(Dwarf_Die die, unsigned name, uint64_t *number);

} // namespace cli::dwarf
