// Hints: facts that debug information lacks and a person writes down, one line for a field or a type.
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
    std::string count_field; // the field with the number of objects that it leads to
    std::string end_field;   // the field that leads after the last of them
    std::string used_field;  // how many elements of an array are in use
    std::string place_field; // the base
    uint64_t count = 0;
    uint64_t times = 0;
    uint64_t tag = 0;
};

class hints {
public:
    // False: failure() has the line and the reason.
    bool read_file(const std::string &path);
    bool add(const std::string &line, const std::string &place);
    const std::string &failure() const { return failure_; }

    // For a field or type; NULL if it has none.
    const hint *find(const std::string &target);
    // A hint that was never looked up; NULL if there is none.
    const hint *unused() const;

private:
    bool refuse(const std::string &place, const std::string &why);
    bool read_clause(hint &one, const std::string &clause);
    bool read_count(hint &one, const std::string &text);

    std::map<std::string, hint> all_; // by normalised target
    std::set<std::string> used_;
    std::string failure_;
};

// The name that is most similar; empty: none is.
std::string nearest(const std::string &name, const std::vector<std::string> &names);

} // namespace cli::dwarf
