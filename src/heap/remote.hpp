// Frees by threads that do not own the span, without a lock.
//
// Who frees counts the block in the span's `pending`, sets its bit in the remote bitmap, and, if it was the first to
// count, queues the span with the owner's cache, in this order. The owner takes the bits out of the bitmap, frees the
// blocks in the truth, and takes them out of the count.
// R1: a span stands in one queue at most, and is not given back while blocks are pending.
// R2: a queue that has lost its owner is looked after by who queued something there: having queued a span, it looks at
//     the owner once more, as the owner, having given up its spans, looks at its queue.
#pragma once

#include "spans.hpp"

namespace taiyen {

// Frees blocks of one word of a bitmap, all of them live, of a span whose owner is another thread's cache. False: one
// of them was freed by somebody else meanwhile.
bool free_remotely(ty_heap *heap, thread_cache *owner, uint32_t number, uint32_t word, uint64_t mask);

// What others freed becomes part of the truth. By the owner, or while it stands still. Holds no lock.
void settle_remote(thread_cache *cache, uint32_t size_class);

// R2: for a cache that has given up spans of the class. Under the class's lock.
void redirect_remote(thread_cache *cache, uint32_t size_class);

// Takes a span's pending blocks; how many are left that are counted, but whose bits are not set yet. Whoever it
// belongs to.
uint32_t take_pending(ty_heap *heap, uint32_t number);

} // namespace taiyen
