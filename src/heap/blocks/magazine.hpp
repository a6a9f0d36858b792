// Held blocks: what makes the drop-in malloc fast. A thread holds blocks that it freed, or took many at a time, in a
// stack for each class. The persistent metadata has them as allocated: to take or free one is to move a pointer, and
// the persistent metadata is changed for many at once, when a stack is filled or is full. A pause empties the stacks,
// so that all are free in it.
//
// The price is that a block that is freed twice is told at once only if it was the last one freed; else when the stack
// is emptied, and not at all if it was allocated again meanwhile. So the heaps of programs that want to know do
// without.
#pragma once

#include "../threads/threads.hpp"

namespace taiyen {

// This thread's cache of the heap whose blocks are held; one that holds nothing where it has none.
extern constinit thread_local thread_cache *holding_cache;

// The heap's class_of: at a fixed address, an allocation need not wait for where the cache and its heap are.
extern uint8_t cached_class_of[small_bytes_max / 8 + 1];

// Makes a heap that nobody has used yet the process's one whose threads hold blocks. Blocks of 9 bytes and more start
// at multiples of 16. wrong_free is called with what turns out late not to have been a live block, with the error
// detail set.
ty_status hold_blocks(ty_heap *heap, void (*wrong_free)(const void *block));

// From hide_cached to show_cached the calls in line leave all of this thread's calls: whoever hides decides in the slow
// ones.
void hide_cached();
void show_cached();

// What the calls in line leave: as heap_alloc and heap_free.
void *alloc_cached_slowly(ty_heap *heap, size_t size);
ty_status free_cached_slowly(void *block);
// stack: what try_free_cached gave. The thread has entered, and leaves.
ty_status free_cached_elsewhere(void *block, const magazine *stack);

// The bytes that a block can hold that is an extent or in a span that a thread owns. That the block is free is
// found out as seldom as by a free of it. No lock. 0: ask heap_usable_size.
size_t cached_usable_size(const void *block);

// Pops from a stack whose blocks have the alignment, a power of two. NULL: ask heap_alloc.
void *try_alloc_cached_aligned(size_t size, size_t alignment);

// NULL: ask alloc_cached_slowly.
[[gnu::always_inline]] inline void *try_alloc_cached(size_t size) {
    thread_cache *cache = holding_cache;
    if (size > small_bytes_max || !try_enter(cache, safepoint_holds)) [[unlikely]]
        return nullptr;
    magazine &cached = cache->cached[cached_class_of[(size + 7) / 8]];
    char *block = cached.top[-1];
    if (block != nullptr) [[likely]]
        cached.top--;
    leave(cache);
    return block;
}

// Elsewhere: the block is not in a span of the thread's own, which has entered: ask free_cached_elsewhere, with the
// stack. Not_free: ask free_cached_slowly.
enum class tried_free { done, elsewhere, not_free };

[[gnu::always_inline]] inline tried_free try_free_cached(void *block, const magazine **stack) {
    thread_cache *cache = holding_cache;
    uint64_t offset = reinterpret_cast<uintptr_t>(block) - cache->base;
    if (offset >= cache->bytes || !try_enter(cache, safepoint_holds)) [[unlikely]]
        return tried_free::not_free;
    magazine *cached = cache->page_stacks[offset / page_bytes].load(std::memory_order_relaxed);
    *stack = cached;
    if (!is_part_of(cache, cached)) [[unlikely]]
        return tried_free::elsewhere;
    char **top = cached->top;
    bool exact = find_place(cached->reciprocal, offset & cached->span_mask).exact;
    bool possible = exact && top != cached->end && top[-1] != block;
    if (possible) [[likely]] {
        __builtin_prefetch(block, 1); // it is allocated again soon, and its line may have left the cache
        *top = static_cast<char *>(block);
        cached->top = top + 1;
    }
    leave(cache);
    return possible ? tried_free::done : tried_free::not_free;
}

} // namespace taiyen
