// Releases the memory of all free extents.
#include "../pages/pages.hpp"
#include "walk.hpp"

namespace taiyen {

ty_status heap_purge(ty_heap *heap, size_t *released_bytes) {
    size_t released = 0;
    pause_guard paused(heap, pause_to::change);
    extent_walk walk(heap);
    page_extent extent;
    const bool takes_back = heap->writable && heap->owner.give_back != nullptr;
    while (takes_back && walk.next(&extent)) {
        if (kind_at(heap, extent.first) == page_free)
            released += purge_extent(heap, extent);
    }
    if (released_bytes != nullptr)
        *released_bytes = released;
    return !takes_back || !walk.damaged() ? TY_OK : tables_damaged("no extent starts there", heap, walk.page());
}

} // namespace taiyen
