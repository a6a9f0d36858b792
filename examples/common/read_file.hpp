// A whole file as text; compressed files (gzip) are unpacked.
#pragma once

#include <string>

namespace demo {

// Throws with the reason if it cannot be read.
std::string read_whole(const std::string &path);

} // namespace demo
