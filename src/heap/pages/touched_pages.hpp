// The bits of pages that may be resident: page_memory.hpp defines them (P1). Only for heaps whose owner takes memory
// back. They change under pages_lock; the user of an extent may read its bits.
#pragma once

#include "page_extents.hpp"

namespace taiyen {

uint64_t count_touched(const ty_heap *heap, uint64_t first, uint64_t count);
void mark_touched(ty_heap *heap, uint64_t first, uint64_t count, bool touched);

// The first page in [from, end) whose bit is as wanted; end if none.
uint64_t next_with_touched(const ty_heap *heap, uint64_t from, uint64_t end, bool wanted);

// Records small pages in the huge pages that contain these pages. True: for one of them this is new. Without a lock.
bool note_small_pages(ty_heap *heap, uint64_t first, uint64_t count);

// For whole huge pages without memory, in extents that no other thread can take: their page tables are about to be
// dropped. True: some were recorded. Without a lock.
bool forget_small_pages(const ty_heap *heap, uint64_t first, uint64_t count);

// Whether the whole huge pages among these, in an extent that no other thread can take, have neither memory nor a page
// table, as far as is known: huge pages can be moved there whole, without a split. They read as zeros.
bool is_vacant(const ty_heap *heap, uint64_t first, uint64_t count);

} // namespace taiyen
