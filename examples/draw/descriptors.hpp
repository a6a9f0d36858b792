// Where the pointers of the drawing are, so that it can be moved.
#pragma once

#include <taiyen/types.h>

namespace draw {

TY_TYPE_DECLARE(drawing);
TY_TYPE_DECLARE(tree_node);

// The hook in the type descriptor of tree_node: what a node's slots lead to depends on its height.
void trace_slots(ty_tracer *tracer, void *node, void *unused);

} // namespace draw
