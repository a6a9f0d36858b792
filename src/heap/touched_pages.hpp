// The bits of pages that may be resident: page_memory.hpp tells what they mean (P1). For heaps whose owner takes memory
// back; the others have none. They change under pages_lock; a run's own may be read by who has it.
#pragma once

#include "runs.hpp"

namespace taiyen {

uint64_t count_touched(const ty_heap *heap, uint64_t first, uint64_t count);
void mark_touched(ty_heap *heap, uint64_t first, uint64_t count, bool touched);

// The first page in [from, end) whose bit is as wanted; end if there is none.
uint64_t next_with_touched(const ty_heap *heap, uint64_t from, uint64_t end, bool wanted);

} // namespace taiyen
