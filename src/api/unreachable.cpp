// ty_each_unreachable. In a file of its own: it needs the layers above heaps.
#include "arguments.hpp"
#include "callbacks.hpp"
#include "src/code/code.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

ty_status ty_each_unreachable(ty_heap *heap, ty_site_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's blocks that nothing leads to";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    if (image_kind(heap) == TY_VOLATILE)
        return failure(TY_E_ARGUMENT, "%s: it is a volatile heap, and has no roots", call)
            .remedy("start checks with TY_CHECK_LEAKS on it");
    guarded<ty_site_callback> guard(callback, context);
    return guard.end(each_unreachable(heap, guard.callback(), &guard));
}
