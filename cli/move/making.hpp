// Changes the kind of a heap in place.
#pragma once

#include "commands.hpp"

namespace cli {

// For an existing heap, for writing.
ty_open_options writing_options(const heap_files &files);
// Changes a heap of kind `from` to the kind in the options, by one open or several.
ty_status change_kind(const heap_files &files, ty_kind from, const ty_open_options &wanted);

} // namespace cli
