// The standard error stream, for messages that have no caller to return to.
#pragma once

#include <cstddef>

namespace taiyen::os {

// Writes the text with one call, as far as possible. Async-signal-safe.
void write_standard_error(const char *text, size_t bytes);

} // namespace taiyen::os
