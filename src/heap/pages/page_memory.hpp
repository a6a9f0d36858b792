// The memory of free pages: which of them may be resident, and returning it to the owner (decay).
// docs/design/heap-memory.md, "Free pages and their memory".
#pragma once

#include "page_extents.hpp"

namespace taiyen {

// P1: `idle` is the number of free pages below top whose bit in `touched` is set; a free page whose bit is clear has no
// memory of its own, and reads as zeros while the heap's `zeros` is set.
// All under pages_lock; does nothing for a heap whose owner takes no memory back. emptied: the freed pages that have no
// memory.
void note_taken(ty_heap *heap, uint64_t first, uint64_t count);
void note_freed(ty_heap *heap, page_extent extent, page_extent emptied);

// Whether decay would keep memory that is faulted in now. Under pages_lock.
bool may_hold_more(const ty_heap *heap);

// Zeroes pages of an extent that was just taken, except those that read as zeros: from fresh_from on (see take_pages),
// and those whose memory was returned, unless memory was moved there. Without a lock.
void zero_pages(const ty_heap *heap, page_extent extent, uint64_t fresh_from);

// For an extent that no other thread can take, before its memory is moved or returned: records the huge pages of which
// only a part goes as small pages. Once parts of huge pages move in a heap, it also splits them first, which is faster
// while they are mapped whole. Without a lock.
void split_at_ends(ty_heap *heap, page_extent extent);

// Returns memory of free pages to the owner: bounded work, the rest is left to the next call. The thread has entered
// and holds no lock of the heap.
void decay(ty_heap *heap);
// Due when free pages hold more memory than the heap is likely to need again soon.
inline void decay_if_due(ty_heap *heap) {
    if (heap->memory.due.load(std::memory_order_relaxed)) [[unlikely]]
        decay(heap);
}

// Returns all memory of a free extent; the result is how much was resident. Paused heaps only, whose owner takes memory
// back.
size_t purge_extent(ty_heap *heap, page_extent extent);

} // namespace taiyen
