// Numbers in options, and those that commands share.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

inline constexpr uint64_t page_bytes = 4096; // as a heap has them, whatever the machine has

// "500", "64K", "1M", "2G", "1T": multiples of 1,024. False: it is not such a number.
bool read_size(const std::string &text, uint64_t *number);
bool read_whole(const std::string &text, int64_t least, int64_t most, int64_t *number);
// "0x420000000000", or decimal.
bool read_address(const std::string &text, uint64_t *address);
// Prints that an option has an invalid value; returns false.
bool refuse_value(const char *option, const std::string &value, const char *wanted);

} // namespace cli
