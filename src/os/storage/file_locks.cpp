// Locks of the built-in storage: OFD locks (fcntl(2)), which belong to an open file description, not to a process.
//
// N5: a lock ends with the process that took it. The kernel keeps it until nothing refers to the open file description
//      any more, and a forked child refers to it by its copy of the descriptor and by each mapping that was made
//      through it. So a child closes the descriptors of its parent's locked files at the fork, and locked files are
//      mapped through separate open file descriptions. (A child made by clone(2) itself runs no fork handlers: there
//      the lock lives until the child ends.)
#include "../calls/calls.hpp"
#include "direct_file.hpp"
#include "file_failure.hpp"

#include <cstdio>
#include <new>
#include <pthread.h>
#include <sys/stat.h>

namespace taiyen::os {

// One for each locked file. They are never freed, as a forked child walks them without a lock; one that a file has
// given up is reused.
struct locked_opening {
    locked_opening *next = nullptr;
    std::atomic<int> fd = unused;
    const ty_file *file = nullptr; // nullptr in a child: free for another file
    pid_t process = 0;             // also in a child that ran no fork handlers the lock is its parent's
    dev_t device = 0;              // a child must not close a number that is reused for another file
    ino_t inode = 0;

    static constexpr int unused = -1, taken = -2; // taken: by a file that is being locked
};

namespace {

constinit std::atomic<locked_opening *> all_locked = nullptr;
constinit std::atomic<bool> forks_watched = false;

void close_in_child() {
    for (locked_opening *each = all_locked.load(std::memory_order_acquire); each != nullptr; each = each->next) {
        const int fd = each->fd.load(std::memory_order_acquire);
        struct stat found;
        if (fd >= 0 && sys::fstat(fd, &found) == 0 && found.st_dev == each->device && found.st_ino == each->inode &&
            !fault("child_keeps_the_lock"))
            sys::close(fd);
        each->file = nullptr;
        each->fd.store(locked_opening::unused, std::memory_order_release);
    }
}

// Two threads may register the handlers twice at once: running them twice does no harm.
int watch_forks() {
    if (forks_watched.load(std::memory_order_acquire))
        return 0;
    const int error = pthread_atfork(nullptr, nullptr, close_in_child);
    if (error == 0)
        forks_watched.store(true, std::memory_order_release);
    return error;
}

locked_opening *take_unused() {
    for (locked_opening *each = all_locked.load(std::memory_order_acquire); each != nullptr; each = each->next) {
        int unused = locked_opening::unused;
        if (each->fd.compare_exchange_strong(unused, locked_opening::taken, std::memory_order_acquire))
            return each;
    }
    void *memory = sys::memory(sizeof(locked_opening));
    if (memory == nullptr)
        return nullptr;
    auto *made = new (memory) locked_opening;
    made->fd.store(locked_opening::taken, std::memory_order_relaxed);
    made->next = all_locked.load(std::memory_order_relaxed);
    while (!all_locked.compare_exchange_weak(made->next, made, std::memory_order_release, std::memory_order_relaxed)) {
    }
    return made;
}

// Before the lock is taken, so that a fork at any moment finds the descriptor.
ty_status note_opening(const char *operation, ty_file *file) {
    if (file->lock != nullptr)
        return TY_OK;
    struct stat found;
    if (sys::fstat(file->fd, &found) != 0)
        return file_failure(operation, file->path(), UINT64_MAX, errno);
    const int error = watch_forks();
    locked_opening *lock = error == 0 ? take_unused() : nullptr;
    if (lock == nullptr)
        return failure(TY_E_MEMORY, "%s", operation)
            .at(file->path())
            .cause(error != 0 ? error : ENOMEM)
            .remedy("%s", remedy_for(ENOMEM));
    lock->device = found.st_dev;
    lock->inode = found.st_ino;
    lock->file = file;
    lock->process = ::getpid();
    lock->fd.store(file->fd, std::memory_order_release);
    file->lock = lock;
    return TY_OK;
}

// A lock covers all bytes before turn_offset; a turn is one byte, and so is each number that is held: no file is that
// long.
constexpr off_t hold_offset = off_t{1} << 62, turn_offset = hold_offset - 1;

struct flock range_of(short type, off_t start, off_t bytes) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = start;
    range.l_len = bytes;
    return range;
}

} // namespace

