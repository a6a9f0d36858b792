// How a program goes back without a library: a process that was forked waits to take over, or CRIU dumps and restores
// it. Both work on memory that holds one word for each page (workload of write_pages).
#pragma once

#include "harness.hpp"

namespace bench {

// In milliseconds: to mark a state whose pages have changed, to change them again, and to go back.
struct mark_costs {
    double mark, change, go_back;
};

// Throws if a page does not begin with this word.
void expect_pages(const char *data, const std::vector<uint32_t> &pages, uint64_t value);

// The mark is a forked child, which waits until its parent ends, and then returns from here in its place. For processes
// of in_child, whose result then comes from the last one.
mark_costs fork_and_return(char *data, const std::vector<uint32_t> &pages);

// The mark is a dump of a program with `bytes` of memory, which goes on. It is killed to go back, and restored. Images
// go into the folder, which is made and removed. Throws `unavailable` if criu is missing or refuses.
mark_costs dump_and_restore(const std::string &folder, size_t bytes, const std::vector<uint32_t> &pages);

} // namespace bench
