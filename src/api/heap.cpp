// The functions of heap.h, and the roots of any kind of heap.
#include "../image/image.hpp"
#include "arguments.hpp"
#include "volatile.hpp"
#include <bit>
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
    return volatile_destroy(heap);
}

void *ty_alloc(ty_heap *heap, size_t size) {
    if (!heap) [[unlikely]]
        return none(check_heap(heap, "allocate a block"));
    return heap_alloc(heap, size);
}

void *ty_alloc_zeroed(ty_heap *heap, size_t size) {
    if (!heap) [[unlikely]]
        return none(check_heap(heap, "allocate a block"));
    return heap_alloc(heap, size, 0, true);
}

void *ty_alloc_aligned(ty_heap *heap, size_t size, size_t alignment) {
    constexpr const char *call = "allocate an aligned block";
    if (ty_status status = check_heap(heap, call))
        return none(status);
    if (!std::has_single_bit(alignment) || alignment > heap_limit(heap))
        return none(failure(TY_E_ARGUMENT, "%s: the alignment is %zu", call, alignment)
                        .remedy("give a power of two up to the heap's limit of %zu bytes", heap_limit(heap)));
    return heap_alloc(heap, size, alignment, false);
}

ty_status ty_alloc_at(ty_heap *heap, void *address, size_t size) {
    constexpr const char *call = "allocate a block at an address";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(address, call, "the address"))
        return status;
    return heap_alloc_at(heap, address, size);
}

void *ty_resize(void *block, size_t size) {
    if (!block) [[unlikely]]
        return none(check_pointer(block, "resize a block", "the block"));
    return heap_resize(block, size);
}

ty_status ty_resize_in_place(void *block, size_t size) {
    if (ty_status status = check_pointer(block, "resize a block", "the block"))
        return status;
    return heap_resize_in_place(block, size);
}

ty_status ty_free(void *block) {
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
    if (ty_status status = check_pointer(name, call, "the name"))
        return status;
    const size_t length = strnlen(name, TY_ROOT_NAME_MAX + 1);
    if (length == 0 || length > TY_ROOT_NAME_MAX)
        return failure(TY_E_ARGUMENT, "%s with a name that is %s", call, length ? "too long" : "empty")
            .remedy("give a name of 1 to %u bytes", TY_ROOT_NAME_MAX);
    if (address && heap_of(address) != heap)
        return failure(TY_E_ARGUMENT, "%s: %p does not lie in the heap", call, address)
            .remedy("give the address of a block of this heap, or NULL to remove the root");
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
