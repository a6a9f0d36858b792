// Memory of this process that others may look at: a file without a name on any disk (memfd), mapped by all. It goes
// with the last process that has it open, however that ends.
#pragma once

#include "../base/base.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::os {

struct shared_memory {
    void *memory = nullptr; // NULL: there is none
    size_t bytes = 0;
    int descriptor = -1; // that it is found by; -1: it was found, and another one keeps it
    uint64_t inode = 0;  // of that
};

// bytes: a multiple of a page. Its size stays: whoever opens it cannot cut it off under this process's feet. Expected:
// TY_E_UNSUPPORTED (the kernel cannot, or may not).
ty_status shared_make(const char *name, size_t bytes, shared_memory *made);

// That of another process, or this one, by the name that it has there and its size. The first `writable_bytes` can be
// written to, the rest cannot. Expected: TY_E_NOT_FOUND (no such process, or it has none), TY_E_PERMISSION.
ty_status shared_find(uint64_t process, const char *name, size_t bytes, size_t writable_bytes, shared_memory *found);

void shared_end(shared_memory &memory);

// As wait_on and wake_all (thread.hpp), across processes.
void wait_on_shared(const std::atomic<uint32_t> &word, uint32_t value);
void wake_all_shared(const std::atomic<uint32_t> &word);

} // namespace taiyen::os
