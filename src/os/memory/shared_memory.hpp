// Memory of this process that others may read: an anonymous file (memfd), mapped by all. It is freed with the last
// process that has it open, however that ends.
#pragma once

#include "../base/base.hpp"
#include "../process/process.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>

namespace taiyen::os {

struct shared_memory {
    void *memory = nullptr; // NULL: none
    size_t bytes = 0;
    int descriptor = -1; // the descriptor by which others find it; -1: it was found, and its maker keeps it
    uint64_t inode = 0;  // of that descriptor
};

// bytes: a multiple of a page. The size is sealed: no process that opens it can truncate it under this process.
// Expected: TY_E_UNSUPPORTED (the kernel cannot, or refuses).
ty_status shared_make(const char *name, size_t bytes, shared_memory *made);

// Maps that of another process, or this one, found by its name there and its size. The first `writable_bytes` are
// writable, the rest is read-only. Expected: TY_E_NOT_FOUND (no such process, or it has none), TY_E_PERMISSION.
ty_status shared_find(uint64_t process, const char *name, size_t bytes, size_t writable_bytes, shared_memory *found);

void shared_end(shared_memory &memory);

// As wait_on, wake_one and wake_all (thread.hpp), across processes.
void wait_on_shared(const std::atomic<uint32_t> &word, uint32_t value, uint64_t timeout_ns = wait_for_ever);
void wake_one_shared(const std::atomic<uint32_t> &word);
void wake_all_shared(const std::atomic<uint32_t> &word);

} // namespace taiyen::os
