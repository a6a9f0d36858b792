#include "file_system.hpp"

#include "../calls/calls.hpp"

#include <linux/magic.h>

namespace taiyen::os {

bool holes_take_memory(const char *path) {
    struct statfs system;
    return sys::statfs(path, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

} // namespace taiyen::os
