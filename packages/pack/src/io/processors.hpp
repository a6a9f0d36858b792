#pragma once

#include <cstdint>

namespace taiyen::pack {

// As many threads as asked for, up to a maximum; 0: one for each processor that this thread may run on.
unsigned threads_for(uint32_t asked);

} // namespace taiyen::pack
