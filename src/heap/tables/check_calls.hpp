// The allocator's interface to a heap's checks: calls that replace its own, through a table, so that a program that
// never starts checks is linked without them. checks/check_runtime.hpp has the implementation's state.
#pragma once

#include "heap_runtime.hpp"

namespace taiyen {

struct check_calls {
    // The allocator's calls on a checked heap. caller: a return address from which stacks are reported.
    void *(*alloc)(ty_heap *heap, size_t size, size_t alignment, bool zeroed, const void *caller);
    ty_status (*free)(ty_heap *heap, const char *verb, void *block, const void *caller);
    void *(*resize)(ty_heap *heap, void *block, size_t size, const void *caller);
    ty_status (*resize_in_place)(ty_heap *heap, void *block, size_t size);
    size_t (*usable_size)(ty_heap *heap, const void *block);
    // Whether a call with this block must use this table: on a heap that only samples, for samples.
    bool (*is_checked)(ty_heap *heap, const void *block);
    // The live block that holds the address, as the program sees it. False: none.
    bool (*block_at)(ty_heap *heap, const void *address, ty_block *block);
    // Sampling: whether the next block is to get a guard page; and such a block, or NULL where none can be made.
    bool (*sample_due)(ty_heap *heap);
    void *(*take_sample)(ty_heap *heap, size_t size, const void *caller);
    // For a paused heap: whether a block of the persistent metadata is one that the program knows, and as what;
    // statistics without those that it does not know; and defects of any block, as texts, which returns their number.
    bool (*as_program_sees)(const ty_heap *heap, ty_block *block);
    void (*subtract_freed)(const ty_heap *heap, ty_heap_stats *stats);
    uint64_t (*verify)(const ty_heap *heap, ty_problem_callback *callback, void *context);
    // The end of the heap: reports what is found then, and drops everything.
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
