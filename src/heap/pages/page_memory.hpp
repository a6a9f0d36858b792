// The memory of free pages: which of them may be resident, and giving it back (decay). docs/design/heap-memory.md,
// "Free pages and their memory".
#pragma once

#include "page_extents.hpp"

namespace taiyen {

// P1: `idle` is the number of free pages below top whose bit in `touched` is set; a free page whose bit is clear has
//     no memory of its own, and reads as zeros while the heap's `zeros` says so.
// All under pages_lock; nothing is done for a heap whose owner takes no memory back. Of what was freed, the pages of
// emptied have no memory.
void note_taken(ty_heap *heap, uint64_t first, uint64_t count);
void note_freed(ty_heap *heap, page_extent extent, page_extent emptied);

// Whether memory that is faulted in now is not what decay would give back. Under pages_lock.
bool may_hold_more(const ty_heap *heap);

// Zeroes pages of an extent that was just taken, but those that read as zeros: from fresh_from on, as take_pages has
// told, and those whose memory was given back, unless memory was moved there. Without a lock.
void zero_pages(const ty_heap *heap, page_extent extent, uint64_t fresh_from);

// Of an extent that nobody else can take now, memory is about to be moved or given back. The huge pages of which only a
// part goes are known to be in small pages then. Once parts move in a heap they become such beforehand, which is faster
// while they are mapped whole. Without a lock.
void split_at_ends(ty_heap *heap, page_extent extent);

// Gives memory of free pages back: bounded work, the rest is left for the next call. The thread has entered and holds
// no lock of the heap.
void decay(ty_heap *heap);
// When free pages hold more memory than the heap is likely to want again soon.
inline void decay_if_due(ty_heap *heap) {
    if (heap->memory.due.load(std::memory_order_relaxed)) [[unlikely]]
        decay(heap);
}

// The same for all of a free extent; how much was resident. Paused heaps only, whose owner takes memory back.
size_t purge_run(ty_heap *heap, page_extent extent);

} // namespace taiyen
