// Metrics for people.
#pragma once

#include <cstdint>
#include <string>

namespace text {

std::string size(uint64_t bytes);   // "45.2 MiB"
std::string count(uint64_t number); // "412,334"
std::string percent(double share);  // "94.1 %"
// A path or name on one line: control characters as \xNN, and a backslash doubled.
std::string printable(const std::string &name);
// Each byte that is not valid UTF-8 becomes U+FFFD: names of files need not be UTF-8.
std::string utf8(const std::string &name);
std::string hex(uint64_t address); // "0x420000000000"
std::string hex(const void *address);
std::string with_article(const std::string &noun);       // "an archive", "a snapshot"
std::string hex_bytes(const std::string &bytes);         // two digits each
std::string counted(uint64_t number, const char *thing); // "1 block", "2 blocks", "3 batches"

} // namespace text
