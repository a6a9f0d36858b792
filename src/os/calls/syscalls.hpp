// Every system call of the os layer goes through these wrappers, so that a test can make any one of them fail. In a
// program the hook is null: one load and one predictable branch per system call.
//
// None is a cancellation point. Calls on files go through libc, so that libraries that intercept file calls
// (fakechroot, eatmydata) see them; what else allocating needs goes straight to the kernel (`direct`).
#pragma once

#include "../base/base.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TAIYEN_SANITIZED 1
#endif

namespace taiyen::os {
void *internal_calloc(size_t count, size_t bytes); // process/current_malloc.hpp
}

// Without a function of libc, for all that allocating and freeing needs: a library that is loaded before this one may
// replace mmap or open by functions of its own, and allocate in them, while a lock of the heap is held, or before there
// is a heap. Under a sanitizer they go through libc's functions, which it intercepts to track memory.
namespace taiyen::os::direct {

// -1 with errno set on failure.
long system_call(long number, const long (&arguments)[6]);

template <class... Arguments>
inline long call(long number, Arguments... arguments) {
    return system_call(number, {(long)arguments...});
}

#if defined(TAIYEN_SANITIZED)

using ::madvise;
using ::mmap;
using ::mprotect;
using ::munmap;

inline int open(const char *path, int flags, mode_t mode = 0) {
    not_cancelable whole;
    return ::open(path, flags, mode);
}
inline ssize_t read(int fd, void *buffer, size_t bytes) {
    not_cancelable whole;
    return ::read(fd, buffer, bytes);
}
inline ssize_t write(int fd, const void *buffer, size_t bytes) {
    not_cancelable whole;
    return ::write(fd, buffer, bytes);
}
inline int close(int fd) {
    not_cancelable whole;
    return ::close(fd);
}

#else

inline void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return reinterpret_cast<void *>(call(SYS_mmap, address, bytes, protection, flags, fd, offset));
}
inline int munmap(void *address, size_t bytes) {
    return static_cast<int>(call(SYS_munmap, address, bytes));
}
inline int mprotect(void *address, size_t bytes, int protection) {
    return static_cast<int>(call(SYS_mprotect, address, bytes, protection));
}
inline int madvise(void *address, size_t bytes, int advice) {
    return static_cast<int>(call(SYS_madvise, address, bytes, advice));
}
inline int open(const char *path, int flags, mode_t mode = 0) {
    return static_cast<int>(call(SYS_openat, AT_FDCWD, path, flags, mode));
}
inline ssize_t read(int fd, void *buffer, size_t bytes) {
    return call(SYS_read, fd, buffer, bytes);
}
inline ssize_t write(int fd, const void *buffer, size_t bytes) {
    return call(SYS_write, fd, buffer, bytes);
}
inline int close(int fd) {
    return static_cast<int>(call(SYS_close, fd));
}

#endif

} // namespace taiyen::os::direct

