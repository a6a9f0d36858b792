// Where this process has code and static data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taiyen::pack {

struct program_range {
    uint64_t begin;
    uint64_t end;
    std::string name; // of the file; "the program" for the program itself
};

class program_ranges {
public:
    program_ranges();
    // NULL: the address is in none.
    const program_range *find(uint64_t address) const;

private:
    std::vector<program_range> ranges_; // by address
};

} // namespace taiyen::pack
