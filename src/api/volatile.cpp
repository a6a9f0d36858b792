#include "volatile.hpp"

namespace taiyen {

namespace {

size_t span_bytes(size_t limit_bytes) {
    const size_t wanted = limit_bytes ? limit_bytes : heap_limit_default;
    return (wanted + heap_granule_bytes - 1) & ~(heap_granule_bytes - 1);
}

ty_status format_and_attach(void *base, size_t bytes, const ty_heap_options &options, ty_heap **heap) {
    heap_owner owner = reserved_owner();
    owner.concurrent = options.concurrent;
    if (ty_status status = heap_format(base, bytes, options.classes, owner))
        return status;
    return heap_attach(base, bytes, owner, true, heap);
}

} // namespace

[[gnu::cold]] ty_status volatile_create(const ty_heap_options &options, ty_heap **heap) {
    size_t bytes = span_bytes(options.limit_bytes);
    void *base = nullptr;
    while (ty_status status =
               os::reserve(reinterpret_cast<uintptr_t>(options.base), bytes, heap_granule_bytes, &base)) {
        if (options.limit_bytes != 0 || bytes == heap_granule_bytes)
            return status;
        bytes /= 2; // take what there is, if the program gave no limit
    }
    if (ty_status status = options.numa_nodes != 0 ? os::bind_to_nodes(base, bytes, options.numa_nodes) : TY_OK) {
        static_cast<void>(os::release(base, bytes));
        return status;
    }
    const ty_status status = format_and_attach(base, bytes, options, heap);
    if (status)
        static_cast<void>(os::release(base, bytes)); // the first failure is the one to report
    return status;
}

ty_status volatile_destroy(ty_heap *heap) {
    void *base = heap_base(heap);
    const size_t bytes = heap_limit(heap);
    heap_finish_checks(heap);
    heap_detach(heap);
    static_cast<void>(os::release(base, bytes)); // the heap is gone in any case
    return TY_OK;
}

} // namespace taiyen
