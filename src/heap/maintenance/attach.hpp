// Shared by formatting, attaching and growing a heap.
#pragma once

#include "../tables/tables.hpp"

namespace taiyen {

ty_status check_place(const void *base, size_t limit_bytes);
// The result of an attach's check of a header.
ty_status header_status(const heap_header &header, const void *base, size_t mapped_bytes);
// Fills in the fields that follow from the limit.
inline void fill_in_constants(heap_header &header) {
    const table_places places(header.limit_bytes);
    header.magic = heap_magic;
    header.layout_version = heap_layout_version;
    header.page_bytes = page_bytes;
    header.descriptors_offset = places.descriptors_offset;
    header.bitmaps_offset = places.bitmaps_offset;
    header.heads_offset = places.heads_offset;
}
void set_tables(ty_heap *heap, size_t limit_bytes); // at their places for this limit
// Makes the volatile tables for a limit of so many pages, in a heap that has none. On failure it has none.
ty_status make_volatile_tables(ty_heap *heap, uint64_t pages);
void drop_tables(volatile_tables &tables);
void point_at_volatile_tables(ty_heap *heap);

} // namespace taiyen
