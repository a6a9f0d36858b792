// Writing the processor's cache back to memory that outlives the power.
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

} // namespace taiyen::os
