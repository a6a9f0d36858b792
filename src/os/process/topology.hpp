// What this machine looks like. Found once, cheap to ask.
#pragma once

#include <cstddef>

namespace taiyen::os {

struct topology {
    size_t cache_line_bytes; // 64 where the system does not say
    size_t page_bytes;
    unsigned cores;      // that this process may use
    unsigned numa_nodes; // at least 1
    size_t memory_bytes; // physical, or the control group's limit where that is lower
};
const topology &machine();
topology survey_machine(); // what the first machine() does; where the kernel refuses to say, a modest guess

} // namespace taiyen::os
