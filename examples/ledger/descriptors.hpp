// Where the pointers of the bank and of the branch are, so that they can be moved.
#pragma once

#include <taiyen/types.h>

namespace ledger {

TY_TYPE_DECLARE(bank);
TY_TYPE_DECLARE(branch);

} // namespace ledger
