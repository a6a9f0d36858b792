// The output of --json: one document per file or entry, each on its own line.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <taiyen/taiyen.h>

namespace cli::json {

using document = nlohmann::ordered_json;

// 64-bit integers are strings: readers that keep numbers as doubles have only 53 bits.
std::string wide(uint64_t number);
std::string identity(const uint8_t (&bytes)[16]);
document classes(const std::vector<ty_class_stats> &classes);
// The thread's last failure, from a call that returned this status.
document error(ty_status status);
void print(const document &one);

} // namespace cli::json
