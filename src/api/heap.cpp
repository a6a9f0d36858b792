// The functions of heap.h, and the roots of any kind of heap.
#include "../undo/undo.hpp"
#include "arguments.hpp"
#include "node_heaps.hpp"
#include "volatile.hpp"
#include <cstring>
#include <taiyen/taiyen.h>

using namespace taiyen;

#define TAIYEN_TEXT_(x) #x
#define TAIYEN_TEXT(x) TAIYEN_TEXT_(x)

const char *ty_version(void) {
    return TAIYEN_TEXT(TY_VERSION_MAJOR) "." TAIYEN_TEXT(TY_VERSION_MINOR) "." TAIYEN_TEXT(TY_VERSION_PATCH);
}

ty_status ty_heap_create(const ty_heap_options *options, ty_heap **heap) {
    constexpr const char *call = "create a volatile heap";
    ty_heap_options known = TY_HEAP_OPTIONS_INIT;
    if (ty_status status = check_pointer(heap, call, "the place for the heap"))
        return status;
    if (options)
        if (ty_status status =
                copy_options(options, &known, sizeof known, call, "ty_heap_options", "TY_HEAP_OPTIONS_INIT"))
            return status;
    if (ty_status status = check_new_heap(known.limit_bytes, known.base, number_of(known.classes), call))
        return status;
    return volatile_create(known, heap);
}

ty_status ty_heap_destroy(ty_heap *heap) {
    if (!heap)
        return TY_OK;
    if (image_kind(heap) != TY_VOLATILE)
        return failure(TY_E_ARGUMENT, "destroy a heap that lives in files").remedy("use ty_close or ty_discard for it");
    void *token;
    if (ty_status status = undo_prepare_close(heap, true, &token))
        return status;
    forget_node_heap(heap);
    ty_status status = volatile_destroy(heap);
    undo_release(token);
    return status;
}

// On transactional heaps the plain calls take part in the thread's transaction. While no such heap is open, all that
// the others pay is one load.
namespace {

bool in_transactions(ty_heap *heap) {
    return any_transactional() && is_transactional(heap);
}

bool block_in_transactions(const void *block) {
    if (!any_transactional()) [[likely]]
        return false;
    ty_heap *heap = heap_of(block);
    return heap && is_transactional(heap);
}

ty_status find_txn(ty_heap *heap, const char *call, ty_txn **txn) {
    *txn = txn_current(heap);
    if (*txn)
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s: the heap is transactional, and this thread has no transaction under way", call)
        .remedy("call it between ty_begin and ty_commit");
}

[[gnu::noinline]] void *alloc_in_txn(ty_heap *heap, size_t size, size_t alignment) {
    ty_txn *txn;
    if (ty_status status = find_txn(heap, "allocate a block", &txn))
        return none(status);
    return txn_alloc(txn, size, alignment);
}

[[gnu::noinline]] void *resize_in_txn(void *block, size_t size) {
    ty_txn *txn;
    if (ty_status status = find_txn(heap_of(block), "resize a block", &txn))
        return none(status);
    return txn_resize(txn, block, size);
}

[[gnu::noinline]] ty_status free_in_txn(void *block) {
    ty_txn *txn;
    if (ty_status status = find_txn(heap_of(block), "free a block", &txn))
        return status;
    return txn_free(txn, block);
}

} // namespace

void *ty_alloc(ty_heap *heap, size_t size) {
    if (!heap) [[unlikely]]
        return none(check_heap(heap, "allocate a block"));
    if (in_transactions(heap)) [[unlikely]]
        return alloc_in_txn(heap, size, 0);
    return heap_alloc(heap, size);
}

void *ty_alloc_zeroed(ty_heap *heap, size_t size) {
    if (!heap) [[unlikely]]
        return none(check_heap(heap, "allocate a block"));
    if (in_transactions(heap)) [[unlikely]]
        return alloc_in_txn(heap, size, 0);
    return heap_alloc(heap, size, 0, true);
}

void *ty_alloc_aligned(ty_heap *heap, size_t size, size_t alignment) {
    constexpr const char *call = "allocate an aligned block";
    if (ty_status status = check_heap(heap, call))
        return none(status);
    if (ty_status status = check_alignment(heap, alignment, call))
        return none(status);
    if (in_transactions(heap))
        return alloc_in_txn(heap, size, alignment);
    return heap_alloc(heap, size, alignment, false);
}

ty_status ty_alloc_at(ty_heap *heap, void *address, size_t size) {
    constexpr const char *call = "allocate a block at an address";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(address, call, "the address"))
        return status;
    ty_txn *txn;
    if (!in_transactions(heap))
        return heap_alloc_at(heap, address, size);
    if (ty_status status = find_txn(heap, call, &txn))
        return status;
    return txn_alloc_at(txn, address, size);
}

