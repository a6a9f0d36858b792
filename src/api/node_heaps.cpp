#include "node_heaps.hpp"

#include "volatile.hpp"

namespace taiyen {
namespace {

constinit os::mutex heaps_lock{os::lock_rank::registry};
ty_heap *heaps[os::numa_nodes_max]; // guarded by heaps_lock

} // namespace

ty_status node_heap(unsigned node, ty_heap **heap) {
    if (node >= os::numa_nodes_max)
        return failure(TY_E_UNSUPPORTED, "make the heap of node %u", node)
            .remedy("create heaps without nodes: this library knows %u", os::numa_nodes_max);
    os::lock_guard guard(heaps_lock);
    if (heaps[node] == nullptr) {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        if (os::machine().numa_nodes > 1) // a binding to the only one would change nothing
            options.numa_nodes = uint64_t{1} << node;
        if (ty_status status = volatile_create(options, &heaps[node]))
            return status;
    }
    *heap = heaps[node];
    return TY_OK;
}

void forget_node_heap(const ty_heap *heap) {
    os::lock_guard guard(heaps_lock);
    for (ty_heap *&known : heaps)
        if (known == heap)
            known = nullptr;
}

} // namespace taiyen
