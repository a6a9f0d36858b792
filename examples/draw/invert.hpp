// Negative colours, for a whole layer. To invert them again is cheaper than to keep the old ones: so undo keeps a
// *procedure* for it, which is its own reversal, instead of bytes.
#pragma once

#include "drawing.hpp"

namespace draw {

// Makes the procedure known to the library; call it once in a process, before a drawing is opened.
void register_procedures();

void invert_layer(edit &e, const layer *l);

} // namespace draw
