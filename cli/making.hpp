// Kinds of heaps changed in place.
#pragma once

#include "commands.hpp"

namespace cli {

// Of a heap that exists, for writing.
ty_open_options writing_options(const heap_files &files);
// A heap of kind `from` becomes of the kind that the options want, by one open or several.
ty_status change_kind(const heap_files &files, ty_kind from, const ty_open_options &wanted);

} // namespace cli
