#include "file_ends.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
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
    } else if (error == EEXIST || error == EISDIR) {
        status = TY_E_EXISTS;
        remedy = "give another path, or remove the file first";
    } else if (error == EBADF || error == EINVAL || error == ELOOP || error == ENAMETOOLONG) {
        status = TY_E_ARGUMENT;
        remedy = "give an open descriptor, or a path that leads to a file";
    }
    return ty_error_set(status, error, operation, path, UINT64_MAX, remedy);
}

// Of one that does not wait by itself.
void wait_until_ready(int descriptor, short events) {
    pollfd one{descriptor, events, 0};
    static_cast<void>(poll(&one, 1, -1)); // an error shows in the call that is tried again
}

// Descriptors 0 to 2 are for what the program prints, also where they are closed.
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

ty_status flush_folder(const std::string &path) {
    int folder = open_high(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY, 0);
    if (folder < 0)
        return fail("open the folder of a packed heap", path.c_str());
    int result = fsync(folder);
    int error = errno;
    close(folder);
    errno = error;
    return result == 0 ? TY_OK : fail("make the name of a packed heap durable", path.c_str());
}

} // namespace

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
        close(end.descriptor);
    }
}

// A file that a packing left which was killed is used again; one that is under way has it locked.
ty_status file_sink::create(const char *path) {
    path_ = path;
    std::string made = path_ + suffix;
    struct stat there;
    if (lstat(path, &there) == 0) {
        errno = EEXIST;
        return fail("make a packed heap", path);
    }
    end = {open_high(made.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW, 0666), path_.c_str()};
    if (end.descriptor < 0)
        return fail("make a packed heap", made.c_str());
    if (flock(end.descriptor, LOCK_EX | LOCK_NB) != 0)
        return ty_error_set(TY_E_BUSY, errno, "make a packed heap", made.c_str(), UINT64_MAX,
                            "wait until the other packing of that name is over");
    unfinished_ = made;
    return ftruncate(end.descriptor, 0) == 0 ? TY_OK : fail("make a packed heap", made.c_str());
}

// PK6.
ty_status file_sink::finish() {
    if (fsync(end.descriptor) != 0)
        return fail("make a packed heap durable", end.path);
    if (link(unfinished_.c_str(), path_.c_str()) != 0)
        return fail("name a packed heap", end.path);
    if (unlink(unfinished_.c_str()) != 0)
        return fail("name a packed heap", end.path);
    unfinished_.clear();
    return flush_folder(path_);
}

} // namespace taiyen::pack
