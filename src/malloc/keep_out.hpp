// What libc and the C++ run-time library allocate for themselves, told by who calls (M6).
#pragma once

#include "scope.hpp"

namespace taiyen::drop_in {

// The answer for each place that calls is found once, and kept, but where it depends on who called that place.
bool is_kept_out(call_site site);

} // namespace taiyen::drop_in
