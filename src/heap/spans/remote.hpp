// Frees by threads that do not own the span, without a lock.
//
// The freeing thread counts the block in the span's `pending`, sets its bit in the remote bitmap, and, if it was the
// first to count, queues the span with the owner's cache, in this order. The owner frees the blocks in the persistent
// metadata, clears their bits in the remote bitmap, and subtracts them from the count.
//
// R1: a span is in one queue at most, and is not released while blocks are pending.
// R2: a queue that has lost its owner is drained by the thread that queued something there: having queued a span, it
//      reads the owner once more, as the owner, having given up its spans, reads its queue.
// R6: of threads that free a block at the same instant one sets its bit; the others are refused. What they have counted
//      is added to `refused`, and subtracted from the count by the thread that takes the blocks: a count that fell
//      while the span is queued would break R1.
// R7: a thread that releases an empty span first sets its count to `pending_gone`, from 0. A later thread with a block
//      that it had found live, and that another freed since, counts nothing there.
// R8: a thread that has counted checks once more that the block is allocated, before it sets the bit: it may be free
//      since, or the span's number may be another's. Blocks are freed in the persistent metadata before their bits are
//      cleared, so that a freed block is always seen to be free in one of the two.
// R9: what others freed and an owner has not received is bounded: each time that it passes a multiple of its share, the
//      freeing thread takes the owner's cache, if its thread is not working in it, and flushes it: an owner that sleeps
//      never does so itself.
#pragma once

#include "../pages/pages.hpp"

namespace taiyen {

struct free_result {
    bool freed;            // false: it was not allocated
    thread_cache *overdue; // R9: too much waits for this owner; NULL: none
};

// Blocks of one word of a bitmap.
struct word_blocks {
    uint32_t head; // of their span
    uint32_t word;
    uint64_t mask;
};
// Frees blocks that were seen to be live in a span that had this number, and whose owner was another thread's cache.
// The caller holds no lock. Not freed: another thread freed one of them meanwhile; the others are freed.
free_result free_remotely(ty_heap *heap, thread_cache *owner, uint32_t number, word_blocks blocks);

// R9: whether the growth of what waits has passed a multiple of the share.
inline bool passes_share(const thread_cache *owner, uint64_t before, uint64_t after) {
    return (before ^ after) >=
           owner->heap->waiting_share.load(std::memory_order_relaxed); // waiting_share is a power of two
}

// Frees in the persistent metadata what others freed. By the owner, or while it is stopped. The caller holds no lock.
void flush_remote(thread_cache *cache, uint32_t size_class);

// R2: for a cache that has given up spans of the class: drains its queue. Under the class's lock.
void redirect_remote(thread_cache *cache, uint32_t size_class);

// Takes a span's pending blocks, whoever owns it. Returns how many are counted, but neither set nor refused yet.
uint32_t take_pending(ty_heap *heap, uint32_t number);

} // namespace taiyen
