// The functions of heap.h that inspect a heap.
#include "arguments.hpp"
#include "callbacks.hpp"
#include "src/heap/heap.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

ty_class_table ty_heap_class_table(ty_heap *heap) {
    if (check_heap(heap, "list the size classes of a heap"))
        return TY_CLASSES_CACHE_LINE;
    return heap_classes(heap);
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
    guarded<ty_block_callback> guard(callback, context);
    return guard.end(heap_each_block(heap, guard.callback(), &guard));
}

ty_status ty_each_extent(ty_heap *heap, ty_extent_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's extents";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    guarded<ty_extent_callback> guard(callback, context);
    return guard.end(heap_each_extent(heap, guard.callback(), &guard));
}

ty_status ty_heap_verify(ty_heap *heap, ty_problem_callback *callback, void *context) {
    if (ty_status status = check_heap(heap, "verify a heap"))
        return status;
    guarded<ty_problem_callback> guard(callback, context);
    return guard.end(heap_verify(heap, guard.callback(), &guard));
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
    guarded<ty_class_callback> guard(callback, context);
    return guard.end(heap_each_class(heap, guard.callback(), &guard));
}

ty_status ty_each_thread(ty_heap *heap, ty_thread_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's threads";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    guarded<ty_thread_callback> guard(callback, context);
    return guard.end(heap_each_thread(heap, guard.callback(), &guard));
}

ty_status ty_heap_size_classes(ty_heap *heap, ty_size_class *classes, size_t room, size_t *count) {
    constexpr const char *call = "list a heap's size classes";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(count, call, "the place for the count"))
        return status;
    if (room != 0)
        if (ty_status status = check_pointer(classes, call, "the place for the classes"))
            return status;
    ty_size_class found;
    for (*count = 0; heap_size_class(heap, *count, &found); ++*count)
        if (*count < room)
            classes[*count] = found;
    return TY_OK;
}
