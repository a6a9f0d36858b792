// Memory and the nodes of the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::os {

inline constexpr unsigned numa_nodes_max = 64; // that a mask has bits for

// What is first touched in the range from now on comes from these nodes alone: bit n for node n, at least one.
// Expected: TY_E_ARGUMENT (no such node), TY_E_UNSUPPORTED (the kernel has no nodes, or does not allow it).
ty_status bind_to_nodes(void *address, size_t bytes, uint64_t nodes);

// The nodes that the memory at an address is bound to; 0: none in particular. Expected: TY_E_UNSUPPORTED.
ty_status nodes_of(const void *address, uint64_t *nodes);

unsigned current_node(); // that this thread runs on just now; 0 where the kernel does not say

} // namespace taiyen::os
