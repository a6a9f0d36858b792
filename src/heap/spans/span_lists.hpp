// Lists of spans in bins by how full they are. A list belongs to an owner's cache, or to a class (then the class's lock
// guards it). Frees do not move a span from bin to bin; that is done when a span is picked, so a span is in its bin or
// in one for fuller spans.
#pragma once

#include "../tables/tables.hpp"

namespace taiyen {

void unlink_span(const ty_heap *heap, span_bins &bins, uint32_t number); // in no bin: does nothing
// Puts a span in its right bin; a full one in none.
void place_span(const ty_heap *heap, const class_info &info, span_bins &bins, uint32_t number);
// A span of the fullest bin that has any, nearly full ones last; within a bin the one added last, since its memory is
// most likely in the processor's cache. It stays in its bin. 0: none.
uint32_t pick_span(const ty_heap *heap, const class_info &info, span_bins &bins);

// The list of all spans of an owner. Under the class's lock.
void claim_span(thread_cache *cache, uint32_t size_class, uint32_t number);
void disown_span(thread_cache *cache, uint32_t size_class, uint32_t number);

} // namespace taiyen
