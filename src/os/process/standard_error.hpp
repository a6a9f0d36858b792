// The standard error stream, for what has no caller to be told.
#pragma once

#include <cstddef>

namespace taiyen::os {

// Writes the text in one go, as far as it goes. Async-signal-safe.
void write_standard_error(const char *text, size_t bytes);

} // namespace taiyen::os
