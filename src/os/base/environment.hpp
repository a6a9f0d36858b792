// The environment variables that the process was started with.
#pragma once

namespace taiyen::os {

// A variable's value; NULL: it is not set, or the process has more rights than who started it (setuid programs), who
// then must not decide. Works before the C library is initialised, for what the dynamic linker calls.
const char *start_variable(const char *name);

} // namespace taiyen::os
