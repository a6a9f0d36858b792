// Who may open a file that belongs to another one.
//
// N4: nobody can open a heap's journal or log who cannot open its image.
#pragma once

#include <sys/stat.h>
#include <taiyen/status.h>

namespace taiyen::os {

// The permissions that a file of this owner and group may have beside `like`, when the process `self` has opened both.
mode_t mode_beside(const struct stat &like, uid_t owner, gid_t group, uid_t self);

// Owner, group, permissions and access list become those of `like`, as far as the process may set them; permissions are
// fewer where owner or group are others. TY_E_PERMISSION: they are more than N4 allows, and cannot be taken away.
ty_status follow_access(int fd, const char *path, int like, const char *like_path);

} // namespace taiyen::os
