// Functions of libc replaced by ones that allocate, as profilers and sandboxes have them. Preloaded beside the drop-in:
// what that uses itself must not lead back into it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))real_function(#name))

static void note(const char *function) {
    char *volatile copy = malloc(strlen(function) + 300);
    if (copy == NULL)
        abort();
    strcpy(copy, function);
    free(copy);
}

static void *real_function(const char *name) {
    note(name);
    return dlsym(RTLD_NEXT, name);
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return REAL(open)(path, flags, mode);
}
ssize_t read(int fd, void *bytes, size_t count) {
    return REAL(read)(fd, bytes, count);
}
int close(int fd) {
    return REAL(close)(fd);
}
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return REAL(mmap)(address, bytes, protection, flags, fd, offset);
}
int munmap(void *address, size_t bytes) {
    return REAL(munmap)(address, bytes);
}
int mprotect(void *address, size_t bytes, int protection) {
    return REAL(mprotect)(address, bytes, protection);
}
int madvise(void *address, size_t bytes, int advice) {
    return REAL(madvise)(address, bytes, advice);
}
long syscall(long number, ...) {
    va_list more;
    va_start(more, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set) {
    return REAL(sched_getaffinity)(process, bytes, set);
}
int getrlimit(__rlimit_resource_t resource, struct rlimit *limit) {
    return REAL(getrlimit)(resource, limit);
}
int pthread_mutex_lock(pthread_mutex_t *mutex) {
    return REAL(pthread_mutex_lock)(mutex);
}
int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    return REAL(pthread_mutex_unlock)(mutex);
}
