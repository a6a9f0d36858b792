// Extents of pages: taking them from the free ones by best fit, releasing them with both neighbours joined, and raising
// top. Everything here is called under the heap's pages_lock. Extents in use get their descriptors from the caller;
// those of free ones are kept here (H1, H2, H3, H6, H7 in docs/design/heap.md).
#pragma once

#include "../tables/tables.hpp"
#include "extent_tree.hpp"

namespace taiyen {

// The pages of an extent: [first, first + count).
struct page_extent {
    uint32_t first;
    uint32_t count;
};

// Head bits, one per page (H1: extents tile the used part of a heap).
void set_head(ty_heap *heap, uint64_t page);
void clear_head(ty_heap *heap, uint64_t page);
bool is_head(const ty_heap *heap, uint64_t page);
// The first head in [from, end); end if none.
uint64_t next_head(const ty_heap *heap, uint64_t from, uint64_t end);
// The last head at or before page; 0 if none.
uint64_t head_before(const ty_heap *heap, uint64_t page);

inline page_kind kind_at(const ty_heap *heap, uint64_t page) {
    return static_cast<page_kind>(kind_of(heap->descriptors[page]));
}

// The checked extent that starts at page, which must be below top. False: damaged.
bool extent_at_head(const ty_heap *heap, uint64_t page, page_extent *extent);

// Takes count pages whose address is a multiple of align_pages pages (a power of two), and sets the head bit. Pages of
// the extent from *fresh_from on were never used: they read as zeros.
ty_status take_pages(ty_heap *heap, uint64_t count, uint64_t align_pages, uint32_t *first, uint64_t *fresh_from);

// Where the pages should lie: in a stretch with aligned start, after `before` pages and in front of `room` pages,
// which stay free. at_end: at the end of a long free extent, to leave room for the block before it. with_memory: prefer
// resident pages to the best fit.
struct wanted_place {
    uint64_t count;
    uint64_t align_pages;
    uint64_t before;
    uint64_t room;
    bool at_end;
    bool with_memory;
};
ty_status take_pages_in(ty_heap *heap, const wanted_place &wanted, uint32_t *first);

// Takes a better place for an extent in use between two free ones: in the best fitting free extent, if that is at a
// lower address. The free extents around the old place can then join, so that fewer are left. The pages are taken as a
// block. *first 0: no such place.
ty_status take_better_place(ty_heap *heap, page_extent extent, uint32_t *first);

// Takes exactly these pages. Expected: TY_E_EXISTS (not free), TY_E_MEMORY (no room below the tables).
ty_status take_pages_at(ty_heap *heap, page_extent extent);

// Frees pages in use; their descriptors, except the first page's, must be cleared already. Those of emptied, a part of
// them, have no memory any more.
ty_status release_pages(ty_heap *heap, page_extent extent, page_extent emptied = {});

// Makes a free extent one in use that no other thread takes; and free again. False: damaged, and unchanged. What cannot
// be returned stays in use: verify reports why.
bool withdraw_free(ty_heap *heap, page_extent extent);
void return_withdrawn(ty_heap *heap, page_extent extent);

// Grows an extent in use to count pages, with those after it. Expected: TY_E_MEMORY (no room there; without a detail,
// as most callers then try something else).
ty_status grow_extent(ty_heap *heap, page_extent extent, uint32_t count, uint64_t *fresh_from);
// Frees its tail.
ty_status shrink_extent(ty_heap *heap, page_extent extent, uint32_t count);

// Splits an extent in use into two, of which the first has count pages; and joins two into one.
ty_status split_extent(ty_heap *heap, page_extent extent, uint32_t count);
ty_status join_extents(ty_heap *heap, page_extent extent);

extent_tree tree_of(ty_heap *heap);
ty_status tables_damaged(const char *what, const ty_heap *heap, uint64_t page);

} // namespace taiyen
