// Who may open a file that belongs to another one.
//
// N4: no user can open a heap's journal or log who cannot open its image.
#pragma once

#include <sys/stat.h>
#include <taiyen/status.h>

namespace taiyen::os {

// The permissions that a file with this owner and group may have beside `like`, if the process `self` has opened both.
mode_t mode_beside(const struct stat &like, uid_t owner, gid_t group, uid_t self);

// Gives a file the owner, group, permissions and access control list of `like`, as far as the process may set them;
// fewer permissions if owner or group differ. TY_E_PERMISSION: it has more than N4 allows, and they cannot be revoked.
ty_status follow_access(int fd, const char *path, int like, const char *like_path);

} // namespace taiyen::os
