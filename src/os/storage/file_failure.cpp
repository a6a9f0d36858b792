#include "file_failure.hpp"

#include <cerrno>

namespace taiyen::os {

const char *remedy_for(int error) {
    switch (error) {
    case ENOSPC:
        return "free space on this file system, and try again";
    case EDQUOT:
        return "free space, or have the disk quota raised, and try again";
    case EACCES:
    case EPERM:
        return "check owner and permissions of the file and its folder";
    case EROFS:
        return "the file system is mounted read-only: open for reading only, or use another folder";
    case ENOENT:
        return "check the path";
    case EEXIST:
        return "choose another name, or remove the file first";
    case EMFILE:
        return "close files, or raise the limit: ulimit -n";
    case ENFILE:
        return "the whole system is out of file handles: raise sysctl fs.file-max";
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return "check the folders in the path";
    case EFBIG:
        return "the file system or a limit (ulimit -f) does not allow a file of this size";
    case EXDEV:
        return "both names must be on one file system";
    case EIO:
        return "look for disk errors in the system log (dmesg); restore from a backup if the disk is failing";
    case ENOMEM:
        return "free memory, or raise the limits: ulimit -v, ulimit -d, sysctl vm.max_map_count, vm.overcommit_memory";
    case ETXTBSY:
    case EBUSY:
        return "another program uses the file: close it there";
    default:
        return "see the system log (dmesg) for details";
    }
}

ty_status file_failure(const char *operation, const char *path, uint64_t offset, int error) {
    return failure(status_of_errno(error), "%s", operation)
        .at(path, offset)
        .cause(error)
        .remedy("%s", remedy_for(error));
}

ty_status unsupported(const char *operation, const char *path, uint64_t offset, int error) {
    return failure(TY_E_UNSUPPORTED, "%s", operation)
        .at(path, offset)
        .cause(error)
        .remedy("this file system cannot do it; ext4, xfs and btrfs can");
}

bool is_unsupported(int error) {
    return error == EOPNOTSUPP || error == ENOSYS || error == ENODEV;
}

} // namespace taiyen::os
