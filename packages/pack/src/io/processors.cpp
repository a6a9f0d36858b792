#include "processors.hpp"

#include <sched.h>

namespace taiyen::pack {

unsigned threads_for(uint32_t asked) {
    constexpr unsigned threads_max = 256;
    if (asked != 0)
        return asked < threads_max ? asked : threads_max;
    cpu_set_t usable;
    int count = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
    return count > 0 ? static_cast<unsigned>(count) : 1;
}

} // namespace taiyen::pack
