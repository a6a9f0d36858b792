// What every call that ends a heap does before and after for the heap's service, which may be NULL.
#pragma once

#include "../heap/heap.hpp"

namespace taiyen {

inline ty_status prepare_end(heap_service *service, bool discards) {
    return service ? service->prepare_end(service, discards) : TY_OK;
}

inline void release(heap_service *service) {
    if (service)
        service->release(service);
}

} // namespace taiyen
