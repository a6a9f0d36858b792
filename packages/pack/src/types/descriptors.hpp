// The type descriptors part: where a heap's pointers are, whether the descriptors are right, and what the pointers are
// after a move.
#pragma once

#include "../blocks/blocks.hpp"
#include <taiyen/types.h>

namespace taiyen::pack {

// ty_fix_pointers, and, unless forced, what a pointer audit would have reported about the heap before it moved:
// TY_E_MISMATCH if that had open mismatches, with the first one in the detail. The heap is changed all the same.
ty_status fix_moved_heap(ty_heap *heap, const ty_moves &moves, const ty_types *descriptors, bool force,
                         ty_fixes *fixes);

} // namespace taiyen::pack
