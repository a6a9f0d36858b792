// Detects, by call site, what libc and the C++ run-time library allocate for themselves (M6: that is not the scope's).
#pragma once

#include "scope.hpp"

namespace taiyen::drop_in {

// The result for each call site is cached, unless it depends on that function's own caller.
bool is_kept_out(call_site site);

} // namespace taiyen::drop_in
