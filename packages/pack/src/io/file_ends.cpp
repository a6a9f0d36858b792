#include "file_ends.hpp"

#include "../format/format.hpp"
#include "packages/common/common.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <taiyen/detail/fault.hpp>
#include <unistd.h>

namespace taiyen::pack {
namespace {

constexpr const char *suffix = "-packing";

ty_status fail(const char *operation, const char *path) {
    int error = errno;
    ty_status status = TY_E_IO;
    const char *remedy = "see to the file or the device, and try again";
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
        status = TY_E_SPACE;
        remedy = "make room on the disk, or raise the quota or the limit of a file's size, and try again";
    } else if (error == ENOENT || error == ENOTDIR) {
        status = TY_E_NOT_FOUND;
        remedy = "give the path of a file in a folder that exists";
    } else if (error == EACCES || error == EPERM || error == EROFS) {
        status = TY_E_PERMISSION;
        remedy = "run as a user who may, or change the permissions";
    } else if (error == EEXIST) {
        status = TY_E_EXISTS;
        remedy = "give another path, or remove the file first";
    } else if (error == EBADF || error == EISDIR || error == EINVAL || error == ELOOP || error == ENAMETOOLONG) {
        status = TY_E_ARGUMENT;
        remedy = "give an open descriptor, or a path that leads to a file";
    }
    return ty_error_set(status, error, operation, path, UINT64_MAX, remedy);
}

// For a non-blocking descriptor.
void wait_until_ready(int descriptor, short events) {
    pollfd one{descriptor, events, 0};
    static_cast<void>(poll(&one, 1, -1)); // an error shows in the call that is retried
}

// Descriptors 0 to 2 are for the program's output, also where they are closed.
int open_high(const char *path, int flags, mode_t mode) {
    int low = open(path, flags | O_CLOEXEC, mode);
    if (low < 0 || low > 2)
        return low;
    int high = fcntl(low, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(low);
    errno = error;
    return high;
}

std::string folder_of(const std::string &path) {
    size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace

// On a file system without such a rename: a hard link, then an unlink of the first name; a crash in between leaves both
// names.
bool rename_new(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    return (errno == EINVAL || errno == ENOSYS) && link(from, to) == 0 && unlink(from) == 0;
}

ty_status write_descriptor(const void *bytes, size_t size, void *context) {
    const auto *end = static_cast<const descriptor_end *>(context);
    const auto *from = static_cast<const char *>(bytes);
    while (size != 0) {
        ssize_t done = write(end->descriptor, from, size);
        if (done >= 0) {
            from += done;
            size -= static_cast<size_t>(done);
        } else if (errno == EAGAIN) {
            wait_until_ready(end->descriptor, POLLOUT);
        } else if (errno != EINTR) {
            return fail("write a packed heap", end->path);
        }
    }
    return TY_OK;
}

ty_status read_descriptor(void *bytes, size_t size, size_t *got, void *context) {
    const auto *end = static_cast<const descriptor_end *>(context);
    for (;;) {
        ssize_t done = read(end->descriptor, bytes, size);
        if (done >= 0) {
            *got = static_cast<size_t>(done);
            return TY_OK;
        }
        if (errno == EAGAIN)
            wait_until_ready(end->descriptor, POLLIN);
        else if (errno != EINTR)
            return fail("read a packed heap", end->path);
    }
}

ty_status read_memory(void *bytes, size_t size, size_t *got, void *context) {
    auto *source = static_cast<memory_source *>(context);
    *got = size < source->size ? size : source->size;
    memcpy(bytes, source->bytes, *got);
    source->bytes += *got;
    source->size -= *got;
    return TY_OK;
}

memory_sink::~memory_sink() {
    free(bytes);
}

ty_status write_memory(const void *bytes, size_t size, void *context) {
    auto *sink = static_cast<memory_sink *>(context);
    if (size > sink->room - sink->size) {
        size_t room = sink->room * 2 > sink->size + size ? sink->room * 2 : sink->size + size;
        void *larger = realloc(sink->bytes, room);
        if (larger == nullptr)
            return ty_error_set(TY_E_MEMORY, ENOMEM, "pack a heap into memory", nullptr, UINT64_MAX,
                                "pack it into a file");
        sink->bytes = static_cast<char *>(larger);
        sink->room = room;
    }
    memcpy(sink->bytes + sink->size, bytes, size);
    sink->size += size;
    return TY_OK;
}

file_source::~file_source() {
    if (end.descriptor >= 0)
        close(end.descriptor);
}

ty_status file_source::open(const char *path) {
    end = {open_high(path, O_RDONLY, 0), path};
    if (end.descriptor < 0)
        return fail("open a packed heap", path);
    static_cast<void>(posix_fadvise(end.descriptor, 0, 0, POSIX_FADV_SEQUENTIAL));
    return TY_OK;
}

file_sink::~file_sink() {
    if (end.descriptor >= 0) {
        if (!unfinished_.empty())
            unlink(unfinished_.c_str());
        common::child_closes::close(end.descriptor);
    }
    if (folder_ >= 0)
        close(folder_);
}

namespace {

bool leads_to(const char *path, int descriptor) {
    struct stat named, opened;
    return lstat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

// What a killed process leaves of a packing: nothing, or the beginning of a stream. Files of others are not touched.
bool is_remains(int descriptor) {
    uint64_t magic = 0;
    struct stat file;
    if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink > 1)
        return false;
    ssize_t bytes = pread(descriptor, &magic, sizeof magic, 0);
    return bytes == 0 || (bytes == sizeof magic && magic == stream_magic);
}

} // namespace

// A packing in progress holds a lock on its file, from creating it to naming it.
ty_status file_sink::remove_remains(const char *made) {
    int found = open_high(made, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (found < 0)
        return errno == ENOENT ? TY_OK : fail("look at what an earlier packing left", made);
    bool locked = flock(found, LOCK_EX | LOCK_NB) == 0;
    bool remains = locked && leads_to(made, found) && is_remains(found);
    bool gone = locked && !leads_to(made, found);
    ty_status status = TY_OK;
    if (!locked)
        status = ty_error_set(TY_E_BUSY, EWOULDBLOCK, "make a packed heap", made, UINT64_MAX,
                              "wait until the other packing of that name is over");
    else if (!remains && !gone)
        status = ty_error_set(TY_E_EXISTS, EEXIST, "make a packed heap: it is made under this name", made, UINT64_MAX,
                              "move the file away that has it");
    else if (remains && unlink(made) != 0)
        status = fail("remove what an earlier packing left", made);
    close(found);
    return status;
}

// Readable by its owner alone, as a heap's file may be.
ty_status file_sink::create(const char *path) {
    constexpr int tries = 100;
    path_ = path;
    const std::string made = path_ + suffix;
    struct stat there;
    if (lstat(path, &there) == 0 && !(taiyen::detail::fault("packed_file_replaced") && unlink(path) == 0)) {
        errno = EEXIST;
        return fail("make a packed heap", path);
    }
    folder_ = open_high(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY, 0);
    if (folder_ < 0)
        return fail("open the folder of a packed heap", path);
    for (int i = 0; i < tries; i++) {
        if (ty_status status = remove_remains(made.c_str()))
            return status;
        end = {open_high(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600), path_.c_str()};
        if (end.descriptor < 0 && errno != EEXIST)
            return fail("make a packed heap", made.c_str());
        if (end.descriptor < 0)
            continue; // another process was faster
        common::child_closes::add(end.descriptor);
        if (flock(end.descriptor, LOCK_EX | LOCK_NB) == 0 && leads_to(made.c_str(), end.descriptor)) {
            unfinished_ = made;
            return TY_OK;
        }
        common::child_closes::close(end.descriptor); // another process took it for remains
        end.descriptor = -1;
    }
    return ty_error_set(TY_E_BUSY, EEXIST, "make a packed heap", made.c_str(), UINT64_MAX,
                        "wait until the other packings of that name are over");
}

// PK6: a file gets its name when it is complete and durable.
ty_status file_sink::finish() {
    if (fsync(end.descriptor) != 0)
        return fail("make a packed heap durable", end.path);
    if (!rename_new(unfinished_.c_str(), path_.c_str()))
        return fail("name a packed heap", end.path);
    unfinished_.clear();
    return fsync(folder_) == 0 ? TY_OK : fail("make the name of a packed heap durable", end.path);
}

} // namespace taiyen::pack
