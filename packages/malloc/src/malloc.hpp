// The allocation functions of C and C++ over one volatile heap per process. docs/design/malloc.md explains them.
//
// M1: nothing here or below calls a function of libc that allocates, except that pthread_atfork and pthread_setspecific
//      might, for the 49th handler and the 33rd key of a process: ours are among the first.
// M2: the heap is made before any fork handler is registered, so that ours runs last before a fork and first after it:
//      other handlers may allocate, whatever they do.
// M3: a block of 9 bytes or more starts at a multiple of 16, as the x86-64 ABI requires of malloc for 16 bytes and
//      more.
// M4: free keeps errno.
#pragma once

#include "scope.hpp"
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taiyen::drop_in {

// The process's heap, once made, with its thread caches; never a checked one, which must not use the fast path.
extern std::atomic<ty_heap *> made_heap;

// The process's heap, made by the first call. NULL with the error detail set: not even a little memory is available.
ty_heap *process_heap();

// Requests of up to this size go straight to the heap's size classes. A larger block costs more than the check of its
// size.
inline constexpr size_t direct_bytes_max = 16384;
inline constexpr size_t natural_alignment = 16;
inline constexpr size_t request_max = PTRDIFF_MAX;

// M3: blocks of 9 bytes and more start at multiples of 16. Size classes from 16 bytes up that are multiples of 16 are
// aligned to 16.
inline size_t natural_bytes(size_t size) {
    return size <= 8 ? size : (size + natural_alignment - 1) & ~(natural_alignment - 1);
}

void *allocate_otherwise(size_t size, call_site site);

// Returns NULL, without setting errno, when there is no memory.
[[gnu::always_inline]] inline void *allocate(size_t size, call_site site) {
    void *block = try_alloc_cached(size);
    return block != nullptr ? block : allocate_otherwise(size, site);
}

// For functions that tail-call it: they need no stack frame then.
void *allocate_or_enomem(size_t size, call_site site);

// alignment: a power of two.
void *allocate_aligned(size_t size, size_t alignment, call_site site);
void *allocate_zeroed(size_t size, call_site site);

// Ends the process, with the thread's error detail on standard error: a function was given a pointer that is not a live
// block, or the heap's tables are damaged.
[[noreturn]] void abort_for(const char *function);
// The same for a failure in a library beside this one.
[[noreturn]] void stop_beside(const char *function, const os::current_malloc_calls *calls);

void release_elsewhere(const char *function, void *block, const magazine *stack); // after tried_free::elsewhere
void release_otherwise(const char *function, void *block);

[[gnu::always_inline]] inline void release(const char *function, void *block) {
    const magazine *stack;
    tried_free tried = try_free_cached(block, &stack);
    if (tried == tried_free::done) [[likely]]
        return;
    return tried == tried_free::elsewhere ? release_elsewhere(function, block, stack)
                                          : release_otherwise(function, block);
}

} // namespace taiyen::drop_in
