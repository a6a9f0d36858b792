// The functions of heap.h about blocks.
#include "arguments.hpp"
#include "plain.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

// Kept out of the plain calls on volatile heaps: those go straight to the heap layer, without a frame of their own.
namespace {

void *alloc_in_txn(const plain_calls *calls, ty_heap *heap, size_t size, size_t alignment) {
    ty_txn *txn;
    if (ty_status status = find_txn(calls, heap, "allocate a block", &txn))
        return none(status);
    return calls->alloc(txn, size, alignment);
}

[[gnu::noinline]] void *alloc_slowly(ty_heap *heap, size_t size, bool zeroed) {
    if (ty_status status = check_heap(heap, "allocate a block"))
        return none(status);
    if (const plain_calls *calls = calls_for(heap))
        return alloc_in_txn(calls, heap, size, 0); // zeroed in any case
    return zeroed ? heap_alloc(heap, size, 0, true) : heap_alloc(heap, size);
}

[[gnu::noinline]] void *resize_slowly(void *block, size_t size) {
    if (ty_status status = check_pointer(block, "resize a block", "the block"))
        return none(status);
    const plain_calls *calls = calls_for_block(block);
    ty_txn *txn;
    if (!calls)
        return heap_resize(block, size);
    if (ty_status status = find_txn(calls, heap_of(block), "resize a block", &txn))
        return none(status);
    return calls->resize(txn, block, size);
}

[[gnu::noinline]] ty_status free_slowly(void *block) {
    const plain_calls *calls = calls_for_block(block);
    ty_txn *txn;
    if (!calls)
        return heap_free(block);
    if (ty_status status = find_txn(calls, heap_of(block), "free a block", &txn))
        return status;
    return calls->free(txn, block);
}

} // namespace

void *ty_alloc(ty_heap *heap, size_t size) {
    if (!heap || any_transactional()) [[unlikely]]
        return alloc_slowly(heap, size, false);
    return heap_alloc(heap, size);
}

void *ty_alloc_zeroed(ty_heap *heap, size_t size) {
    if (!heap || any_transactional()) [[unlikely]]
        return alloc_slowly(heap, size, true);
    return heap_alloc(heap, size, 0, true);
}

void *ty_alloc_aligned(ty_heap *heap, size_t size, size_t alignment) {
    constexpr const char *call = "allocate an aligned block";
    if (ty_status status = check_heap(heap, call))
        return none(status);
    if (ty_status status = check_alignment(heap, alignment, call))
        return none(status);
    if (const plain_calls *calls = calls_for(heap))
        return alloc_in_txn(calls, heap, size, alignment);
    return heap_alloc(heap, size, alignment, false);
}

ty_status ty_alloc_at(ty_heap *heap, void *address, size_t size) {
    constexpr const char *call = "allocate a block at an address";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(address, call, "the address"))
        return status;
    const plain_calls *calls = calls_for(heap);
    ty_txn *txn;
    if (!calls)
        return heap_alloc_at(heap, address, size);
    if (ty_status status = find_txn(calls, heap, call, &txn))
        return status;
    return calls->alloc_at(txn, address, size);
}

void *ty_resize(void *block, size_t size) {
    if (!block || any_transactional()) [[unlikely]]
        return resize_slowly(block, size);
    return heap_resize(block, size);
}

ty_status ty_resize_in_place(void *block, size_t size) {
    if (ty_status status = check_pointer(block, "resize a block", "the block"))
        return status;
    const plain_calls *calls = calls_for_block(block);
    ty_txn *txn;
    if (!calls)
        return heap_resize_in_place(block, size);
    if (ty_status status = find_txn(calls, heap_of(block), "resize a block", &txn))
        return status;
    return calls->resize_in_place(txn, block, size);
}

ty_status ty_free(void *block) {
    if (any_transactional()) [[unlikely]]
        return free_slowly(block);
    return heap_free(block);
}

size_t ty_usable_size(const void *block) {
    if (check_pointer(block, "get the size of a block", "the block"))
        return 0;
    return heap_usable_size(block);
}
