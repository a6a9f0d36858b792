#include "file_calls.hpp"

#include <cerrno>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace taiyen::test {

file_calls watched;

namespace {

int make(file_call call, int descriptor, const char *name, const std::function<long()> &system_call) {
    if (watched.before && !watched.before(call, descriptor, name)) {
        errno = EIO;
        return -1;
    }
    const long result = system_call();
    if (result == 0 && watched.after)
        watched.after(call, descriptor, name);
    return static_cast<int>(result);
}

} // namespace

} // namespace taiyen::test

using namespace taiyen::test;

extern "C" int fsync(int descriptor) {
    struct stat about {};
    fstat(descriptor, &about);
    return make(S_ISDIR(about.st_mode) ? file_call::flush_folder : file_call::flush_file, descriptor, "",
                [=] { return syscall(SYS_fsync, descriptor); });
}

extern "C" int mkdir(const char *path, mode_t mode) noexcept {
    return make(file_call::make_folder, -1, path, [=] { return syscall(SYS_mkdir, path, mode); });
}

extern "C" int renameat(int from, const char *name, int to, const char *new_name) noexcept {
    return make(file_call::name, to, new_name, [=] { return syscall(SYS_renameat, from, name, to, new_name); });
}

extern "C" int unlinkat(int folder, const char *name, int flags) noexcept {
    return make(file_call::remove, folder, name, [=] { return syscall(SYS_unlinkat, folder, name, flags); });
}
