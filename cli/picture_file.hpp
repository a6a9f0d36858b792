// A file that is there as a whole or as it was before.
#pragma once

#include <string>
#include <taiyen/taiyen.h>

namespace heap_map {

// Writes the bytes under another name in the same folder, makes them durable, and gives them their name: a failure
// leaves what was there. A file that is replaced keeps its permissions; of links, what they lead to is replaced. What
// is no regular file (a pipe, a device) is written to. Errors: TY_E_IO, TY_E_PERMISSION, TY_E_SPACE, TY_E_NOT_FOUND
// with the error detail set.
ty_status write_picture(const std::string &path, const std::string &bytes);

} // namespace heap_map
