// The plain calls on transactional heaps take part in the thread's transaction. While no such heap is open, calls on
// other heaps pay only one load.
#pragma once

#include "src/txn/txn.hpp"

namespace taiyen {

// NULL: the heap, or the block's, is not transactional.
inline const plain_calls *calls_for(ty_heap *heap) {
    const plain_calls *calls = any_transactional() ? transactional_calls.load(std::memory_order_relaxed) : nullptr;
    return calls != nullptr && calls->is_transactional(heap) ? calls : nullptr;
}

inline const plain_calls *calls_for_block(const void *block) {
    ty_heap *heap = any_transactional() ? heap_of(block) : nullptr;
    return heap != nullptr ? calls_for(heap) : nullptr;
}

inline ty_status find_txn(const plain_calls *calls, ty_heap *heap, const char *call, ty_txn **txn) {
    *txn = calls->current(heap);
    if (*txn)
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s: the heap is transactional, and this thread has no transaction", call)
        .remedy("call it between ty_begin and ty_commit");
}

} // namespace taiyen
