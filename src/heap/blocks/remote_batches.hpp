// Remote frees with thread caches: frees of blocks in other threads' spans. The freeing thread collects them, and sends
// each owner its own in a remote-free batch: a list of blocks, in a block of the heap itself. The owner, before it
// takes blocks from the persistent metadata, puts those of its batches on its stacks, and the batches' own blocks, too.
// The persistent metadata has all of them as allocated meanwhile; no span is accessed, and only the batch travels
// between the two processors.
//
// R3: a thread that ends closes its cache's remote-free queue. A thread that finds it closed frees the blocks in the
//     persistent metadata (R1, R2 in remote.hpp). What reaches a cache that another thread has taken over is sent on.
// R4: a paused heap has nothing under way.
#pragma once

#include "magazine.hpp"

namespace taiyen {

inline constexpr uint32_t remote_batch_blocks_max = outgoing_max;
struct remote_batch {
    remote_batch *next;
    uint64_t count;
    char *blocks[remote_batch_blocks_max];
};
static_assert(sizeof(remote_batch) == 512);

// The thread's own free of a block that is not in a span of its own. stack: that of the span's owner, NULL if it has
// none.
cached_free send_later(thread_cache *cache, const void *block, const magazine *stack);

bool has_remote_batches(const thread_cache *cache);
void receive_remote_batches(thread_cache *cache); // the calling thread's own

void open_remote_queue(thread_cache *cache);  // when a thread gets the cache
void close_remote_queue(thread_cache *cache); // before the cache releases its spans: R3
void send_all(thread_cache *cache);           // when its thread ends, and it rests: R5 in cache.hpp
void deliver(thread_cache *cache);            // while all threads are stopped: R4

// In magazine.cpp: the stacks.
void put_on_stacks(thread_cache *cache, char *const *blocks, uint64_t count); // what is no block is reported
char *take_without_remote_batches(thread_cache *cache, uint32_t size_class);  // NULL with the error detail set
void report_wrong_free(const ty_heap *heap, const void *block);

// The stack of a block's span, in its owner's cache; NULL if no thread owns the span.
inline magazine *stack_for(const ty_heap *heap, uint64_t offset) {
    return heap->page_stacks[offset / page_bytes].load(std::memory_order_relaxed);
}
// Caches are aligned to a power of two that is no less than their size.
inline thread_cache *cache_with(const ty_heap *heap, const magazine *cached) {
    return reinterpret_cast<thread_cache *>(reinterpret_cast<uintptr_t>(cached) &
                                            ~uintptr_t{heap->cache_alignment - 1});
}

} // namespace taiyen
