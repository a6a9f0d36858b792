// Spans that the runtime state knows: found in the persistent metadata, made, released. Each has a number as long as it
// is known. All under the class's lock.
#pragma once

#include "../pages/pages.hpp"

namespace taiyen {

inline os::mutex &lock_of(ty_heap *heap, uint32_t size_class) {
    return heap->spans[size_class].lock;
}

// The number of a span that was not known yet, if its descriptors and bitmap are sound (H4, H5); otherwise 0.
uint32_t know_span(ty_heap *heap, uint32_t size_class, uint32_t head);

// A new, empty span, of the best fitting pages or of exactly these pages. Expected: TY_E_MEMORY, TY_E_EXISTS.
ty_status new_span(ty_heap *heap, uint32_t size_class, uint32_t *number);
ty_status new_span_at(ty_heap *heap, uint32_t size_class, uint32_t head, uint32_t *number);

// Frees the pages of an empty span that is in no bin. If the tables are damaged it stays.
ty_status release_span(ty_heap *heap, uint32_t number);

// The span is not known any more: its content is about to change otherwise. All threads are stopped, and its owner's
// cache is flushed. Takes the class's lock itself.
void forget_span(ty_heap *heap, uint32_t number);

// Puts a span without owner, in no bin, among the shared ones, or releases it if it is empty (H8: no span stays empty).
ty_status place_shared(ty_heap *heap, uint32_t number);
// The same for a span whose number of used blocks has changed. Its owner is the caller, or stopped.
ty_status place_again(ty_heap *heap, thread_cache *owner, uint32_t number);
bool any_shared(const ty_heap *heap, uint32_t size_class);

} // namespace taiyen
