// Inverts the colours of a whole layer. To invert them again is cheaper than to keep the old ones: so undo keeps a
// logical entry, a *procedure* that is its own reversal, instead of bytes.
#pragma once

#include "drawing.hpp"

namespace draw {

// Registers the procedure with the library; call it once in a process, before a drawing is opened.
void register_procedures();

void invert_layer(edit &e, const layer *l);

} // namespace draw
