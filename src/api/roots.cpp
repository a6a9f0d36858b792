// The roots of any kind of heap.
#include "arguments.hpp"
#include "callbacks.hpp"
#include "plain.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

void *ty_root(ty_heap *heap, const char *name) {
    constexpr const char *call = "look a root up";
    if (ty_status status = check_heap(heap, call))
        return none(status);
    if (ty_status status = check_pointer(name, call, "the name"))
        return none(status);
    return heap_root(heap, name);
}

ty_status ty_root_set(ty_heap *heap, const char *name, void *address) {
    constexpr const char *call = "set a root";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_root(heap, name, address, call))
        return status;
    const plain_calls *calls = calls_for(heap);
    ty_txn *txn;
    if (!calls)
        return heap_root_set(heap, name, address);
    if (ty_status status = find_txn(calls, heap, call, &txn))
        return status;
    return calls->root_set(txn, name, address);
}

ty_status ty_each_root(ty_heap *heap, ty_root_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's roots";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    guarded<ty_root_callback> guard(callback, context);
    return guard.end(heap_each_root(heap, guard.callback(), &guard));
}
