// The processor's caches: writing lines back to persistent memory, spin-wait hints, prefetches for writing.
#pragma once

#include <cstddef>

namespace taiyen::os {

bool can_write_back_cache();
// When it returns, earlier stores to the range are in memory. can_write_back_cache() must be true.
void write_back_cache(const void *address, size_t bytes);

// Hints to the processor that this is a spin-wait loop.
inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Prefetches a line for writing: __builtin_prefetch prefetches for reading only, unless the compiler may assume
// PREFETCHW on every processor. Processors without it execute it as a NOP (Intel SDM, volume 2).
inline void prefetch_to_write(const void *address) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" ::"m"(*static_cast<const char *>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
}

} // namespace taiyen::os
