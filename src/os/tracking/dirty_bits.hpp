// The pages that a fault handler has seen written: bits that many threads set concurrently, also in signal handlers, in
// three levels, so that a few bits in a terabyte are found quickly.
//
// B3: once set has returned, its page bits are set, and the bits of their words in the two levels above, whatever other
//      threads set meanwhile: a later search finds them.
#pragma once

#include "../memory/memory.hpp"

#include <atomic>

namespace taiyen::os {

class dirty_bits {
public:
    ty_status create(uint64_t page_count);
    void destroy();

    void set(uint64_t first, uint64_t count); // async-signal-safe
    void add_to(page_set &into) const;
    void move_to(page_set &into); // and clears them; no handler may run meanwhile

private:
    using word = std::atomic<uint64_t>;
    word *levels_[3] = {};
    uint64_t top_words_ = 0;
    uint64_t page_count_ = 0;
    size_t mapped_bytes_ = 0;
};

} // namespace taiyen::os
