// The owners of volatile heaps' memory: reserved address space, or a claimed range (heap-memory.md).
#include "../heap.hpp"

#include <cerrno>

namespace taiyen {
namespace {

ty_status provide_claimed(void *, void *address, size_t bytes) {
    return os::map_claimed(address, bytes);
}

void cover(os::page_mover *mover, void *address, size_t bytes) {
    mover->cover(address, bytes);
}

} // namespace

ty_status commit_pages(void *, void *address, size_t bytes) {
    return os::commit(address, bytes);
}

// Pages whose memory the kernel does not take back are simply kept: nothing is lost, and no error is reported, not even
// by errno (M4: free keeps it).
bool decommit_pages(void *, void *address, size_t bytes) {
    int kept = errno;
    ty_status status = os::decommit(address, bytes);
    errno = kept;
    return status == TY_OK;
}

heap_owner claimed_owner() {
    return {nullptr, provide_claimed, decommit_pages, true, true, create_claimed_table, cover, os::address_space_max};
}

} // namespace taiyen
