#include "file_access.hpp"

#include "../calls/calls.hpp"
#include "file_failure.hpp"

#include <cstring>

namespace taiyen::os {
namespace {

constexpr const char *operation = "set the permissions of the file";
constexpr const char *acl_name = "system.posix_acl_access";
constexpr mode_t permissions = 0777;
constexpr mode_t group_and_others = 0077;

// An access control list, as the kernel returns it. If there is one, the mode's group bits are its mask.
struct access_list {
    char bytes[1024];
    ssize_t size; // 0: none

    void read(int fd) {
        size = sys::fgetxattr(fd, acl_name, bytes, sizeof bytes);
        is_known = size >= 0 || errno == ENODATA || errno == EOPNOTSUPP;
        size = size < 0 ? 0 : size;
    }
    bool is_none() const { return is_known && size == 0; }
    bool equals(const access_list &other) const {
        return is_known && other.is_known && size == other.size && memcmp(bytes, other.bytes, size_t(size)) == 0;
    }
    bool is_known;
};

bool same_owners(const struct stat &a, const struct stat &b) {
    return a.st_uid == b.st_uid && a.st_gid == b.st_gid;
}

// Gives the file the access control list of `like`. False: it has another one, which now only its mask can restrict.
bool follow_list(int fd, const access_list &own, const access_list &like, bool same) {
    if (like.is_none())
        return own.is_none() || sys::fremovexattr(fd, acl_name) == 0;
    return like.is_known && same && sys::fsetxattr(fd, acl_name, like.bytes, size_t(like.size)) == 0;
}

ty_status too_open(const char *path, const struct stat &now, const char *like_path, const struct stat &like) {
    return failure(TY_E_PERMISSION, "use a file that more people can open (mode %03o, owner %u) than its image",
                   now.st_mode & permissions, now.st_uid)
        .at(path)
        .remedy("chown %u:%u and chmod %03o it, as the image is: %s", like.st_uid, like.st_gid,
                like.st_mode & permissions, like_path);
}

} // namespace

// N4: no more users may open the file than the image. The file's owner may be in the image's group or not, as may all
// other users: of the classes to which a user could belong for the image, the one with the fewest permissions counts.
mode_t mode_beside(const struct stat &like, uid_t owner, gid_t group, uid_t self) {
    const mode_t mode = like.st_mode & permissions;
    const mode_t u = mode >> 6, g = mode >> 3 & 7, o = mode & 7;
    const bool same_owner = owner == like.st_uid, same_group = group == like.st_gid;
    if (same_owner && same_group)
        return mode;
    const mode_t of_owner = same_owner ? u : owner == self || owner == 0 ? mode_t{6} : (g | o);
    const mode_t ceiling = same_owner ? mode_t{7} : u; // the image's owner is now in one of the other classes
    const mode_t of_group = same_group ? g : g & o;
    const mode_t of_others = same_group ? o : g & o;
    return of_owner << 6 | (of_group & ceiling) << 3 | (of_others & ceiling);
}

ty_status follow_access(int fd, const char *path, int like_fd, const char *like_path) {
    struct stat like, now;
    if (sys::fstat(like_fd, &like) != 0)
        return file_failure(operation, like_path, UINT64_MAX, errno);
    if (sys::fstat(fd, &now) != 0)
        return file_failure(operation, path, UINT64_MAX, errno);
    access_list list_of_like, list;
    list_of_like.read(like_fd);
    list.read(fd);
    if (same_owners(now, like) && list.equals(list_of_like) && ((now.st_mode ^ like.st_mode) & permissions) == 0)
        return TY_OK;
    // Failures show in the check at the end. Before the owner changes: no permissions for group and others.
    static_cast<void>(sys::fchmod(fd, now.st_mode & permissions & ~group_and_others));
    if (sys::fchown(fd, like.st_uid, like.st_gid) != 0)
        static_cast<void>(sys::fchown(fd, static_cast<uid_t>(-1), like.st_gid));
    if (sys::fstat(fd, &now) != 0)
        return file_failure(operation, path, UINT64_MAX, errno);
    mode_t mode = mode_beside(like, now.st_uid, now.st_gid, ::geteuid());
    if (!follow_list(fd, list, list_of_like, same_owners(now, like)))
        mode &= ~group_and_others;
    static_cast<void>(sys::fchmod(fd, mode));
    if (sys::fstat(fd, &now) != 0)
        return file_failure(operation, path, UINT64_MAX, errno);
    return (now.st_mode & permissions & ~mode) == 0 ? TY_OK : too_open(path, now, like_path, like);
}

} // namespace taiyen::os
