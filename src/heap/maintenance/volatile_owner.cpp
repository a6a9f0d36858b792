// The owners of volatile heaps' memory: reserved address space, or a range set aside (heap-memory.md).
#include "../heap.hpp"

#include <cerrno>

namespace taiyen {
namespace {

ty_status provide_aside(void *, void *address, size_t bytes) {
    return os::map_aside(address, bytes);
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

heap_owner aside_owner() {
    return {nullptr, provide_aside, decommit_pages, true, true, create_table_aside, cover, os::address_space_max};
}

} // namespace taiyen
