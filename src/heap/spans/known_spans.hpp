// Spans that the runtime state knows: found in the persistent metadata, made, given back. Each has a number as long as
// it is known. All of it under the class's lock.
#pragma once

#include "../pages/pages.hpp"

namespace taiyen {

inline os::mutex &lock_of(ty_heap *heap, uint32_t size_class) {
    return heap->spans[size_class].lock;
}

// The number of a span that was not known yet, when its descriptors and bitmap are sound (H4, H5); else 0.
uint32_t know_span(ty_heap *heap, uint32_t size_class, uint32_t head);

// A new, empty span, of pages that fit best or of exactly these pages. Expected: TY_E_MEMORY, TY_E_EXISTS.
ty_status new_span(ty_heap *heap, uint32_t size_class, uint32_t *number);
ty_status new_span_at(ty_heap *heap, uint32_t size_class, uint32_t head, uint32_t *number);

// The pages of an empty span that is in no bin become free. If the tables are damaged it stays.
ty_status release_span(ty_heap *heap, uint32_t number);

// A span with no owner, in no bin, goes to the shared ones, or away when it is empty (H8).
ty_status place_shared(ty_heap *heap, uint32_t number);
// The same for a span whose number of used blocks has changed. Its owner is the caller, or stands still.
ty_status place_again(ty_heap *heap, thread_cache *owner, uint32_t number);
bool any_shared(const ty_heap *heap, uint32_t size_class);

} // namespace taiyen
