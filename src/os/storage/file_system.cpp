#include "file_system.hpp"

#include "../calls/calls.hpp"

#include <linux/magic.h>

namespace taiyen::os {

bool holes_take_memory(const char *path) {
    struct statfs system;
    return sys::statfs(path, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

uint64_t disk_room(const char *path) {
    struct statfs system;
    return sys::statfs(path, &system) == 0 ? system.f_bavail * static_cast<uint64_t>(system.f_bsize) : UINT64_MAX;
}

} // namespace taiyen::os
