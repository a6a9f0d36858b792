// The levels of a control group that have a limit: shared by memory_available.cpp and memory_group.cpp.
#pragma once

#include "memory_available.hpp"

namespace taiyen::os {

// Calls back for the group and each one above it that limits memory.
using group_level = void (*)(void *context, const memory_group &group, const char *folder, uint64_t limit);
void each_group_limit(const memory_group &group, void *context, group_level level);

// Reads a number from a file of a group. False: no such file, or no number.
bool read_group_number(const char *folder, const char *file, uint64_t *number);
bool read_group_text(const char *folder, const char *file, char *text, size_t text_bytes);

} // namespace taiyen::os
