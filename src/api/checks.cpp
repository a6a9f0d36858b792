// The functions of checks.h. Separate from those of heap.h, so that a program without checks is linked without them.
#include "arguments.hpp"
#include "callbacks.hpp"

#include "src/heap/heap.hpp"

using namespace taiyen;

ty_status ty_heap_start_checks(ty_heap *heap, const ty_check_options *options) {
    constexpr const char *call = "start checks of a heap";
    ty_check_options known = TY_CHECK_OPTIONS_INIT;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(options, call, "the options"))
        return status;
    if (ty_status status =
            copy_options(options, &known, sizeof known, call, "ty_check_options", "TY_CHECK_OPTIONS_INIT"))
        return status;
    if (ty_status status = check_checks(known.checks, call))
        return status;
    if (heap_image_of(heap) != nullptr)
        return failure(TY_E_UNSUPPORTED, "%s: it lives in files", call).remedy("check a volatile heap");
    return heap_start_checks(heap, known);
}

ty_status ty_each_site(ty_heap *heap, ty_site_callback *callback, void *context) {
    constexpr const char *call = "go through the sites of a heap's blocks";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    guarded<ty_site_callback> guard(callback, context);
    return guard.end(heap_each_site(heap, guard.callback(), &guard));
}