namespace taiyen::os::sys {

enum class call : uint8_t {
    mmap,
    munmap,
    mprotect,
    mremap,
    madvise,
    mincore,
    msync,
    process_vm_readv,
    open,
    read,
    pread,
    pwrite,
    pwrite_durable,
    lseek,
    fcntl,
    fstat,
    statx,
    statfs,
    fchmod,
    fchown,
    fgetxattr,
    fsetxattr,
    fremovexattr,
    fdatasync,
    fsync,
    ftruncate,
    fallocate,
    rename,
    unlink,
    readlink,
    realpath,
    userfaultfd,
    ioctl,
    sigaction,
    signal_mask,
    thread_create,
    membarrier,
    getrandom,
    memfd_create,
    sysinfo,
    affinity,
    set_affinity,
    set_idle_class,
    getrlimit,
    mbind,
    get_mempolicy,
    getcpu,
    io_setup,
    io_submit,
    io_getevents,
    memory, // calloc, in storage code
    count
};

// Returns the errno with which this call is to fail, or 0 to let it happen. Also called in signal handlers.
using fault_hook = int (*)(call which);
extern std::atomic<fault_hook> hook;

inline bool refused(call which) {
    fault_hook fault = hook.load(std::memory_order_acquire);
    if (__builtin_expect(fault == nullptr, 1))
        return false;
    int error = fault(which);
    if (error != 0)
        errno = error;
    return error != 0;
}

inline void *mmap(void *address, size_t bytes, int protection, int flags, int fd, uint64_t offset) {
    return refused(call::mmap) ? MAP_FAILED
                               : direct::mmap(address, bytes, protection, flags, fd, static_cast<off_t>(offset));
}
inline int munmap(void *address, size_t bytes) {
    return refused(call::munmap) ? -1 : direct::munmap(address, bytes);
}
inline int mprotect(void *address, size_t bytes, int protection) {
    return refused(call::mprotect) ? -1 : direct::mprotect(address, bytes, protection);
}
// Replaces whatever is mapped at `to`.
inline void *mremap(void *from, size_t bytes, void *to) {
    return refused(call::mremap) ? MAP_FAILED : ::mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}
inline int madvise(void *address, size_t bytes, int advice) {
    return refused(call::madvise) ? -1 : direct::madvise(address, bytes, advice);
}
inline int mincore(void *address, size_t bytes, unsigned char *pages) {
    return refused(call::mincore) ? -1 : static_cast<int>(direct::call(SYS_mincore, address, bytes, pages));
}
// Reads this process's own memory: unreadable memory is an error, not a signal.
inline ssize_t read_memory(const void *from, void *to, size_t bytes) {
    const iovec here{to, bytes}, there{const_cast<void *>(from), bytes};
    return refused(call::process_vm_readv)
               ? -1
               : static_cast<ssize_t>(direct::call(SYS_process_vm_readv, ::getpid(), &here, 1ul, &there, 1ul, 0ul));
}
inline int msync(void *address, size_t bytes, int flags) {
    not_cancelable whole;
    return refused(call::msync) ? -1 : ::msync(address, bytes, flags);
}
inline int open(const char *path, int flags, mode_t mode = 0) {
    not_cancelable whole;
    return refused(call::open) ? -1 : ::open(path, flags, mode);
}
// close frees the descriptor whatever it returns, and all data was flushed before: its result is ignored.
inline void close(int fd) {
    direct::close(fd);
}
inline ssize_t read(int fd, void *buffer, size_t bytes) {
    not_cancelable whole;
    return refused(call::read) ? -1 : ::read(fd, buffer, bytes);
}
// For files of /proc and /sys.
inline int open_system_file(const char *path, int flags) {
    return refused(call::open) ? -1 : direct::open(path, flags);
}
inline ssize_t read_system_file(int fd, void *buffer, size_t bytes) {
    return refused(call::read) ? -1 : direct::read(fd, buffer, bytes);
}
inline ssize_t pread(int fd, void *buffer, size_t bytes, uint64_t offset) {
    not_cancelable whole;
    return refused(call::pread) ? -1 : ::pread(fd, buffer, bytes, static_cast<off_t>(offset));
}
inline ssize_t pwrite(int fd, const void *buffer, size_t bytes, uint64_t offset) {
    not_cancelable whole;
    return refused(call::pwrite) ? -1 : ::pwrite(fd, buffer, bytes, static_cast<off_t>(offset));
}
inline ssize_t pwrite_durable(int fd, const void *buffer, size_t bytes, uint64_t offset) {
    iovec part{const_cast<void *>(buffer), bytes};
    not_cancelable whole;
    return refused(call::pwrite_durable) ? -1 : ::pwritev2(fd, &part, 1, static_cast<off_t>(offset), RWF_DSYNC);
}
inline off_t lseek(int fd, uint64_t offset, int whence) {
    return refused(call::lseek) ? -1 : ::lseek(fd, static_cast<off_t>(offset), whence);
}
template <typename Argument>
inline int fcntl(int fd, int command, Argument argument) {
    return refused(call::fcntl) ? -1 : static_cast<int>(direct::call(SYS_fcntl, fd, command, argument));
}
inline int fstat(int fd, struct stat *status) {
    return refused(call::fstat) ? -1 : ::fstat(fd, status);
}
// Unlike fstat, this does not query the file's times, after which a kernel with fine-grained times (Linux 6.13) makes
// the next write update them: a durable write would then wait for the file system's journal, too.
inline int statx(int fd, unsigned fields, struct statx *status) {
    return refused(call::statx) ? -1 : ::statx(fd, "", AT_EMPTY_PATH, fields, status);
}
inline int statfs(const char *path, struct statfs *system) {
    return refused(call::statfs) ? -1 : ::statfs(path, system);
}
inline int fchmod(int fd, mode_t mode) {
    return refused(call::fchmod) ? -1 : ::fchmod(fd, mode);
}
inline int fchown(int fd, uid_t owner, gid_t group) {
    return refused(call::fchown) ? -1 : ::fchown(fd, owner, group);
}
inline ssize_t fgetxattr(int fd, const char *name, void *value, size_t bytes) {
    return refused(call::fgetxattr) ? -1 : ::fgetxattr(fd, name, value, bytes);
}
inline int fsetxattr(int fd, const char *name, const void *value, size_t bytes) {
    return refused(call::fsetxattr) ? -1 : ::fsetxattr(fd, name, value, bytes, 0);
}
inline int fremovexattr(int fd, const char *name) {
    return refused(call::fremovexattr) ? -1 : ::fremovexattr(fd, name);
}
inline int fdatasync(int fd) {
    not_cancelable whole;
    return refused(call::fdatasync) ? -1 : ::fdatasync(fd);
}
inline int fsync(int fd) {
    not_cancelable whole;
    return refused(call::fsync) ? -1 : ::fsync(fd);
}
inline int ftruncate(int fd, uint64_t bytes) {
    return refused(call::ftruncate) ? -1 : ::ftruncate(fd, static_cast<off_t>(bytes));
}
inline int fallocate(int fd, int mode, uint64_t offset, uint64_t bytes) {
    not_cancelable whole;
    return refused(call::fallocate) ? -1 : ::fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}
inline int rename(const char *from, const char *to) {
    return refused(call::rename) ? -1 : ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}
inline int unlink(const char *path) {
    return refused(call::unlink) ? -1 : ::unlink(path);
}
inline ssize_t readlink(const char *path, char *target, size_t bytes) {
    return refused(call::readlink) ? -1 : ::readlink(path, target, bytes);
}
inline char *realpath(const char *path, char *resolved) { // PATH_MAX bytes
    not_cancelable whole;
    return refused(call::realpath) ? nullptr : ::realpath(path, resolved);
}
inline int userfaultfd(int flags) {
    return refused(call::userfaultfd) ? -1 : static_cast<int>(direct::call(SYS_userfaultfd, flags));
}
inline int ioctl(int fd, unsigned long request, void *argument) {
    return refused(call::ioctl) ? -1 : ::ioctl(fd, request, argument);
}
inline int sigaction(int signal, const struct sigaction *action, struct sigaction *old) {
    return refused(call::sigaction) ? -1 : ::sigaction(signal, action, old);
}
inline int alternate_stack(stack_t *stack) {
    return ::sigaltstack(nullptr, stack);
}
// The pthread functions return their error.
inline int signal_mask(int how, const sigset_t *set, sigset_t *old) {
    return refused(call::signal_mask) ? errno : ::pthread_sigmask(how, set, old);
}
// Pending signals, and taking one without waiting: errors do not matter.
inline bool signal_pending(int signal) {
    sigset_t pending;
    return ::sigpending(&pending) == 0 && ::sigismember(&pending, signal) == 1;
}
inline void take_signal(const sigset_t *set) {
    timespec at_once = {};
    not_cancelable whole;
    ::sigtimedwait(set, nullptr, &at_once);
}
inline int thread_create(pthread_t *thread, void *(*main)(void *), void *argument) {
    return refused(call::thread_create) ? errno : ::pthread_create(thread, nullptr, main, argument);
}
inline int membarrier(int command) {
    return refused(call::membarrier) ? -1 : static_cast<int>(direct::call(SYS_membarrier, command, 0u, 0));
}
// A wait may end for no reason, and waking cannot fail: their results are ignored.
inline void futex_wait(const uint32_t *word, uint32_t value, const timespec *timeout) {
    direct::call(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}
inline void futex_wake(const uint32_t *word, int threads) {
    direct::call(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}
inline void futex_wait_shared(const uint32_t *word, uint32_t value, const timespec *timeout) {
    direct::call(SYS_futex, word, FUTEX_WAIT, value, timeout, nullptr, 0);
}
inline void futex_wake_shared(const uint32_t *word, int threads) {
    direct::call(SYS_futex, word, FUTEX_WAKE, threads, nullptr, nullptr, 0);
}
inline ssize_t getrandom(void *bytes, size_t count) {
    return refused(call::getrandom) ? -1 : direct::call(SYS_getrandom, bytes, count, 0);
}
inline int memfd_create(const char *name, unsigned flags) {
    return refused(call::memfd_create) ? -1 : static_cast<int>(direct::call(SYS_memfd_create, name, flags));
}
inline int sysinfo(struct sysinfo *info) {
    return refused(call::sysinfo) ? -1 : static_cast<int>(direct::call(SYS_sysinfo, info));
}
inline int affinity(size_t bytes, cpu_set_t *set) {
    return refused(call::affinity) || direct::call(SYS_sched_getaffinity, 0, bytes, set) < 0 ? -1 : 0;
}
// The calling thread's: SCHED_OTHER, SCHED_FIFO and so on; -1: not known.
inline int scheduling_class() {
    return static_cast<int>(direct::call(SYS_sched_getscheduler, 0));
}
// Binds the thread to one core.
inline int set_affinity(uint64_t thread_id, unsigned core) {
    constexpr unsigned word_bits = 64, words = 128; // 8,192 cores
    unsigned long mask[words] = {};
    if (core < words * word_bits)
        mask[core / word_bits] = 1ul << core % word_bits;
    return refused(call::set_affinity)
               ? -1
               : ::sched_setaffinity(static_cast<pid_t>(thread_id), sizeof mask, reinterpret_cast<cpu_set_t *>(mask));
}
// Gives the calling thread SCHED_IDLE, which needs no permission.
inline int set_idle_class() {
    sched_param none = {};
    return refused(call::set_idle_class) ? -1 : ::sched_setscheduler(0, SCHED_IDLE, &none);
}
inline int getrlimit(int resource, struct rlimit *limit) {
    return refused(call::getrlimit) ? -1 : static_cast<int>(direct::call(SYS_prlimit64, 0, resource, nullptr, limit));
}
inline int mbind(void *address, size_t bytes, int mode, const unsigned long *nodes, unsigned long node_bits) {
    return refused(call::mbind) ? -1
                                : static_cast<int>(direct::call(SYS_mbind, address, bytes, mode, nodes, node_bits, 0u));
}
inline int get_mempolicy(int *mode, unsigned long *nodes, unsigned long node_bits, const void *address,
                         unsigned flags) {
    return refused(call::get_mempolicy)
               ? -1
               : static_cast<int>(direct::call(SYS_get_mempolicy, mode, nodes, node_bits, address, flags));
}
inline int getcpu(unsigned *core, unsigned *node) {
    return refused(call::getcpu) ? -1 : static_cast<int>(direct::call(SYS_getcpu, core, node, nullptr));
}
inline int io_setup(unsigned count, aio_context_t *context) {
    return refused(call::io_setup) ? -1 : static_cast<int>(direct::call(SYS_io_setup, count, context));
}
inline void io_destroy(aio_context_t context) {
    direct::call(SYS_io_destroy, context);
}
inline long io_submit(aio_context_t context, long count, iocb **requests) {
    return refused(call::io_submit) ? -1 : direct::call(SYS_io_submit, context, count, requests);
}
inline long io_getevents(aio_context_t context, long least, long most, io_event *events) {
    return refused(call::io_getevents) ? -1 : direct::call(SYS_io_getevents, context, least, most, events, nullptr);
}
inline void *memory(size_t bytes) {
    return refused(call::memory) ? nullptr : internal_calloc(1, bytes);
}

} // namespace taiyen::os::sys
