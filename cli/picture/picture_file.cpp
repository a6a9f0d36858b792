#include "picture/picture_file.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heap_map {

namespace {

constexpr const char *creation = "create the picture";
constexpr const char *writing = "write the picture";
constexpr const char *creation_remedy = "give a path in a folder that exists and may be written to";
constexpr const char *writing_remedy = "free some space, or choose another disk";

ty_status refuse(int system_error, const char *operation, const std::string &path, const char *remedy) {
    const bool full = system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG;
    const bool forbidden = system_error == EACCES || system_error == EPERM || system_error == EROFS;
    const ty_status status = full                     ? TY_E_SPACE
                             : forbidden              ? TY_E_PERMISSION
                             : system_error == ENOENT ? TY_E_NOT_FOUND
                                                      : TY_E_IO;
    if (system_error == EFBIG)
        remedy = "raise the limit of a file's size: ulimit -f";
    return ty_error_set(status, system_error, operation, path.c_str(), UINT64_MAX, remedy);
}

// Beyond the file size limit a write fails with an error, instead of raising a signal.
class size_signal_ignored {
public:
    size_signal_ignored() {
        struct sigaction ignore {};
        ignore.sa_handler = SIG_IGN;
        sigaction(SIGXFSZ, &ignore, &before_);
    }
    ~size_signal_ignored() { sigaction(SIGXFSZ, &before_, nullptr); }
    size_signal_ignored(const size_signal_ignored &) = delete;
    size_signal_ignored &operator=(const size_signal_ignored &) = delete;

private:
    struct sigaction before_ {};
};

// Returns 0, or the errno.
int write_all(int file, const std::string &bytes) {
    size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno != EINTR)
            return errno;
        if (count > 0)
            done += static_cast<size_t>(count);
    }
    return 0;
}

ty_status write_through(const std::string &path, const std::string &bytes) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return refuse(errno, creation, path, creation_remedy);
    int error = write_all(file, bytes);
    if (close(file) && !error)
        error = errno;
    return error ? refuse(error, writing, path, writing_remedy) : TY_OK;
}

// A new file in the folder of `path`, under a unique name that is short enough everywhere.
int create_beside(const std::string &path, std::string &name) {
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    for (int number = 0; number < 1000; ++number) {
        name = folder + "taiyen-map-" + std::to_string(getpid()) + "-" + std::to_string(number);
        const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

// CL2: what a command makes is there completely, or what was there before.
ty_status replace(const std::string &path, const struct stat *old, const std::string &bytes) {
    if (old && faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS))
        return refuse(errno, "replace the picture", path, "make the file writable, or give another path");
    std::string name;
    const int file = create_beside(path, name);
    if (file < 0)
        return refuse(errno, creation, path, creation_remedy);
    int error = old && fchmod(file, old->st_mode & 07777) ? errno : write_all(file, bytes);
    if (!error && fsync(file))
        error = errno;
    if (close(file) && !error)
        error = errno;
    if (!error && rename(name.c_str(), path.c_str()))
        error = errno;
    if (!error)
        return TY_OK;
    unlink(name.c_str());
    return refuse(error, writing, path, writing_remedy);
}

} // namespace

ty_status write_picture(const std::string &path, const std::string &bytes) {
    const size_signal_ignored ignored;
    const ty_storage &files = *ty_storage_default();
    char target[TY_STORAGE_PATH_MAX];
    if (ty_status status = files.resolve(files.context, path.c_str(), target, sizeof target))
        return status;
    struct stat old {};
    if (stat(target, &old))
        return errno == ENOENT ? replace(target, nullptr, bytes) : refuse(errno, creation, path, creation_remedy);
    return S_ISREG(old.st_mode) ? replace(target, &old, bytes) : write_through(target, bytes);
}

} // namespace heap_map