void *ty_resize(void *block, size_t size) {
    if (!block) [[unlikely]]
        return none(check_pointer(block, "resize a block", "the block"));
    if (block_in_transactions(block)) [[unlikely]]
        return resize_in_txn(block, size);
    return heap_resize(block, size);
}

ty_status ty_resize_in_place(void *block, size_t size) {
    if (ty_status status = check_pointer(block, "resize a block", "the block"))
        return status;
    ty_txn *txn;
    if (!block_in_transactions(block))
        return heap_resize_in_place(block, size);
    if (ty_status status = find_txn(heap_of(block), "resize a block", &txn))
        return status;
    return txn_resize_in_place(txn, block, size);
}

ty_status ty_free(void *block) {
    if (block_in_transactions(block)) [[unlikely]]
        return free_in_txn(block);
    return heap_free(block);
}

size_t ty_usable_size(const void *block) {
    if (check_pointer(block, "tell the size of a block", "the block"))
        return 0;
    return heap_usable_size(block);
}

ty_heap *ty_heap_of(const void *address) {
    return heap_of(address);
}

void *ty_heap_base(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "tell a heap's base"))
        return none(status);
    return heap_base(heap);
}

ty_status ty_heap_get_nodes(ty_heap *heap, uint64_t *nodes) {
    constexpr const char *call = "tell a heap's nodes";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(nodes, call, "the place for the nodes"))
        return status;
    return os::nodes_of(heap_base(heap), nodes);
}

ty_status ty_node_heap(ty_heap **heap) {
    if (ty_status status = check_pointer(heap, "find the heap of a node", "the place for the heap"))
        return status;
    return node_heap(os::current_node(), heap);
}

ty_status ty_block_of(const void *address, ty_block *block) {
    if (ty_status status = check_pointer(block, "find the block at an address", "the place for the block"))
        return status;
    return heap_block_of(address, block);
}

ty_status ty_each_block(ty_heap *heap, ty_block_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's blocks";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    return heap_each_block(heap, callback, context);
}

ty_status ty_each_area(ty_heap *heap, ty_area_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's areas";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    return heap_each_area(heap, callback, context);
}

ty_status ty_heap_verify(ty_heap *heap, ty_problem_callback *callback, void *context) {
    if (ty_status status = check_heap(heap, "verify a heap"))
        return status;
    return heap_verify(heap, callback, context);
}

ty_status ty_heap_get_stats(ty_heap *heap, ty_heap_stats *stats) {
    constexpr const char *call = "get a heap's statistics";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_output(stats, call, "ty_heap_stats"))
        return status;
    ty_heap_stats known{};
    known.struct_size = sizeof known;
    if (ty_status status = heap_get_stats(heap, &known))
        return status;
    copy_output(&known, sizeof known, stats);
    return TY_OK;
}

ty_status ty_each_class(ty_heap *heap, ty_class_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's size classes";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    return heap_each_class(heap, callback, context);
}

ty_status ty_each_thread(ty_heap *heap, ty_thread_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's threads";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    return heap_each_thread(heap, callback, context);
}

ty_status ty_heap_set_limits(ty_heap *heap, const ty_heap_limits *limits) {
    constexpr const char *call = "set a heap's limits";
    ty_heap_limits known = TY_HEAP_LIMITS_INIT;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(limits, call, "the limits"))
        return status;
    if (ty_status status = copy_options(limits, &known, sizeof known, call, "ty_heap_limits", "TY_HEAP_LIMITS_INIT"))
        return status;
    if (image_kind(heap) != TY_VOLATILE)
        return failure(TY_E_UNSUPPORTED, "%s: it lives in files", call)
            .remedy("bound it by the limit_bytes it is created with");
    return heap_set_limits(heap, known);
}

ty_status ty_heap_purge(ty_heap *heap, size_t *released_bytes) {
    if (ty_status status = check_heap(heap, "give a heap's free memory back"))
        return status;
    size_t released = 0;
    const ty_status status =
        image_kind(heap) == TY_VOLATILE ? heap_purge(heap, &released) : image_purge(heap, &released);
    if (!status && released_bytes)
        *released_bytes = released;
    return status;
}

void *ty_root(ty_heap *heap, const char *name) {
    constexpr const char *call = "look a root up";
    if (ty_status status = check_heap(heap, call))
        return none(status);
    if (ty_status status = check_pointer(name, call, "the name"))
        return none(status);
    return heap_root(heap, name);
}

ty_status ty_root_set(ty_heap *heap, const char *name, void *address) {
    constexpr const char *call = "set a root";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_root(heap, name, address, call))
        return status;
    ty_txn *txn;
    if (in_transactions(heap)) {
        if (ty_status status = find_txn(heap, call, &txn))
            return status;
        return txn_root_set(txn, name, address);
    }
    return heap_root_set(heap, name, address);
}

ty_status ty_each_root(ty_heap *heap, ty_root_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's roots";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    return heap_each_root(heap, callback, context);
}
