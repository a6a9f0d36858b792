// Properties of this machine. Found once, then cheap to read.
#pragma once

#include <cstddef>

namespace taiyen::os {

struct topology {
    size_t cache_line_bytes; // 64 if the system does not say
    size_t page_bytes;
    unsigned cores;      // usable by this process
    unsigned numa_nodes; // at least 1
    size_t memory_bytes; // physical, or the control group's limit if lower
};
const topology &machine();
topology survey_machine(); // the work of the first machine(); conservative defaults for what the kernel does not say

} // namespace taiyen::os
