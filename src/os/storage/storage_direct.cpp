// The built-in storage: Linux files with direct I/O. A file that is opened for writing bypasses the page cache if the
// file system can; otherwise, also if that shows only at the first transfer, the file is buffered.
#include "../calls/calls.hpp"
#include "../memory/memory.hpp"
#include "direct_file.hpp"
#include "file_access.hpp"
#include "file_failure.hpp"
#include "file_name.hpp"
#include "links.hpp"
#include "size_signal.hpp"
#include "write_queue.hpp"

#include <atomic>
#include <climits>
#include <cstring>
#include <new>
#include <taiyen/storage.h>

namespace taiyen::os {
namespace {

ty_status check_aligned(const char *operation, const ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
    uint64_t all = offset | bytes | reinterpret_cast<uintptr_t>(buffer);
    if (all % TY_STORAGE_BLOCK == 0 && offset <= INT64_MAX && bytes <= INT64_MAX - offset)
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s %zu byte%s, buffer %p", operation, bytes, plural(bytes), buffer)
        .at(file->path(), offset)
        .remedy("offset, size and buffer must be multiples of %u", TY_STORAGE_BLOCK);
}

// Size and number of links; with fstat where the kernel or a sandbox has no statx.
ty_status get_status(const char *operation, const ty_file *file, struct statx *status) {
    if (sys::statx(file->fd, STATX_NLINK | STATX_SIZE, status) == 0)
        return TY_OK;
    struct stat whole;
    if (sys::fstat(file->fd, &whole) != 0)
        return file_failure(operation, file->path(), UINT64_MAX, errno);
    status->stx_nlink = static_cast<uint32_t>(whole.st_nlink);
    status->stx_size = static_cast<uint64_t>(whole.st_size);
    return TY_OK;
}

// N3: nothing is acknowledged in a file that no name leads to. A renamed file still has a name; one that lost its last
// name is gone when it is closed.
ty_status check_named(const char *operation, const ty_file *file) {
    struct statx status;
    if (ty_status failed = get_status(operation, file, &status))
        return failed;
    if (status.stx_nlink != 0 || !file->links_counted)
        return TY_OK;
    return failure(TY_E_IO, "%s: the file was removed while the heap is open", operation)
        .at(file->path())
        .remedy("memory still holds the heap: copy what is needed to another heap, and discard this one");
}

// Switches to buffered I/O after a transfer that direct I/O refuses (an odd block size, the rest of a partial
// transfer).
bool fall_back(ty_file *file, int error) {
    if (error != EINVAL || !file->direct.load(std::memory_order_relaxed))
        return false;
    int flags = sys::fcntl(file->fd, F_GETFL, 0);
    if (flags == -1 || sys::fcntl(file->fd, F_SETFL, flags & ~O_DIRECT) != 0)
        return false;
    file->direct.store(false, std::memory_order_relaxed);
    return true;
}

ty_status direct_read(void *, ty_file *file, uint64_t offset, void *buffer, size_t bytes) {
    ty_status status = check_aligned("read", file, offset, buffer, bytes);
    if (status == TY_OK)
        status = check_ours("read", file, offset);
    size_t done = 0;
    while (status == TY_OK && done < bytes) {
        ssize_t got = sys::pread(file->fd, static_cast<char *>(buffer) + done, bytes - done, offset + done);
        if (got > 0)
            done += static_cast<size_t>(got);
        else if (got == 0)
            return failure(TY_E_IO, "read %zu byte%s past the end of the file", bytes - done, plural(bytes - done))
                .at(file->path(), offset + done)
                .remedy("the file was cut short: restore it from a backup");
        else if (errno != EINTR && !fall_back(file, errno))
            status = file_failure("read", file->path(), offset + done, errno);
    }
    return status;
}

ty_status direct_write(void *, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
    ty_status status = check_aligned("write", file, offset, buffer, bytes);
    if (status == TY_OK && !file->writable)
        return failure(TY_E_PERMISSION, "write to a file opened for reading").at(file->path(), offset);
    if (status == TY_OK)
        status = check_ours("write", file, offset);
    size_t done = 0;
    size_signal_held held;
    while (status == TY_OK && done < bytes) {
        ssize_t put = sys::pwrite(file->fd, static_cast<const char *>(buffer) + done, bytes - done, offset + done);
        if (put > 0)
            done += static_cast<size_t>(put);
        else if (put == 0)
            status = file_failure("write", file->path(), offset + done, EIO);
        else if (errno != EINTR && !fall_back(file, errno))
            status = file_failure("write", file->path(), offset + done, errno);
    }
    return status;
}

// Many small writes reach the device's bandwidth only if several are under way. Those that the queue could not do (the
// kernel offers none, or for a reason that a plain write will report) are done one by one.
ty_status direct_write_many(void *context, ty_file *file, const ty_write *writes, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (ty_status status = check_aligned("write", file, writes[i].offset, writes[i].buffer, writes[i].bytes))
            return status;
    size_t done = 0;
    while (done < count) {
        size_t n = count - done < write_queue::batch_max ? count - done : write_queue::batch_max;
        uint64_t completed = 0; // bit i: writes[done + i] is done
        if (file->writable && file->direct.load(std::memory_order_relaxed) && is_ours(file)) {
            size_signal_held held;
            completed = file->queue.write(file->fd, writes + done, n);
            held.take();
        }
        for (size_t i = 0; i < n; ++i) {
            const ty_write &w = writes[done + i];
            if (completed >> i & 1)
                continue;
            if (ty_status status = direct_write(context, file, w.offset, w.buffer, w.bytes))
                return status;
        }
        done += n;
    }
    return TY_OK;
}

// fdatasync also makes durable what is needed to find the data again: size, allocations, punched holes.
ty_status direct_flush(void *, ty_file *file) {
    constexpr const char *operation = "flush the file";
    if (ty_status status = check_ours(operation, file))
        return status;
    int result;
    do
        result = sys::fdatasync(file->fd);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return fault("flush_of_a_removed_file_counts") ? TY_OK : check_named(operation, file);
    return file_failure(operation, file->path(), UINT64_MAX, errno);
}

// One write with O_DSYNC (one request with FUA, if the disk has it), otherwise a write and a flush.
ty_status direct_write_durable(void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
    ty_status status = check_aligned("write", file, offset, buffer, bytes);
    if (status == TY_OK)
        status = check_ours("write", file, offset);
    size_t done = 0;
    size_signal_held held;
    while (status == TY_OK && done < bytes && file->writes_durably.load(std::memory_order_relaxed)) {
        const char *rest = static_cast<const char *>(buffer) + done;
        ssize_t put = sys::pwrite_durable(file->fd, rest, bytes - done, offset + done);
        if (put > 0)
            done += static_cast<size_t>(put);
        else if (put == 0)
            status = file_failure("write", file->path(), offset + done, EIO);
        else if (is_unsupported(errno) ||
                 errno == EPERM) // a filter of system calls; otherwise the write reports it, too
            file->writes_durably.store(false, std::memory_order_relaxed);
        else if (errno != EINTR && !fall_back(file, errno))
            status = file_failure("write", file->path(), offset + done, errno);
    }
    if (status != TY_OK)
        return status;
    if (done == bytes)
        return check_named("write", file);
    status = direct_write(context, file, offset + done, static_cast<const char *>(buffer) + done, bytes - done);
    return status != TY_OK ? status : direct_flush(context, file);
}

ty_status direct_get_size(void *, ty_file *file, uint64_t *size_bytes) {
    constexpr const char *operation = "find the size of the file";
    if (ty_status status = check_ours(operation, file))
        return status;
    struct statx found;
    ty_status status = get_status(operation, file, &found);
    if (status == TY_OK)
        *size_bytes = found.stx_size;
    return status;
}

ty_status direct_set_size(void *, ty_file *file, uint64_t size_bytes) {
    if (!file->writable)
        return failure(TY_E_PERMISSION, "resize a file opened for reading").at(file->path());
    if (ty_status status = check_ours("resize the file", file, size_bytes))
        return status;
    int result;
    size_signal_held held;
    do
        result = size_bytes <= INT64_MAX ? sys::ftruncate(file->fd, size_bytes) : (errno = EFBIG, -1);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return TY_OK;
    // The kernel also returns EINVAL for a size beyond the file system's maximum.
    return file_failure("resize the file", file->path(), size_bytes, errno == EINVAL ? EFBIG : errno);
}

ty_status change_space(const char *operation, ty_file *file, int mode, uint64_t offset, uint64_t bytes) {
    if (bytes == 0)
        return TY_OK;
    if (!file->writable)
        return failure(TY_E_PERMISSION, "%s of a file opened for reading", operation).at(file->path(), offset);
    if (ty_status status = check_ours(operation, file, offset))
        return status;
    int result;
    size_signal_held held;
    do
        result = sys::fallocate(file->fd, mode, offset, bytes);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return TY_OK;
    int error = errno;
    return is_unsupported(error) ? unsupported(operation, file->path(), offset, error)
                                 : file_failure(operation, file->path(), offset, error);
}

ty_status direct_allocate(void *, ty_file *file, uint64_t offset, uint64_t bytes) {
    return change_space("allocate disk space", file, 0, offset, bytes);
}

ty_status direct_punch(void *, ty_file *file, uint64_t offset, uint64_t bytes) {
    return change_space("give back disk space", file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

// Uses the descriptor's position, then returns it to the mark.
ty_status direct_next_data(void *, ty_file *file, uint64_t offset, uint64_t *start, uint64_t *end) {
    constexpr const char *operation = "find data in the file";
    if (ty_status status = check_ours(operation, file, offset))
        return status;
    lock_guard guard(file->moving);
    off_t data = offset <= INT64_MAX ? sys::lseek(file->fd, offset, SEEK_DATA) : (errno = ENXIO, -1);
    off_t hole = data < 0 ? -1 : sys::lseek(file->fd, static_cast<uint64_t>(data), SEEK_HOLE);
    int error = errno;
    if (!mark_again(file->fd, file->mark))
        return file_failure(operation, file->path(), offset, errno);
    if (hole < 0) {
        if (error == ENXIO)
            return failure(TY_E_NOT_FOUND, "%s", operation).at(file->path(), offset);
        return file_failure(operation, file->path(), offset, error);
    }
    *start = static_cast<uint64_t>(data);
    *end = static_cast<uint64_t>(hole);
    return TY_OK;
}

ty_status taken(const ty_file *file, void *address, size_t bytes, uint64_t offset) {
    char text[mapping_text_bytes];
    uintptr_t start = reinterpret_cast<uintptr_t>(address);
    if (!address_usable(start, bytes))
        return failure(TY_E_ADDRESS, "map %zu bytes at %p: this build cannot use that range", bytes, address)
            .at(file->path(), offset)
            .remedy("use the kind of build that made the heap: a sanitizer restricts addresses");
    describe_mapping(start, bytes, text, sizeof text);
    return failure(TY_E_ADDRESS, "map %zu bytes at %p: the range is taken", bytes, address)
        .at(file->path(), offset)
        .remedy("unload what is in the way (%s), or open the heap in another process",
                text[0] != 0 ? text : "it is gone by now");
}

ty_status direct_map(void *, ty_file *file, void *address, size_t bytes, uint64_t offset, uint32_t flags) {
    uint64_t all = offset | bytes | reinterpret_cast<uintptr_t>(address);
    if (all % page_bytes != 0 || address == nullptr || bytes == 0 || (flags & ~(TY_MAP_WRITE | TY_MAP_SHARED)) != 0)
        return failure(TY_E_ARGUMENT, "map %zu byte%s at %p", bytes, plural(bytes), address)
            .at(file->path(), offset)
            .remedy("offset, size and address must be multiples of %zu, and not 0", page_bytes);
    if (!address_usable(reinterpret_cast<uintptr_t>(address), bytes))
        return taken(file, address, bytes, offset);
    if (ty_status status = check_ours("map the file", file, offset))
        return status;
    int protection = PROT_READ | (flags & TY_MAP_WRITE ? PROT_WRITE : 0);
    int sharing = flags & TY_MAP_SHARED ? MAP_SHARED : MAP_PRIVATE;
    const mapped_opening opening(*file); // N5: through a separate open file description, if locked
    void *got =
        sys::mmap(address, bytes, protection, sharing | MAP_NORESERVE | MAP_FIXED_NOREPLACE, opening.fd, offset);
    if (got == address)
        return TY_OK;
    if (got != MAP_FAILED) { // a kernel before 4.17 takes the address as a hint
        sys::munmap(got, bytes);
        return taken(file, address, bytes, offset);
    }
    if (errno == EEXIST)
        return taken(file, address, bytes, offset);
    int error = errno == EAGAIN || errno == EOVERFLOW ? ENOMEM : errno;
    return is_unsupported(error) ? unsupported("map the file", file->path(), offset, error)
                                 : file_failure("map the file", file->path(), offset, error);
}

ty_status direct_unmap(void *, ty_file *file, void *address, size_t bytes) {
    if (sys::munmap(address, bytes) != 0)
        return file_failure("unmap the file", file->path(), UINT64_MAX, errno);
    return TY_OK;
}

ty_status direct_write_back(void *, ty_file *file, void *address, size_t bytes) {
    int result;
    do
        result = sys::msync(address, bytes, MS_SYNC);
    while (result != 0 && errno == EINTR);
    // ENOMEM here means that the range is not mapped.
    int error = result != 0 && errno == ENOMEM ? EINVAL : errno;
    return result == 0 ? TY_OK : file_failure("write back mapped pages", file->path(), UINT64_MAX, error);
}

ty_status direct_rename(void *, const char *from, const char *to) {
    if (sys::rename(from, to) != 0)
        return file_failure("rename the file", from, UINT64_MAX, errno);
    file_name::renamed(from, to);
    return TY_OK;
}

ty_status direct_remove(void *, const char *path) {
    if (sys::unlink(path) != 0)
        return file_failure("remove the file", path, UINT64_MAX, errno);
    return TY_OK;
}

// The directory of path: everything before its last component.
ty_status folder_of(const char *path, char (&folder)[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    size_t length = slash == nullptr ? 0 : static_cast<size_t>(slash - path);
    if (length >= sizeof folder)
        return file_failure("flush the folder of the file", path, UINT64_MAX, ENAMETOOLONG);
    memcpy(folder, path, length);
    folder[length] = 0;
    if (length == 0)
        strcpy(folder, slash == nullptr ? "." : "/");
    return TY_OK;
}

ty_status direct_flush_directory(void *, const char *path) {
    char folder[PATH_MAX];
    ty_status status = folder_of(path, folder);
    if (status != TY_OK)
        return status;
    int fd = open_descriptor(folder, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return file_failure("open the folder of the file", path, UINT64_MAX, errno);
    int result;
    do
        result = sys::fsync(fd);
    while (result != 0 && errno == EINTR);
    int error = errno;
    sys::close(fd);
    if (result == 0)
        return TY_OK;
    return error == EINVAL || is_unsupported(error) ? unsupported("flush the folder", folder, UINT64_MAX, error)
                                                    : file_failure("flush the folder", folder, UINT64_MAX, error);
}

ty_status direct_check(void *, ty_file *file) {
    constexpr const char *operation = "rely on the file";
    ty_status status = check_ours(operation, file);
    return status != TY_OK ? status : check_named(operation, file);
}

ty_status direct_protect(void *, ty_file *file, ty_file *like) {
    for (ty_file *each : {file, like})
        if (ty_status status = check_ours("set the permissions of the file", each))
            return status;
    return follow_access(file->fd, file->name.text(), like->fd, like->name.text());
}

ty_status direct_resolve(void *, const char *path, char *resolved, size_t bytes) {
    return follow_links(path, resolved, bytes);
}

constexpr ty_storage direct_storage = {
    sizeof(ty_storage),   nullptr,           direct_open,     direct_close,           direct_read,
    direct_write,         direct_flush,      direct_get_size, direct_set_size,        direct_allocate,
    direct_punch,         direct_next_data,  direct_map,      direct_unmap,           direct_write_back,
    direct_lock,          direct_rename,     direct_remove,   direct_flush_directory, direct_write_many,
    direct_write_durable, direct_check,      direct_protect,  direct_resolve,         direct_hold,
    direct_turn,          direct_check_lock,
};

} // namespace
} // namespace taiyen::os

const ty_storage *ty_storage_default(void) {
    return &taiyen::os::direct_storage;
}
