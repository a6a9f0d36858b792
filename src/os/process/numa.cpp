#include "numa.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"

namespace taiyen::os {
namespace {

// From the kernel's mempolicy.h.
constexpr int policy_bind = 2;
constexpr unsigned flag_of_address = 2;
constexpr unsigned long kernel_node_bits = 1024; // no fewer than any kernel has: with fewer the call fails

} // namespace

[[gnu::cold]] ty_status bind_to_nodes(void *address, size_t bytes, uint64_t nodes) {
    unsigned long mask = nodes;
    if (sys::mbind(address, bytes, policy_bind, &mask, numa_nodes_max + 1) == 0) // the kernel counts one less
        return TY_OK;
    int error = errno;
    bool unknown = error == EINVAL;
    return failure(unknown ? TY_E_ARGUMENT : TY_E_UNSUPPORTED, "bind memory to the nodes 0x%llx",
                   static_cast<unsigned long long>(nodes))
        .cause(error)
        .remedy(unknown ? "give nodes that the machine has and the process may use"
                        : "do without, or allow the system call mbind (a container's profile may refuse it)");
}

ty_status nodes_of(const void *address, uint64_t *nodes) {
    unsigned long mask[kernel_node_bits / 64] = {};
    int mode = 0;
    if (sys::get_mempolicy(&mode, mask, kernel_node_bits, address, flag_of_address) != 0)
        return failure(TY_E_UNSUPPORTED, "find which nodes the memory at %p is bound to", address)
            .cause(errno)
            .remedy("allow the system call get_mempolicy (a container's profile may refuse it)");
    *nodes = mode == policy_bind ? mask[0] : 0;
    return TY_OK;
}

unsigned current_node() {
    unsigned core, node;
    return sys::getcpu(&core, &node) == 0 ? node : 0;
}

} // namespace taiyen::os
