#include "shared_memory.hpp"

#include "../calls/calls.hpp"
#include "vm.hpp"

#include <climits>
#include <cstdio>
#include <cstring>
#include <dirent.h>

namespace taiyen::os {
namespace {

// BD2: what others do to a metrics page does no harm: its size cannot change.
const int seals = fault("metrics_page_may_be_cut_off") ? F_SEAL_GROW : F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

ty_status map_shared(int fd, size_t bytes, size_t writable_bytes, shared_memory *mapped) {
    const int access = writable_bytes == bytes ? PROT_READ | PROT_WRITE : PROT_READ;
    void *memory = sys::mmap(nullptr, bytes, access, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return failure(TY_E_UNSUPPORTED, "map %zu bytes that processes share", bytes).cause(errno);
    mapped->memory = memory;
    mapped->bytes = bytes;
    if (writable_bytes == 0 || writable_bytes == bytes)
        return TY_OK;
    void *front = sys::mmap(memory, writable_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (front != MAP_FAILED)
        return TY_OK;
    ty_status status = failure(TY_E_UNSUPPORTED, "map %zu bytes that processes share", bytes).cause(errno);
    shared_end(*mapped);
    return status;
}

} // namespace

ty_status shared_make(const char *name, size_t bytes, shared_memory *made) {
    int fd;
    {
        low_descriptors_taken taken; // N1: never 0, 1 or 2
        fd = move_descriptor_high(sys::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    }
    if (fd < 0)
        return failure(TY_E_UNSUPPORTED, "make memory that processes share").cause(errno);
    ty_status status = TY_OK;
    if (sys::ftruncate(fd, bytes) != 0 || sys::fcntl(fd, F_ADD_SEALS, seals) != 0)
        status = failure(TY_E_UNSUPPORTED, "make memory that processes share").cause(errno);
    else
        status = map_shared(fd, bytes, bytes, made);
    if (status)
        sys::close(fd);
    else {
        made->descriptor = fd;
        made->inode = inode_of(fd);
    }
    return status;
}

namespace {

// The kernel shows the name with a prefix, and as deleted, since no directory has it.
bool is_named(const char *path, const char *name) {
    char target[PATH_MAX];
    char wanted[256];
    snprintf(wanted, sizeof wanted, "/memfd:%s (deleted)", name);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return false;
    target[length] = 0;
    return strcmp(target, wanted) == 0;
}

// A process can have any file under this name: checks size and seals.
ty_status map_found(const char *path, size_t bytes, size_t writable_bytes, shared_memory *found) {
    const int fd = open_descriptor(path, O_RDWR);
    if (fd < 0)
        return failure(errno == EACCES || errno == EPERM ? TY_E_PERMISSION : TY_E_NOT_FOUND,
                       "open the memory that a process shares")
            .at(path)
            .cause(errno);
    struct stat known = {};
    const int has = sys::fcntl(fd, F_GET_SEALS, 0);
    ty_status status = TY_OK;
    if (sys::fstat(fd, &known) != 0 || known.st_size != static_cast<off_t>(bytes) || has < 0 ||
        (has & F_SEAL_SHRINK) == 0)
        status = failure(TY_E_NOT_FOUND, "use the memory that a process shares: it is not what it should be").at(path);
    else
        status = map_shared(fd, bytes, writable_bytes, found);
    sys::close(fd);
    return status;
}

} // namespace

ty_status shared_find(uint64_t process, const char *name, size_t bytes, size_t writable_bytes, shared_memory *found) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%llu/fd", static_cast<unsigned long long>(process));
    DIR *folder = opendir(path);
    if (folder == nullptr)
        return failure(errno == EACCES || errno == EPERM ? TY_E_PERMISSION : TY_E_NOT_FOUND,
                       "look at the descriptors of process %llu", static_cast<unsigned long long>(process))
            .at(path)
            .cause(errno)
            .remedy("run as the user who runs that program, on the same machine and in the same container");
    ty_status status = failure(TY_E_NOT_FOUND, "find the metrics page of process %llu for the heap",
                               static_cast<unsigned long long>(process))
                           .at(path);
    while (const dirent *entry = readdir(folder)) {
        char one[PATH_MAX];
        snprintf(one, sizeof one, "%s/%s", path, entry->d_name);
        if (!is_named(one, name))
            continue;
        status = map_found(one, bytes, writable_bytes, found);
        break;
    }
    closedir(folder);
    return status;
}

void shared_end(shared_memory &memory) {
    if (memory.memory != nullptr)
        unmap_memory(memory.memory, memory.bytes);
    if (memory.descriptor >= 0 && memory.inode != 0 &&
        inode_of(memory.descriptor) == memory.inode) // N2: only if it still is this file
        sys::close(memory.descriptor);
    memory = {};
}

namespace {

const uint32_t *address_of(const std::atomic<uint32_t> &word) {
    return reinterpret_cast<const uint32_t *>(&word);
}

} // namespace

void wait_on_shared(const std::atomic<uint32_t> &word, uint32_t value, uint64_t timeout_ns) {
    constexpr uint64_t second = 1000000000;
    const timespec timeout{static_cast<time_t>(timeout_ns / second), static_cast<long>(timeout_ns % second)};
    sys::futex_wait_shared(address_of(word), value, timeout_ns == wait_for_ever ? nullptr : &timeout);
}

void wake_one_shared(const std::atomic<uint32_t> &word) {
    sys::futex_wake_shared(address_of(word), 1);
}

void wake_all_shared(const std::atomic<uint32_t> &word) {
    sys::futex_wake_shared(address_of(word), INT_MAX);
}

} // namespace taiyen::os
