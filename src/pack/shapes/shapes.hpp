// The part shapes: where the pointers of a heap are, whether that is so, and what they are after a move.
#pragma once

#include <taiyen/shapes.h>

namespace taiyen::pack {

// ty_fix_pointers, and then a census of the heap, whose base was old_base: TY_E_MISMATCH if it has open findings, with
// the first one in the detail. The heap is then changed all the same.
ty_status fix_and_check(ty_heap *heap, const void *old_base, const ty_shapes *shapes, ty_moved_callback *moved,
                        void *context, ty_fixes *fixes);

} // namespace taiyen::pack
