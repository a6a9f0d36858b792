// Restarts the program at addresses that are the same in each run.
#pragma once

#include <taiyen/status.h>

namespace taiyen::os {

// Returns TY_OK if the process was started without randomised addresses; otherwise restarts the program so, with these
// arguments, and does not return. Expected: TY_E_UNSUPPORTED (the system does not allow it), TY_E_MEMORY.
ty_status start_without_randomisation(char *const *arguments);

} // namespace taiyen::os
