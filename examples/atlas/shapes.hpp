// Where the pointers of the atlas are, so that it can be moved.
#pragma once

#include <taiyen/shapes.h>

namespace demo {

TY_SHAPE_DECLARE(atlas);

} // namespace demo
