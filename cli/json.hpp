// What --json prints: one document a file or entry, each on a line of its own.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <taiyen/taiyen.h>

namespace cli::json {

using document = nlohmann::ordered_json;

// Whole numbers of 64 bits are strings: readers that keep numbers as doubles have 53 bits for them.
std::string wide(uint64_t number);
std::string identity(const uint8_t (&bytes)[16]);
document classes(const std::vector<ty_class_stats> &classes);
// The thread's last failure, of a call that gave this status.
document error(ty_status status);
void print(const document &one);

} // namespace cli::json
