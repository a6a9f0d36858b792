// Thread caches (magazines), which make the drop-in malloc fast. A thread caches blocks that it freed, or took many at
// a time, in a stack for each class. The persistent metadata has them as allocated: to take or free one is to move a
// pointer, and the persistent metadata is changed for many at once, when a stack is filled or is full. A pause empties
// the stacks, so that all cached blocks are free in it.
//
// The price: a double free is detected at once only for the block that was freed last; otherwise when the stack is
// emptied, and not at all if the block was allocated again meanwhile. So a heap that checks its program works without
// them.
#pragma once

#include "../threads/threads.hpp"

namespace taiyen {

// This thread's cache of the heap whose blocks are cached; where it has none, one that holds nothing.
extern constinit thread_local thread_cache *magazine_cache;

// A copy of the heap's class_of at a fixed address: an allocation need not first load the addresses of the cache and
// its heap.
extern uint8_t cached_class_of[small_bytes_max / 8 + 1];

// Makes a heap that is not used yet the one of the process whose threads cache blocks. Blocks of 9 bytes and more start
// at multiples of 16. wrong_free is called with an address that late turns out not to be a live block, with the error
// detail set.
ty_status use_magazines(ty_heap *heap, void (*wrong_free)(const void *block));

// Between hide_magazines and show_magazines the inline calls handle none of this thread's calls: the slow paths decide.
void hide_magazines();
void show_magazines();

// The slow paths of the inline calls: as heap_alloc and heap_free.
void *alloc_cached_slowly(ty_heap *heap, size_t size);
ty_status free_cached_slowly(void *block);
// stack: as try_free_cached returned it. The thread has entered, and leaves.
ty_status free_cached_elsewhere(void *block, const magazine *stack);

// The usable bytes of a block that is an extent, or in a span that a thread owns. Detects a free block no more often
// than its free does. Takes no lock. 0: call heap_usable_size.
size_t cached_usable_size(const void *block);

// Pops from a stack whose blocks have the alignment, a power of two. NULL: call heap_alloc.
void *try_alloc_cached_aligned(size_t size, size_t alignment);

// NULL: call alloc_cached_slowly.
[[gnu::always_inline]] inline void *try_alloc_cached(size_t size) {
    thread_cache *cache = magazine_cache;
    if (size > small_bytes_max || !try_enter(cache, safepoint_magazines)) [[unlikely]]
        return nullptr;
    magazine &cached = cache->cached[cached_class_of[(size + 7) / 8]];
    char *block = cached.top[-1];
    if (block != nullptr) [[likely]]
        cached.top--;
    leave(cache);
    return block;
}

// elsewhere: the block is not in a span of the thread's own; the thread has entered: call free_cached_elsewhere, with
// the stack. not_free: call free_cached_slowly.
enum class tried_free { done, elsewhere, not_free };

[[gnu::always_inline]] inline tried_free try_free_cached(void *block, const magazine **stack) {
    thread_cache *cache = magazine_cache;
    uint64_t offset = reinterpret_cast<uintptr_t>(block) - cache->base;
    if (offset >= cache->bytes || !try_enter(cache, safepoint_magazines)) [[unlikely]]
        return tried_free::not_free;
    magazine *cached = cache->page_stacks[offset / page_bytes].load(std::memory_order_relaxed);
    *stack = cached;
    if (!is_part_of(cache, cached)) [[unlikely]]
        return tried_free::elsewhere;
    char **top = cached->top;
    bool exact = find_place(cached->reciprocal, offset & cached->span_mask).exact;
    bool possible = exact && top != cached->end && top[-1] != block;
    if (possible) [[likely]] {
        __builtin_prefetch(block, 1); // it is soon allocated again, and its line may have left the cache
        *top = static_cast<char *>(block);
        cached->top = top + 1;
    }
    leave(cache);
    return possible ? tried_free::done : tried_free::not_free;
}

} // namespace taiyen
