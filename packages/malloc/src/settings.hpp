// Parses TAIYEN_MALLOC: words separated by commas, such as "bounds,freed,leaks,quarantine=64M". docs/design/malloc.md
// lists them. An unknown word is reported on standard error and ignored.
#pragma once

#include <taiyen/checks.h>

namespace taiyen::drop_in {

void read_settings(const char *text, ty_check_options *options); // text may be NULL

} // namespace taiyen::drop_in
