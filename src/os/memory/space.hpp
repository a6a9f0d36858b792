// Memory that grows in place, in an address range that is claimed for it: only what is in use is mapped. So limits on
// mappings count only what is used: ulimit -v, mlockall, core files, vm.overcommit_memory 2.
//
// The ranges lie where the kernel places nothing of its own accord. Where that is impossible (valgrind,
// ThreadSanitizer), they are reserved as a whole.
#pragma once

#include "vm.hpp"

namespace taiyen::os {

// Z1: claimed ranges do not overlap.
// Z2: nothing is mapped over another mapping in such a range, and no mapping of others is unmapped.

// Claims address space and maps nothing there. NULL: not available.
void *claim_range(size_t bytes, size_t alignment);
void release_range(const void *range); // returned by claim_range; nothing of it is mapped any more

// Maps pages of a claimed range, none of which is mapped. They read as zeros. Expected: TY_E_MEMORY.
ty_status map_claimed(void *address, size_t bytes);

// Its content never moves. All zeros: not created.
struct space_kind {
    ty_status (*map)(void *address, size_t bytes);
    void (*unmap)(void *memory, size_t provided, size_t reserved);
};
class space {
public:
    // Expected: TY_E_MEMORY.
    ty_status create_claimed(size_t most_bytes, size_t alignment = page_bytes);
    // In address space that is reserved as a whole: a program that needs only this is linked without the rest.
    ty_status create_reserved(size_t most_bytes, size_t alignment = page_bytes);
    void destroy(); // also if it was never created

    // Makes the first so many bytes usable, up to most(). Expected: TY_E_MEMORY, and nothing has changed.
    ty_status provide(size_t bytes) { return bytes <= provided_ ? TY_OK : grow(bytes); }

    template <class T>
    T *as() const {
        return reinterpret_cast<T *>(memory_);
    }
    size_t provided() const { return provided_; }
    size_t most() const { return reserved_; }

private:
    ty_status grow(size_t bytes);

    ty_status create(const space_kind &kind, void *memory, size_t bytes);

    char *memory_;
    size_t provided_;
    size_t reserved_;
    const space_kind *kind_;
};

} // namespace taiyen::os
