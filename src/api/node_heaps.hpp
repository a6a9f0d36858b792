// The heaps of the machine's nodes, one each, made when they are asked for.
#pragma once

#include "../heap/heap.hpp"

namespace taiyen {

ty_status node_heap(unsigned node, ty_heap **heap);
// A heap goes away: if it is one of these, the next call makes another.
void forget_node_heap(const ty_heap *heap);

} // namespace taiyen
