// The environment variables with which the process was started.
#pragma once

namespace taiyen::os {

// A variable's value; NULL: not set, or the process has more rights than the user who started it (setuid programs), who
// must not control it then. Works before the C library is initialised, for functions that the dynamic linker calls.
const char *start_variable(const char *name);

} // namespace taiyen::os
