// What the allocator knows of a heap's checks: calls that stand in for its own, through a table, so that a program that
// never starts checks is linked without them. checks/check_runtime.hpp has what stands behind it.
#pragma once

#include "heap_runtime.hpp"

namespace taiyen {

struct check_calls {
    // The allocator's calls on a checked heap. caller: a return address from which the stacks are told.
    void *(*alloc)(ty_heap *heap, size_t size, size_t alignment, bool zeroed, const void *caller);
    ty_status (*free)(ty_heap *heap, const char *verb, void *block, const void *caller);
    void *(*resize)(ty_heap *heap, void *block, size_t size, const void *caller);
    ty_status (*resize_in_place)(ty_heap *heap, void *block, size_t size);
    size_t (*usable_size)(ty_heap *heap, const void *block);
    // Whether a call with a block is one of these: on a heap that only samples, those with a sample.
    bool (*is_checked)(ty_heap *heap, const void *block);
    // The live block that holds the address, as the program sees it; false: none.
    bool (*block_at)(ty_heap *heap, const void *address, ty_block *block);
    // Sampling: whether a block is to get a guard page now; and such a block, or NULL where there can be none.
    bool (*sample_due)(ty_heap *heap);
    void *(*take_sample)(ty_heap *heap, size_t size, const void *caller);
    // For a paused heap: whether the persistent metadata's block is one that the program knows, and as what; statistics
    // without those that it does not know; and what is wrong with any block, as texts. Returns how many.
    bool (*as_program_sees)(const ty_heap *heap, ty_block *block);
    void (*subtract_freed)(const ty_heap *heap, ty_heap_stats *stats);
    uint64_t (*verify)(const ty_heap *heap, ty_problem_callback *callback, void *context);
    // The heap's end: what is found then is told; and all is dropped.
    void (*finish)(ty_heap *heap);
    void (*stop)(ty_heap *heap);
};

struct check_hooks {
    const check_calls *calls = nullptr;
    unsigned flags = 0; // TY_CHECK_ values
};

// A heap with any of the flags is checked in each call; one that only samples has records of its samples alone.
inline bool checks_all(const ty_heap *heap) {
    return heap->checks != nullptr && heap->checks->flags != 0;
}
inline bool is_checked(ty_heap *heap, const void *block) {
    return heap->checks != nullptr && heap->checks->calls->is_checked(heap, block);
}

} // namespace taiyen