ty_status direct_lock(void *, ty_file *file, bool exclusive) {
    constexpr const char *operation = "lock the file";
    struct flock range = range_of(exclusive ? F_WRLCK : F_RDLCK, 0, turn_offset);
    if (exclusive && !file->writable)
        return failure(TY_E_PERMISSION, "lock a file opened for reading exclusively").at(file->path());
    if (ty_status status = check_ours(operation, file))
        return status;
    if (ty_status status = note_opening(operation, file))
        return status;
    if (sys::fcntl(file->fd, F_OFD_SETLK, &range) == 0)
        return TY_OK;
    int error = errno;
    if (error == EAGAIN || error == EACCES)
        return failure(TY_E_BUSY, operation)
            .at(file->path())
            .cause(error)
            .remedy("the heap is open elsewhere, perhaps in this very process: close it there (lslocks shows where)");
    return error == EINVAL || error == ENOLCK ? unsupported(operation, file->path(), UINT64_MAX, error)
                                              : file_failure(operation, file->path(), UINT64_MAX, error);
}

ty_status direct_check_lock(void *, ty_file *file) {
    constexpr const char *operation = "see whether the file is locked";
    if (ty_status status = check_ours(operation, file))
        return status;
    struct flock range = range_of(F_RDLCK, 0, turn_offset);
    if (sys::fcntl(file->fd, F_OFD_GETLK, &range) != 0)
        return errno == EINVAL || errno == ENOLCK ? unsupported(operation, file->path(), UINT64_MAX, errno)
                                                  : file_failure(operation, file->path(), UINT64_MAX, errno);
    return range.l_type == F_UNLCK ? TY_OK : failure(TY_E_BUSY, operation).at(file->path());
}

ty_status direct_hold(void *, ty_file *file, uint32_t mode, uint64_t first, uint64_t last, uint64_t *other) {
    constexpr const char *operation = "hold numbers of the file";
    constexpr short types[] = {F_UNLCK, F_RDLCK, F_WRLCK};
    if (mode >= sizeof types / sizeof *types || first > last || last >= static_cast<uint64_t>(hold_offset))
        return failure(TY_E_ARGUMENT, operation).at(file->path());
    if (ty_status status = check_ours(operation, file))
        return status;
    if (ty_status status = mode != TY_HOLD_NONE ? note_opening(operation, file) : TY_OK)
        return status;
    const auto bytes = static_cast<off_t>(last - first + 1);
    struct flock range = range_of(types[mode], hold_offset + static_cast<off_t>(first), bytes);
    if (sys::fcntl(file->fd, F_OFD_SETLK, &range) == 0)
        return TY_OK;
    if (errno != EAGAIN && errno != EACCES)
        return errno == EINVAL || errno == ENOLCK ? unsupported(operation, file->path(), UINT64_MAX, errno)
                                                  : file_failure(operation, file->path(), UINT64_MAX, errno);
    // Whoever had it may have given it up since.
    const bool found = sys::fcntl(file->fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
    *other = found && range.l_start > hold_offset + static_cast<off_t>(first)
                 ? static_cast<uint64_t>(range.l_start - hold_offset)
                 : first;
    return failure(TY_E_BUSY, "%s: another handle has number %llu", operation, (unsigned long long)*other)
        .at(file->path());
}

ty_status direct_turn(void *, ty_file *file, bool begin) {
    constexpr const char *operation = "wait until nobody else writes beside the heap's program";
    if (ty_status status = check_ours(operation, file))
        return status;
    if (ty_status status = begin ? note_opening(operation, file) : TY_OK)
        return status;
    struct flock range = range_of(begin ? F_WRLCK : F_UNLCK, turn_offset, 1);
    while (sys::fcntl(file->fd, begin ? F_OFD_SETLKW : F_OFD_SETLK, &range) != 0)
        if (errno != EINTR)
            return errno == EINVAL || errno == ENOLCK ? unsupported(operation, file->path(), UINT64_MAX, errno)
                                                      : file_failure(operation, file->path(), UINT64_MAX, errno);
    return TY_OK;
}

// A close in a child does not affect its parent's lock; an unlock would.
void give_up_lock(ty_file &file, bool is_open) {
    locked_opening &lock = *file.lock;
    file.lock = nullptr;
    if (lock.file != &file || lock.process != ::getpid())
        return;
    struct flock range = range_of(F_UNLCK, 0, 0);
    if (is_open)
        static_cast<void>(sys::fcntl(file.fd, F_OFD_SETLK, &range));
    lock.fd.store(locked_opening::unused, std::memory_order_release);
}

mapped_opening::mapped_opening(const ty_file &file) : fd(file.fd) {
    if (file.lock == nullptr)
        return;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file.fd);
    const int again = open_descriptor(path, file.writable ? O_RDWR : O_RDONLY);
    own_ = again >= 0;
    if (own_)
        fd = again;
}

mapped_opening::~mapped_opening() {
    if (own_)
        sys::close(fd);
}

} // namespace taiyen::os
