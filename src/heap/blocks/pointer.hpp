// Classifies pointers that callers pass in.
#pragma once

#include "../spans/spans.hpp"
#include "../threads/threads.hpp"

namespace taiyen {

// The failure of a call on something that is not a live block: describes what lies at the address.
ty_status not_a_block(const char *verb, const ty_heap *heap, const void *address);

// The heap in whose address space the address lies; NULL if none.
ty_heap *heap_at(const void *address);

inline uint64_t offset_in(const ty_heap *heap, const void *address) {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(heap->base);
}

// A live block of any size, by any address in it. For small ones: as in the persistent metadata, under the class's lock
// if the span is not the calling thread's own. The thread has entered.
struct live_block {
    uint64_t offset; // of its start
    uint64_t bytes;
    bool small;
    small_block place;  // of a small block
    page_extent extent; // of others
};
// TY_E_NOT_FOUND without a detail: no live block is there; *block is then the free stretch, in whole pages or the size
// of a block. TY_E_DAMAGED with a detail.
ty_status find_block(ty_heap *heap, const void *address, live_block *block);

} // namespace taiyen
