// What a file system does differently.
#pragma once

#include <cstdint>

namespace taiyen::os {

// Whether a hole of the file gets a page of the file system when it is only read through a mapping, as on tmpfs. Where
// that has no more, the access is a SIGBUS. False where it cannot be told.
bool holes_take_memory(const char *path);

// How many bytes of the file system that path is on an ordinary user may still take. UINT64_MAX where it cannot be
// told.
uint64_t disk_room(const char *path);

} // namespace taiyen::os
