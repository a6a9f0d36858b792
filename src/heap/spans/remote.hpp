// Frees by threads that do not own the span, without a lock.
//
// Who frees counts the block in the span's `pending`, sets its bit in the remote bitmap, and, if it was the first to
// count, queues the span with the owner's cache, in this order. The owner frees the blocks in the persistent metadata,
// takes the bits out of the bitmap, and them out of the count. R1: a span stands in one queue at most, and is not given
// back while blocks are pending. R2: a queue that has lost its owner is looked after by who queued something there:
// having queued a span, it looks at
//     the owner once more, as the owner, having given up its spans, looks at its queue.
// R6: of threads that free a block at the same instant one sets its bit; the others are refused. What they have counted
//     is noted in `refused`, and taken out of the count by who takes the blocks: a count that sank in the queue would
//     break R1.
// R7: who gives an empty span back first makes its count `pending_gone`, from 0. Who comes later with a block that it
//     had found live, freed by somebody else since, counts nothing there.
// R8: who has counted looks once more whether the block is allocated, before it sets the bit: it may be free since, or
//     its span's number another's. Blocks are freed in the persistent metadata before their bits are taken, so that one
//     that was freed is seen to be free in one of the two at any time.
// R9: what others freed and an owner has not looked at is bounded: each time that it passes a multiple of its share,
//     who frees takes the owner's cache, if its thread is not at work in it just now, and makes it give up what it has:
//     an owner that sleeps never looks itself.
#pragma once

#include "../pages/pages.hpp"

namespace taiyen {

struct free_result {
    bool freed;            // false: it was not allocated
    thread_cache *overdue; // R9: what waits for this owner is too much; NULL for nobody
};

// Blocks of one word of a bitmap.
struct word_blocks {
    uint32_t head; // of their span
    uint32_t word;
    uint64_t mask;
};
// Frees blocks that were seen to be live in a span that had this number, and whose owner was another thread's cache.
// The caller holds no lock. Not freed: one of them was freed by somebody else meanwhile; the others are freed.
free_result free_remotely(ty_heap *heap, thread_cache *owner, uint32_t number, word_blocks blocks);

// R9: what waits has grown from one to the other, and is too much.
inline bool passes_share(const thread_cache *owner, uint64_t before, uint64_t after) {
    return (before ^ after) >= owner->heap->waiting_share.load(std::memory_order_relaxed); // a power of two
}

// What others freed becomes part of the persistent metadata. By the owner, or while it stands still. Holds no lock.
void settle_remote(thread_cache *cache, uint32_t size_class);

// R2: for a cache that has given up spans of the class. Under the class's lock.
void redirect_remote(thread_cache *cache, uint32_t size_class);

// Takes a span's pending blocks; how many are left that are counted, but neither set nor refused yet. Whoever it
// belongs to.
uint32_t take_pending(ty_heap *heap, uint32_t number);

} // namespace taiyen
