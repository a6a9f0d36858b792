// Frees of blocks of other threads' spans, where threads hold blocks. Who frees them gathers them, and sends each owner
// its own in a parcel: a list of blocks, in a block of the heap itself. The owner, before it takes blocks from the
// persistent metadata, puts those of its parcels on its stacks, and so does with the parcels' own blocks. The
// persistent metadata has all of them as allocated meanwhile; no span is looked at, and nothing but the parcel travels
// between the two processors.
//
// R3: a thread that ends shuts its cache's inbox. Who finds it shut frees the blocks in the persistent metadata (R1,
// R2). What comes
//     to a cache that another thread has taken over is sent on.
// R4: a heap that is paused has nothing under way.
#pragma once

#include "magazine.hpp"

namespace taiyen {

inline constexpr uint32_t parcel_blocks_max = outgoing_max;
struct parcel {
    parcel *next;
    uint64_t count;
    char *blocks[parcel_blocks_max];
};
static_assert(sizeof(parcel) == 512);

// The thread's own frees of what is not in a span of its own; stack: that of its span's owner, NULL if it has none.
cached_free send_later(thread_cache *cache, const void *block, const magazine *stack);

bool has_parcels(const thread_cache *cache);
void open_parcels(thread_cache *cache); // its own ones

void open_inbox(thread_cache *cache); // a thread gets the cache
void shut_inbox(thread_cache *cache); // it is about to give up its spans: R3
void send_all(thread_cache *cache);   // its thread ends, and it rests: R5 in cache.hpp
void deliver(thread_cache *cache);    // all threads stand still: R4

// Of magazine.cpp: the stacks.
void put_on_stacks(thread_cache *cache, char *const *blocks, uint64_t count); // told if they are no blocks
char *take_without_parcels(thread_cache *cache, uint32_t size_class);         // NULL with the error detail set
void tell_wrong_free(const ty_heap *heap, const void *block);

// The stack that stands for a block's span; NULL if no thread owns it. In an array of its owner's cache.
inline magazine *stack_for(const ty_heap *heap, uint64_t offset) {
    return heap->page_stacks[offset / page_bytes].load(std::memory_order_relaxed);
}
// Caches start at multiples of a power of two that is no less than their size.
inline thread_cache *cache_with(const ty_heap *heap, const magazine *cached) {
    return reinterpret_cast<thread_cache *>(reinterpret_cast<uintptr_t>(cached) &
                                            ~uintptr_t{heap->cache_alignment - 1});
}

} // namespace taiyen
