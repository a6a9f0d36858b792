// Where the pointers of the bank and of the branch are, so that they can be moved.
#pragma once

#include <taiyen/shapes.h>

namespace ledger {

TY_SHAPE_DECLARE(bank);
TY_SHAPE_DECLARE(branch);

} // namespace ledger
