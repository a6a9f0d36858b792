// Memory and the machine's NUMA nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::os {

inline constexpr unsigned numa_nodes_max = 64; // bits of a mask

// Binds memory of the range that is first touched from now on to these nodes: bit n for node n, at least one. Expected:
// TY_E_ARGUMENT (no such node), TY_E_UNSUPPORTED (the kernel has no NUMA, or does not allow it).
ty_status bind_to_nodes(void *address, size_t bytes, uint64_t nodes);

// The nodes to which the memory at an address is bound; 0: not bound. Expected: TY_E_UNSUPPORTED.
ty_status nodes_of(const void *address, uint64_t *nodes);

unsigned current_node(); // the calling thread's node; 0 if the kernel does not say

} // namespace taiyen::os
