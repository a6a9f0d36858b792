// ty_each_internal_block. In a file of its own: it needs the layer of undo.
#include "arguments.hpp"
#include "callbacks.hpp"
#include "src/undo/undo.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

ty_status ty_each_internal_block(ty_heap *heap, ty_block_callback *callback, void *context) {
    constexpr const char *call = "go through the library's blocks in a heap";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    guarded<ty_block_callback> guard(callback, context);
    return guard.end(each_internal_block(heap, guard.callback(), &guard));
}
