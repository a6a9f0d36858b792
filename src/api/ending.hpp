// What every call that ends a heap does before and after for the heap's service, which may be NULL.
#pragma once

#include "src/heap/heap.hpp"

namespace taiyen {

inline ty_status prepare_end(heap_service *service, bool discards) {
    return service ? service->prepare_end(service, discards) : TY_OK;
}

inline void release(heap_service *service) {
    if (service)
        service->release(service);
}

// Ends the heap by the function. For one that a scope has entered, reports variables that lead to its blocks.
template <class End>
ty_status end_heap(ty_heap *heap, const char *path, End &&end) {
    end_watch *watch = heap_end_watch(heap);
    if (watch == nullptr)
        return end();
    return watch(
        heap, path, [](void *context) { return (*static_cast<End *>(context))(); }, &end);
}

} // namespace taiyen
