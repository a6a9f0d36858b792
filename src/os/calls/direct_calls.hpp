// System calls made without a function of libc, for all that allocating and freeing needs. A library that is loaded
// before this one may replace mmap or open by functions of its own, and allocate in them: while a lock of the heap is
// held, or before there is a heap. None of these is a cancellation point.
//
// Under a sanitizer they go through libc's functions, which it intercepts to track memory.
#pragma once

#include "../base/base.hpp"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TAIYEN_SANITIZED 1
#endif

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
