// What a pointer that a caller hands in is.
#pragma once

#include "../spans/spans.hpp"
#include "../threads/threads.hpp"

namespace taiyen {

// The failure of a call on something that is not a live block: says what the address is.
ty_status not_a_block(const char *verb, const ty_heap *heap, const void *address);

// The heap whose span the address lies in; NULL if none does.
ty_heap *heap_at(const void *address);

inline uint64_t offset_in(const ty_heap *heap, const void *address) {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(heap->base);
}

// A live block of any size, by any address in it. Small ones: what the persistent metadata says, under the class's lock
// if the span is not the calling thread's own. The thread has entered.
struct live_block {
    uint64_t offset; // of its start
    uint64_t bytes;
    bool small;
    small_block place;  // of a small one
    page_extent extent; // of others
};
// TY_E_NOT_FOUND without a detail: no live block is there; *block then has the place, in whole pages or as large as a
// block, that is free. TY_E_DAMAGED with one.
ty_status find_block(ty_heap *heap, const void *address, live_block *block);

} // namespace taiyen
