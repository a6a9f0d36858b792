// Differences between file systems.
#pragma once

#include <cstdint>

namespace taiyen::os {

// Whether reading a hole of the file through a mapping allocates a page of the file system, as on tmpfs. If none is
// left, the access is a SIGBUS. False if not known.
bool holes_take_memory(const char *path);

// Bytes that an ordinary user may still allocate on path's file system. UINT64_MAX if not known.
uint64_t disk_room(const char *path);

} // namespace taiyen::os
