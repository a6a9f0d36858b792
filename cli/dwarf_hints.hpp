// What debug information does not know, as a person tells it: a line for a field, or for a type.
//
//     TYPE.FIELD: CLAUSE, CLAUSE...          # a comment
//     TYPE: bytes, trace, moved
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace cli::dwarf {

struct hint {
    std::string target; // as it was written: "demo::atlas.buckets"
    std::string place;  // where it was written
    bool bytes = false; // what it leads to holds no addresses
    bool block = false; // as many as the block has room for
    bool reference = false;
    bool trace = false; // the program has this hook
    bool moved = false;
    std::string to;          // a type
    std::string count_field; // that says how many it leads to
    std::string end_field;   // that leads behind the last of them
    std::string used_field;  // how many of an array are in use
    std::string place_field; // the base
    uint64_t count = 0;
    uint64_t times = 0;
    uint64_t tag = 0;
};

class hints {
public:
    // False: the failure tells which line, and why.
    bool read_file(const std::string &path);
    bool add(const std::string &line, const std::string &place);
    const std::string &failure() const { return failure_; }

    // Of a field or type; NULL: there is none.
    const hint *find(const std::string &target);
    // One that nothing has asked for; NULL: there is none.
    const hint *unused() const;

private:
    bool refuse(const std::string &place, const std::string &why);
    bool read_clause(hint &one, const std::string &clause);
    bool read_count(hint &one, const std::string &text);

    std::map<std::string, hint> all_; // by normal target
    std::set<std::string> used_;
    std::string failure_;
};

// That of the names that is most like the one; empty: none is.
std::string nearest(const std::string &name, const std::vector<std::string> &names);

} // namespace cli::dwarf
