// Relocates blocks that are extents: a growing one where there is no room after it, a shrinking one where that leaves
// the heap less fragmented. docs/design/heap-memory.md, "Dynamic blocks".
#pragma once

#include "pointer.hpp"

namespace taiyen {

// Where pages can be moved, extents of at least so many start at a huge page, so that they can be moved whole.
inline constexpr uint64_t aligned_extent_pages = 2 * huge_page_pages;

inline uint64_t extent_alignment(const ty_heap *heap, uint64_t pages, uint64_t aligned_from) {
    return heap->owner.movable && pages >= aligned_from ? huge_page_pages : 1;
}

// For a thread that has entered the heap.

// A larger block with the content of this one, which is freed. NULL with the detail set: nothing has changed.
void *grow_elsewhere(ty_heap *heap, thread_cache *cache, live_block block, size_t size);

// Moves an extent that has just shrunk to size if that reduces fragmentation and is cheap: at most freed_bytes are
// copied. Returns its address.
void *tidy_shrunk(ty_heap *heap, thread_cache *cache, const live_block &block, size_t size, uint64_t freed_bytes);

} // namespace taiyen
