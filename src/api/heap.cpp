// The functions of heap.h about whole heaps. Those about blocks, and those that inspect heaps, are in other files, so
// that a program is linked only with what it calls.
#include "arguments.hpp"
#include "ending.hpp"
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

[[gnu::cold]] ty_status ty_heap_create(const ty_heap_options *options, ty_heap **heap) {
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

[[gnu::cold]] ty_status ty_heap_destroy(ty_heap *heap) {
    if (!heap)
        return TY_OK;
    if (ty_status status = check_heap(heap, "destroy a heap"))
        return status;
    if (heap_image_of(heap) != nullptr)
        return failure(TY_E_ARGUMENT, "destroy a heap that lives in files").remedy("use ty_close or ty_discard for it");
    heap_service *service = heap_service_of(heap);
    if (ty_status status = prepare_end(service, true))
        return status;
    forget_node_heap(heap);
    ty_status status = end_heap(heap, "", [heap] { return volatile_destroy(heap); });
    release(service);
    return status;
}

ty_heap *ty_heap_of(const void *address) {
    return heap_of(address);
}

void *ty_heap_base(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "get a heap's base"))
        return none(status);
    return heap_base(heap);
}

ty_status ty_heap_get_nodes(ty_heap *heap, uint64_t *nodes) {
    constexpr const char *call = "list a heap's nodes";
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

ty_status ty_heap_set_limits(ty_heap *heap, const ty_heap_limits *limits) {
    constexpr const char *call = "set a heap's limits";
    ty_heap_limits known = TY_HEAP_LIMITS_INIT;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(limits, call, "the limits"))
        return status;
    if (ty_status status = copy_options(limits, &known, sizeof known, call, "ty_heap_limits", "TY_HEAP_LIMITS_INIT"))
        return status;
    if (heap_image_of(heap) != nullptr)
        return failure(TY_E_UNSUPPORTED, "%s: it lives in files", call)
            .remedy("bound it by the limit_bytes it is created with");
    return heap_set_limits(heap, known);
}

ty_status ty_heap_purge(ty_heap *heap, size_t *released_bytes) {
    if (ty_status status = check_heap(heap, "give a heap's free memory back"))
        return status;
    size_t released = 0;
    const heap_image *image = heap_image_of(heap);
    const ty_status status = image ? image->purge(heap, &released) : heap_purge(heap, &released);
    if (!status && released_bytes)
        *released_bytes = released;
    return status;
}
