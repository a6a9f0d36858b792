// Short runs that a thread has freed, kept for it: so that blocks of a few pages come and go without the lock of the
// pages. In volatile heaps without limits and checks.
//
// K1: a kept run's head says page_run_kept: nobody takes it for a block, or for free. Who frees a block says so by an
//     atomic exchange, so that of two frees one is refused.
// K2: a heap that is paused has no kept runs, nor has a thread that ended: settle_cache frees them.
#pragma once

#include "runs.hpp"

namespace taiyen {

// Of all who free a run at once, one gets true; its head says page_run_kept then.
inline bool claim_run(page_descriptor &head) {
    uint8_t expected = page_run_head;
    const bool claimed =
        __atomic_compare_exchange_n(&head.kind, &expected, page_run_kept, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return claimed || (fault("kept_run_freed_twice") && expected == page_run_kept);
}
inline void unclaim_run(page_descriptor &head) {
    __atomic_store_n(&head.kind, page_run_head, __ATOMIC_RELAXED);
}

// Keeps a block that starts at a page, if it is a short run and there is room; else nothing has changed.
bool keep_run(thread_cache *cache, uint64_t page);
// A kept run of so many pages, or up to about an eighth more, as a block; count 0: there is none. Nothing is known of
// its content.
page_run take_kept_run(thread_cache *cache, uint64_t pages);
bool free_kept_runs(thread_cache *cache); // false: there were none

} // namespace taiyen
