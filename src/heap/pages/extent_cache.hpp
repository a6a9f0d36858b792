// Short extents that a thread has freed, in its thread cache: so that blocks of a few pages come and go without
// pages_lock. In volatile heaps without limits and checks.
//
// K1: a kept extent's head has kind page_extent_kept: it is taken neither for a block nor for free. A thread that frees
//      a block sets that by an atomic exchange, so that of two frees one is refused.
// K2: a heap that is paused has no kept extents, nor has a thread that ended: flush_cache frees them.
#pragma once

#include "page_extents.hpp"

namespace taiyen {

// If several threads free an extent at once, one gets true; its head then has kind page_extent_kept.
inline bool claim_extent(page_descriptor &head) {
    uint8_t expected = page_extent_head;
    const bool claimed =
        __atomic_compare_exchange_n(&head.kind, &expected, page_extent_kept, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return claimed || (fault("kept_run_freed_twice") && expected == page_extent_kept);
}
inline void unclaim_extent(page_descriptor &head) {
    __atomic_store_n(&head.kind, page_extent_head, __ATOMIC_RELAXED);
}

// Keeps a block that starts at a page, if it is a short extent and there is room; otherwise returns false and changes
// nothing.
bool keep_extent(thread_cache *cache, uint64_t page);
// A kept extent of so many pages, or up to about an eighth more, as a block; count 0: none. Its content is undefined.
page_extent take_kept_extent(thread_cache *cache, uint64_t pages);
bool free_kept_extents(thread_cache *cache); // false: it had none

} // namespace taiyen
