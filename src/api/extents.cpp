// ty_make_extents. In a file of its own: programs that do not use it are linked without its texts.
#include "arguments.hpp"
#include "plain.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

ty_status ty_make_extents(ty_heap *heap, const ty_extent *extents, size_t count, size_t *made) {
    constexpr const char *call = "make extents of a heap";
    size_t unasked = 0;
    size_t *counted = made ? made : &unasked;
    *counted = 0;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (count != 0 && !extents)
        return check_pointer(nullptr, call, "the extents");
    if (calls_for(heap) || heap_may_be_concurrent(heap))
        return failure(TY_E_UNSUPPORTED, "%s at %p: it is %s", call, heap_base(heap),
                       calls_for(heap) ? "transactional" : "concurrent")
            .remedy("make them in a snapshot heap, and open that with the kind TY_TRANSACTIONAL afterwards");
    return heap_make_extents(heap, extents, count, counted);
}
