// The bits of pages that may be resident: page_memory.hpp tells what they mean (P1). For heaps whose owner takes memory
// back; the others have none. They change under pages_lock; a run's own may be read by who has it.
#pragma once

#include "page_extents.hpp"

namespace taiyen {

uint64_t count_touched(const ty_heap *heap, uint64_t first, uint64_t count);
void mark_touched(ty_heap *heap, uint64_t first, uint64_t count, bool touched);

// The first page in [from, end) whose bit is as wanted; end if there is none.
uint64_t next_with_touched(const ty_heap *heap, uint64_t from, uint64_t end, bool wanted);

// There are small pages now in the huge pages that these pages are part of. True: this was not known of one. Without a
// lock.
bool note_small_pages(ty_heap *heap, uint64_t first, uint64_t count);

// Of whole huge pages in runs that nobody else can take, without memory: what page tables are left there is about to be
// given back. True: some was known of. Without a lock.
bool forget_small_pages(const ty_heap *heap, uint64_t first, uint64_t count);

// The whole huge pages among these, of an extent that nobody else can take, have neither memory nor a page table, as
// far as is known: others can move there whole, and are not split. They read as zeros.
bool is_vacant(const ty_heap *heap, uint64_t first, uint64_t count);

} // namespace taiyen
