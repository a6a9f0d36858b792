// The heaps of the machine's NUMA nodes, one each, created on demand.
#pragma once

#include "src/heap/heap.hpp"

namespace taiyen {

ty_status node_heap(unsigned node, ty_heap **heap);
// Called when a heap ends: if it is one of these, the next call creates another.
void forget_node_heap(const ty_heap *heap);

} // namespace taiyen
