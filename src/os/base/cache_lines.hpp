// The processor's cache: writing it back to memory that outlives the power, loops that wait, lines wanted soon.
#pragma once

#include <cstddef>

namespace taiyen::os {

bool can_write_back_cache();
// What was stored in the range before is in memory when it returns. can_write_back_cache() must be true.
void write_back_cache(const void *address, size_t bytes);

// Tells the processor that this is a loop that waits.
inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// The line is wanted soon, to be written: __builtin_prefetch asks for a copy to read alone, unless the compiler may
// take every processor to know PREFETCHW. Those that don't take it for a NOP (Intel SDM, volume 2).
inline void prefetch_to_write(const void *address) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" ::"m"(*static_cast<const char *>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
}

} // namespace taiyen::os
