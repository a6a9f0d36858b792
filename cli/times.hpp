// Times that options have, and that are printed.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

// "90s", "15m", "36h", "7d"; a number alone is of seconds. False: it is no such time.
bool read_duration(const std::string &text, uint64_t *ms);
// "2026-11-27T08:30:00Z", with a fraction of a second or without; without the Z it is local time. Nanoseconds since
// 1970.
bool read_time(const std::string &text, uint64_t *ns);
std::string time_text(uint64_t ns); // UTC

} // namespace cli
