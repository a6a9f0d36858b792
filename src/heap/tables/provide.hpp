// Asks the heap's owner to make pages usable before they are first touched.
//
// P2: memory that a program has not touched is not resident out of proportion. A growing heap asks for huge pages for
//      as much as was found in use, plus 32 MiB. Use is detected by a part that stays in small pages until then. Where
//      extents are made (maintenance/make_extents.cpp) it asks for huge pages of which at most a sixteenth is in no
//      live block.
#pragma once

#include "heap_runtime.hpp"

namespace taiyen {

// Asked for in steps of an eighth of what there is, within these bounds, so that calls are rare and small heaps stay
// small; larger heaps use the maximum.
inline constexpr uint64_t provide_step_min = (uint64_t{64} << 10) / page_bytes;
inline constexpr uint64_t provide_step_max = (uint64_t{16} << 20) / page_bytes;

// Makes pages below end, and the entries that describe them, usable. Under pages_lock.
ty_status provide_pages(ty_heap *heap, uint64_t end);

// Advises huge pages for the whole huge pages in this range, or none there. Under pages_lock, or paused.
void wish_huge(ty_heap *heap, uint64_t from, uint64_t end, bool huge);

// Makes the tables of another limit usable, as far as those of this one are. Under pages_lock, or paused.
ty_status provide_tables(const ty_heap *heap, uint64_t limit_bytes, asked_parts *asked);

// The volatile tables: the bytes that so many pages need, and making them usable.
uint64_t volatile_table_bytes(uint32_t table, uint64_t pages);
ty_status provide_volatile(ty_heap *heap, uint64_t described);

// Makes the pages of the header usable.
ty_status provide_header(void *base, const heap_owner &owner);

} // namespace taiyen
