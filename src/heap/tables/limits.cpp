#include "limits.hpp"

namespace taiyen {

void report_soft_limit(ty_heap *heap) {
    ty_limit_callback *reached;
    void *context;
    uint64_t used_bytes;
    {
        os::lock_guard guard(heap->pages_lock);
        if (!heap->soft_due.exchange(false, std::memory_order_relaxed))
            return; // another thread reports it
        reached = heap->limit_reached;
        context = heap->limit_context;
        used_bytes = heap->used_pages * page_bytes;
    }
    if (reached != nullptr)
        reached(heap, used_bytes, context);
}

ty_status heap_set_limits(ty_heap *heap, const ty_heap_limits &limits) {
    {
        os::lock_guard guard(heap->pages_lock);
        heap->soft_pages = limits.soft_bytes != 0 ? limits.soft_bytes / page_bytes : UINT64_MAX;
        heap->hard_pages = limits.hard_bytes != 0 ? limits.hard_bytes / page_bytes : UINT64_MAX;
        heap->limit_reached = limits.reached;
        heap->limit_context = limits.context;
        heap->keeps_extents.store(false, std::memory_order_relaxed); // from now on counts are exact
        heap->beyond_soft = heap->used_pages > heap->soft_pages;
        heap->soft_due.store(heap->beyond_soft, std::memory_order_relaxed);
    }
    after_growth(heap);
    return TY_OK;
}

} // namespace taiyen
