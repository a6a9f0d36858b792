// The part shapes: where the pointers of a heap are, whether that is so, and what they are after a move.
#pragma once

#include "../blocks/blocks.hpp"
#include <taiyen/shapes.h>

namespace taiyen::pack {

// ty_fix_pointers, and, if nothing is forced, what a census would have said of the heap before it moved: TY_E_MISMATCH
// if that had open findings, with the first one in the detail. The heap is then changed all the same.
ty_status fix_moved_heap(ty_heap *heap, const ty_moves &moves, const ty_shapes *shapes, bool force, ty_fixes *fixes);

} // namespace taiyen::pack
