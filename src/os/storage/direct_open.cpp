// The built-in storage: opens and closes files, with a name or without.
#include "direct_file.hpp"

#include "file_failure.hpp"
#include "nameless_file.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/stat.h>

namespace taiyen::os {
namespace {

ty_status not_regular(const char *path, int error) {
    return failure(TY_E_FORMAT, "open what is not a regular file")
        .at(path)
        .cause(error)
        .remedy("give the path of a file; folders, devices and pipes cannot hold a heap");
}

ty_status open_failure(const char *path, int error) {
    if (error == EISDIR || error == ENXIO)
        return not_regular(path, error);
    return file_failure("open the file", path, UINT64_MAX, error);
}

// Whether a file that has no link had one when it was opened. Some file systems count none.
bool was_removed(const char *path, const struct stat &opened) {
    struct stat there;
    return ::stat(path, &there) != 0 || there.st_ino != opened.st_ino || there.st_dev != opened.st_dev;
}

// Takes ownership of fd. Sets it to direct I/O, if that is wanted and possible.
ty_status check_opened(int fd, const char *path, bool named, ty_file *file) {
    struct stat status;
    if (sys::fstat(fd, &status) != 0)
        return file_failure("open the file", path, UINT64_MAX, errno);
    if (!S_ISREG(status.st_mode))
        return not_regular(path, 0);
    file->fd = fd;
    file->links_counted = status.st_nlink != 0 || (named && was_removed(path, status));
    if ((file->mark = mark_descriptor(fd)) == 0)
        return file_failure("open the file", path, UINT64_MAX, errno);
    if (file->direct) {
        int flags = sys::fcntl(fd, F_GETFL, 0);
        file->direct = flags != -1 && sys::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
    }
    return TY_OK;
}

// open(2); N1: never 0, 1 or 2. *made: the file exists, even if no number is left for it.
int open_number(const char *path, int flags, mode_t mode, bool *made) {
    low_descriptors_taken taken;
    int fd;
    do
        fd = sys::open(path, flags, mode);
    while (fd < 0 && errno == EINTR);
    *made = fd >= 0;
    return move_descriptor_high(fd);
}

ty_status make_file(const char *path, ty_file **made) {
    size_t path_bytes = strlen(path) + 1;
    void *memory = sys::memory(sizeof(ty_file) + path_bytes);
    if (memory == nullptr)
        return failure(TY_E_MEMORY, "open the file").at(path).cause(ENOMEM).remedy("%s", remedy_for(ENOMEM));
    char *opened_path = static_cast<char *>(memory) + sizeof(ty_file);
    memcpy(opened_path, path, path_bytes);
    *made = new (memory) ty_file(opened_path);
    return TY_OK;
}

// A file without a name, in path's directory, or in memory. -1 and errno on failure.
int open_nameless(const char *path, bool on_disk) {
    low_descriptors_taken taken;
    if (!on_disk)
        return move_descriptor_high(sys::memfd_create("taiyen", MFD_CLOEXEC));
    char folder[TY_STORAGE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t bytes = slash == nullptr ? 0 : slash == path ? 1 : static_cast<size_t>(slash - path);
    if (bytes >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, bytes);
    folder[bytes] = '\0';
    int fd;
    do
        fd = sys::open(bytes != 0 ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    while (fd < 0 && errno == EINTR);
    return move_descriptor_high(fd);
}

} // namespace

// N2: nothing is done through a number that may lead to another file.
bool is_ours(ty_file *file) {
    if (is_marked(file->fd, file->mark) || fault("any_file_at_the_number_taken_for_ours"))
        return true;
    lock_guard guard(file->moving);
    return is_marked(file->fd, file->mark);
}

ty_status check_ours(const char *operation, ty_file *file, uint64_t offset) {
    if (is_ours(file))
        return TY_OK;
    return failure(TY_E_IO, "%s: the program closed its descriptor, which is not the program's own", operation)
        .at(file->name.text(), offset)
        .remedy("nothing was written anywhere else; memory still holds the heap: copy what is not durable, discard it, "
                "and open heaps after calls such as closefrom");
}

ty_status direct_open(void *, const char *path, uint32_t flags, ty_file **opened) {
    constexpr uint32_t known = TY_FILE_WRITE | TY_FILE_CREATE | TY_FILE_PRIVATE;
    if (path == nullptr || opened == nullptr || (flags & ~known) != 0)
        return failure(TY_E_ARGUMENT, "open a file").at(path).remedy("give a path and known flags");
    ty_file *file = nullptr;
    if (ty_status status = make_file(path, &file))
        return status;
    bool create = (flags & TY_FILE_CREATE) != 0;
    file->writable = (flags & (TY_FILE_WRITE | TY_FILE_CREATE)) != 0;
    file->direct = file->writable;
    // Non-blocking: opening a pipe must not wait for its other end.
    int mode = (file->writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    bool made = false;
    int fd = open_number(path, mode | (create ? O_CREAT | O_EXCL : 0), flags & TY_FILE_PRIVATE ? 0600 : 0666, &made);
    ty_status status = fd < 0 ? open_failure(path, errno) : check_opened(fd, path, true, file);
    if (status == TY_OK) {
        if (create)
            file->name.expect_rename();
        *opened = file;
        return TY_OK;
    }
    if (fd >= 0)
        sys::close(fd);
    if (made && create)
        sys::unlink(path);
    free(file);
    return status;
}

ty_status make_nameless_file(const char *path, bool in_memory, ty_file **made) {
    ty_file *file = nullptr;
    if (ty_status status = make_file(path, &file))
        return status;
    file->writable = true;
    int fd = in_memory ? -1 : open_nameless(path, true);
    if (fd < 0)
        fd = open_nameless(path, false);
    ty_status status =
        fd < 0 ? file_failure("make a file for a copy", path, UINT64_MAX, errno) : check_opened(fd, path, false, file);
    if (status == TY_OK) {
        *made = file;
        return TY_OK;
    }
    if (fd >= 0)
        sys::close(fd);
    free(file);
    return status;
}

void direct_close(void *, ty_file *file) {
    if (file == nullptr)
        return;
    file->queue.stop();
    const bool ours = is_ours(file);
    if (file->lock != nullptr)
        give_up_lock(*file, ours);
    if (ours)
        sys::close(file->fd);
    file->name.close();
    free(file);
}

} // namespace taiyen::os
