// Times in options and in output.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

// "90s", "15m", "36h", "7d"; a number alone means seconds. False: it is not such a time.
bool read_duration(const std::string &text, uint64_t *ms);
// "2026-11-27T08:30:00Z", with or without a fraction of a second; without the Z it is local time. Nanoseconds since
// 1970.
bool read_time(const std::string &text, uint64_t *ns);
std::string time_text(uint64_t ns); // UTC
uint64_t steady_ns();               // of a clock that nobody sets

} // namespace cli
