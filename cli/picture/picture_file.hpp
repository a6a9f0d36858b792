// Replaces a file atomically.
#pragma once

#include <string>
#include <taiyen/taiyen.h>

namespace heap_map {

// Writes the bytes under another name in the same folder, makes them durable, and renames the file: a failure leaves
// what was there. A replaced file keeps its permissions; for a symbolic link, its target is replaced. What is no
// regular file (a pipe, a device) is written to directly. Errors: TY_E_IO, TY_E_PERMISSION, TY_E_SPACE, TY_E_NOT_FOUND
// with the error detail set.
ty_status write_picture(const std::string &path, const std::string &bytes);

} // namespace heap_map
