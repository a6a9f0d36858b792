// The functions of scope.h: a heap as the malloc of a thread, together with the drop-in.
#include "arguments.hpp"
#include "plain.hpp"
#include <taiyen/scope.h>

using namespace taiyen;

namespace {

// The scopes of a thread, the outermost first.
struct scopes {
    ty_heap *heaps[TY_SCOPES_MAX];
    unsigned count;
};
constinit thread_local scopes entered{};

// ---- Called by the drop-in, while the thread is in no scope.

void *alloc_in(ty_heap *heap, size_t size, size_t alignment, bool zeroed) {
    if (alignment <= 16) {
        // Blocks whose sizes are multiples of 16 start at multiples of 16.
        size_t whole = alignment == 16 && size < 16 ? 16 : size;
        return zeroed ? ty_alloc_zeroed(heap, whole) : ty_alloc(heap, whole);
    }
    void *block = ty_alloc_aligned(heap, size, alignment);
    return block != nullptr && zeroed ? memset(block, 0, size) : block;
}

// The heap may have been closed within the scope, so each call checks.
void *alloc(void *of, size_t size, size_t alignment, bool zeroed, const void *caller) {
    auto *heap = static_cast<ty_heap *>(of);
    if (check_heap(heap, "allocate a block"))
        return nullptr;
    void *block = alloc_in(heap, size, alignment, zeroed);
    if (block == nullptr)
        return nullptr;
    if (const plain_calls *transactional = calls_for(heap))
        transactional->note_scoped(transactional->current(heap), block); // M11: the scope has allocated it
    heap_note_block(block, caller);
    return block;
}

// M11: blocks that a rollback has kept are resized without a transaction.
void *resize_in(const plain_calls *transactional, void *block, size_t size) {
    if (transactional->is_kept(block))
        return transactional->resize_kept(block, size);
    ty_txn *txn;
    if (find_txn(transactional, heap_of(block), "resize a block", &txn))
        return nullptr;
    return transactional->resize_scoped(txn, block, size);
}

void *resize(void *block, size_t size, const void *caller) {
    heap_forget_block(block); // before another thread can have it
    const plain_calls *transactional = calls_for_block(block);
    void *resized = transactional != nullptr ? resize_in(transactional, block, size) : ty_resize(block, size);
    heap_note_block(resized != nullptr ? resized : block, caller);
    return resized;
}

bool free_block(void *block) {
    heap_forget_block(block);
    const plain_calls *transactional = calls_for_block(block);
    if (transactional != nullptr && transactional->is_kept(block)) // M11: a rollback has kept the block
        return transactional->free_kept(block) == TY_OK;
    return ty_free(block) == TY_OK;
}

bool owns(const void *block) {
    return heap_of(block) != nullptr;
}

constexpr os::current_malloc_calls calls = {alloc, resize, free_block, ty_usable_size, owns, ty_error_text};

// ---- Entering

constexpr const char *call = "enter a scope of the heap";

// M8: a scope of a transactional heap is within a tracked transaction, as its code declares no stores.
ty_status check_transaction(ty_heap *heap, const plain_calls *transactional) {
    ty_txn *txn;
    if (ty_status status = find_txn(transactional, heap, call, &txn))
        return status;
    if (ty_txn_stores(txn) == TY_STORES_DEFAULT)
        return ty_set_stores(heap, TY_STORES_TRACKED);
    if (ty_txn_stores(txn) == TY_STORES_DECLARED)
        return failure(TY_E_UNSUPPORTED,
                       "%s: stores of its transaction are to be declared, which malloc's callers don't", call)
            .remedy("begin it with TY_STORES_TRACKED");
    return TY_OK;
}

// Allocates a block to find out whether one can be allocated.
ty_status check_writable(ty_heap *heap) {
    void *block = ty_alloc(heap, 16);
    if (block != nullptr)
        return ty_free(block);
    const ty_error error = keep_error();
    return error.status;
}

ty_status check_scope(ty_heap *heap) {
    if (ty_status status = check_heap(heap, call))
        return status;
    const plain_calls *transactional = calls_for(heap);
    if (transactional != nullptr ? transactional->is_concurrent(heap) : heap_may_be_concurrent(heap))
        return failure(TY_E_UNSUPPORTED, "%s: it is concurrent, so loads and stores have calls of their own", call)
            .remedy("use a snapshot heap, or a transactional one that is not concurrent");
    if (transactional != nullptr)
        return check_transaction(heap, transactional);
    return check_writable(heap);
}

ty_status no_drop_in() {
    return failure(TY_E_UNSUPPORTED, "%s: malloc is not the drop-in of this version of the library", call)
        .remedy("link libtaiyen-malloc, or run the program with LD_PRELOAD=libtaiyen-malloc.so");
}

// Redirects malloc to the last scope, if there is one.
bool set_malloc(ty_heap *heap) {
    os::set_current_malloc *set = os::find_set_current_malloc();
    if (set == nullptr)
        return false;
    os::thread_malloc.calls = &calls;
    os::thread_malloc.heap = heap;
    const os::drop_in_calls *drop_in = set(heap != nullptr ? &os::thread_malloc : nullptr, os::current_malloc_version);
    if (drop_in == nullptr)
        return false;
    os::drop_in.store(drop_in, std::memory_order_relaxed); // always the same
    return true;
}

// M7: this copy of the library may be in a plug-in that is unloaded. This runs last there, as objects of the plug-in
// may free blocks in their destructors.
[[gnu::destructor(101)]] void be_forgotten() {
    if (const os::drop_in_calls *drop_in = os::drop_in.load(std::memory_order_relaxed))
        drop_in->forget(&calls);
}

} // namespace

ty_status ty_enter(ty_heap *heap) {
    if (entered.count == TY_SCOPES_MAX)
        return failure(TY_E_MEMORY, "%s: the thread is in %u scopes already", call, TY_SCOPES_MAX)
            .remedy("leave some of them first (ty_leave)");
    if (heap != nullptr)
        if (ty_status status = check_scope(heap))
            return status;
    if (!set_malloc(heap))
        return no_drop_in();
    if (heap != nullptr)
        heap_watch_end(heap, heap_end_reporting);
    entered.heaps[entered.count++] = heap;
    return TY_OK;
}

void ty_on_dangling(ty_dangling_callback *callback, void *context) {
    heap_set_dangling_callback(callback, context);
}

ty_status ty_note_sites(bool on) {
    return heap_note_sites(on);
}

ty_status ty_leave() {
    if (entered.count == 0)
        return failure(TY_E_ARGUMENT, "leave a scope: the thread is in none").remedy("pair it with ty_enter");
    entered.count--;
    static_cast<void>(set_malloc(entered.count != 0 ? entered.heaps[entered.count - 1] : nullptr));
    return TY_OK;
}
