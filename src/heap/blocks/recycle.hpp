// Moves the memory of idle free pages to an extent that was just taken and has none, by moving page-table entries: that
// costs a small part of the faults that it saves. docs/design/heap-memory.md, "Free pages and their memory".
#pragma once

#include "../pages/pages.hpp"

namespace taiyen {

// Free extents that give their memory. They are extents in use meanwhile, as in decay.
inline constexpr uint32_t donors_max = 32;
struct memory_donors {
    uint64_t holes_end; // the extent's; or after its last huge page, if the first donor has the rest of that
    bool huge_only;     // only whole huge pages are moved
    uint32_t count;
    page_extent extents[donors_max];
};

// Withdraws donors for an extent, all of whose pages from fresh_from on were never used: those get no memory, since the
// kernel gives them huge pages. Under pages_lock. None if too little is available, or nothing is gained.
void withdraw_donors(ty_heap *heap, page_extent extent, uint64_t fresh_from, memory_donors *donors);

// Moves their memory into the extent, and returns the donors. The thread has entered, and holds no lock.
void recycle(ty_heap *heap, page_extent extent, uint64_t fresh_from, const memory_donors &donors);

} // namespace taiyen
