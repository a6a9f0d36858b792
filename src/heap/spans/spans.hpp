// Spans of small blocks: their bitmaps, which are persistent metadata, their owners, and the lists of those with free
// blocks.
#pragma once

#include "known_spans.hpp"
#include "remote.hpp"

namespace taiyen {

// Gives a thread's class cache a word with a free block: from its current span, from its other ones, from those without
// owner, or from a new one. The thread has entered. False with the error detail set.
bool refill(thread_cache *cache, uint32_t size_class);

// Called when an owner's free brought `used` to `notice`.
void after_free(thread_cache *cache, uint32_t number);

// A block of a span, by its address.
struct small_block {
    uint32_t size_class;
    uint32_t head;
    uint32_t index;
    bool exact; // the address is the block's start
};
small_block small_block_at(const ty_heap *heap, uint32_t size_class, uint64_t offset);
bool is_allocated(const ty_heap *heap, const small_block &block); // in the persistent metadata
bool is_live(const ty_heap *heap, const small_block &block);      // and not freed by another thread

// Moves a span into which its owner freed to its right bin, or releases it. It is not the current one.
void place_freed(thread_cache *cache, uint32_t number);

// Frees a block of a span that the calling thread does not own, or of its own one. cache may be NULL.
ty_status free_unowned(ty_heap *heap, thread_cache *cache, const small_block &block, free_result *result);

// Allocates a certain free block of a known span, or makes the span first. Paused heaps only. Expected: TY_E_EXISTS,
// TY_E_MEMORY.
ty_status take_small_at(ty_heap *heap, uint32_t size_class, uint64_t offset);

// Makes a span at free pages, in which the blocks in the bitmap `live` are allocated: it must have no bits beyond the
// span's blocks. Paused heaps only. Expected: TY_E_EXISTS, TY_E_MEMORY.
ty_status make_span_at(ty_heap *heap, uint32_t size_class, uint32_t head, const uint64_t *live);

// Which spans lose their owner. with_room: nearly all of what a thread holds is in spans with room, and most frees
// still to come are in the others.
enum class give_up { nothing, with_room, all };
// Flushes a thread's cache to the persistent metadata, of one class, or of all with the kept extents: frees what others
// freed; then gives up spans, or else releases empty current ones (H8). The thread is the caller, is stopped, or has
// ended.
void flush_class(thread_cache *cache, uint32_t size_class, give_up which);
void flush_cache(thread_cache *cache, give_up which);

} // namespace taiyen
