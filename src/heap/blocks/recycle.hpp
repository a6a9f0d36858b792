// Memory of idle free pages for an extent that was just taken and has none: page-table entries are moved, which costs a
// small part of the faults that they save. docs/design/heap-memory.md, "Free pages and their memory".
#pragma once

#include "../pages/pages.hpp"

namespace taiyen {

// Free runs that give their memory away. They are extents in use meanwhile, as in decay.
inline constexpr uint32_t donors_max = 32;
struct memory_donors {
    uint64_t holes_end; // the extent's; or behind its last huge page, if the first donor has the rest of that
    bool huge_only;     // whole huge pages are moved, and no parts
    uint32_t count;
    page_extent extents[donors_max];
};

// Withdraws donors for a run, all of whose pages from fresh_from on were never used: those get none, since the kernel
// gives huge pages there. Under pages_lock. None if there is too little to be had, or nothing to be gained.
void withdraw_donors(ty_heap *heap, page_extent extent, uint64_t fresh_from, memory_donors *donors);

// Moves their memory into the run, and returns them. The thread has entered, and holds no lock.
void recycle(ty_heap *heap, page_extent extent, uint64_t fresh_from, const memory_donors &donors);

} // namespace taiyen
