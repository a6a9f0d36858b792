// Runs of pages: taking them from the free ones by best fit, giving them back with both neighbours joined, and raising
// top. Everything here is called under the heap's pages_lock. Areas that are in use get their descriptors from the
// caller; of free ones they are kept here (H1, H2, H3, H6, H7).
#pragma once

#include "../tables/tables.hpp"
#include "extent_tree.hpp"

namespace taiyen {

// an extent's pages: [first, first + count).
struct page_extent {
    uint32_t first;
    uint32_t count;
};

// Head bits (H1).
void set_head(ty_heap *heap, uint64_t page);
void clear_head(ty_heap *heap, uint64_t page);
bool is_head(const ty_heap *heap, uint64_t page);
// The first head in [from, end); end if there is none.
uint64_t next_head(const ty_heap *heap, uint64_t from, uint64_t end);
// The last head at or before page; 0 if there is none.
uint64_t head_before(const ty_heap *heap, uint64_t page);

inline page_kind kind_at(const ty_heap *heap, uint64_t page) {
    return static_cast<page_kind>(kind_of(heap->descriptors[page]));
}

// What starts at page, which must be below top: its pages, checked. False: damaged.
bool extent_at_head(const ty_heap *heap, uint64_t page, page_extent *extent);

// Takes count pages whose address is a multiple of align_pages pages (a power of two), and sets the head bit. Pages of
// the run from *fresh_from on were never used: they read as zeros.
ty_status take_pages(ty_heap *heap, uint64_t count, uint64_t align_pages, uint32_t *first, uint64_t *fresh_from);

// Pages that are taken, so that they stand where their user wants them: behind so many of a stretch that starts
// aligned, and in front of so many; these stay free. at_end: at the end of a long free extent, where they leave room to
// the block before it. with_memory: rather where pages are resident than where they fit best.
struct wanted_place {
    uint64_t count;
    uint64_t align_pages;
    uint64_t before;
    uint64_t room;
    bool at_end;
    bool with_memory;
};
ty_status take_pages_in(ty_heap *heap, const wanted_place &wanted, uint32_t *first);

// The place that an extent in use between free pages should move to: in the best fitting free extent, if that is a
// lower one. What is free around the run then joins, so that fewer free extents are left. The pages are taken as a
// block; *first 0: there is no such place.
ty_status take_better_place(ty_heap *heap, page_extent extent, uint32_t *first);

// Takes exactly these pages. Expected: TY_E_EXISTS (not free), TY_E_MEMORY (no room below the tables).
ty_status take_pages_at(ty_heap *heap, page_extent extent);

// Frees pages in use; their descriptors other than the first page's are cleared already. Those of emptied, a part of
// them, have no memory any more.
ty_status release_pages(ty_heap *heap, page_extent extent, page_extent emptied = {});

// A free extent becomes an extent in use that nobody else takes; and free again. False: damaged, and it is as it was.
// What cannot be returned stays in use: verify tells why.
bool withdraw_free(ty_heap *heap, page_extent extent);
void return_withdrawn(ty_heap *heap, page_extent extent);

// Takes the pages behind an extent in use: it grows to count. Expected: TY_E_MEMORY (no room there; without
// a detail, as most callers then do something else).
ty_status grow_extent(ty_heap *heap, page_extent extent, uint32_t count, uint64_t *fresh_from);
// Frees its tail.
ty_status shrink_run(ty_heap *heap, page_extent extent, uint32_t count);

// An extent in use becomes two, of which the first has count pages; and two become one.
ty_status split_run(ty_heap *heap, page_extent extent, uint32_t count);
ty_status join_runs(ty_heap *heap, page_extent extent);

extent_tree tree_of(ty_heap *heap);
ty_status tables_damaged(const char *what, const ty_heap *heap, uint64_t page);

} // namespace taiyen
