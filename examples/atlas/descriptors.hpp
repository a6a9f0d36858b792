// Where the pointers of the atlas are, so that it can be moved.
#pragma once

#include <taiyen/types.h>

namespace demo {

TY_TYPE_DECLARE(atlas);

} // namespace demo
