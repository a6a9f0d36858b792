// Lists of spans in bins by how full they are. A list belongs to an owner's cache, or to a class (then it is guarded by
// the class's lock). Frees do not move a span from bin to bin; that is made good when a span is picked, so a span
// stands in its bin or in one for fuller spans.
#pragma once

#include "../tables/tables.hpp"

namespace taiyen {

void unlink_span(const ty_heap *heap, span_bins &bins, uint32_t number); // in no bin: nothing to do
// Puts a span in the bin that is right now; a full one in none.
void place_span(const ty_heap *heap, const class_info &info, span_bins &bins, uint32_t number);
// A span of the fullest bin that has any, nearly full ones last; the one that came there last, since its memory is most
// likely cached. It stays in its bin. 0: none.
uint32_t pick_span(const ty_heap *heap, const class_info &info, span_bins &bins);

// The list of all spans of an owner. Under the class's lock.
void own_span(thread_cache *cache, uint32_t size_class, uint32_t number);
void disown_span(thread_cache *cache, uint32_t size_class, uint32_t number);

} // namespace taiyen
