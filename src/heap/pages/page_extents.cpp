#include "page_extents.hpp"

#include "../tables/tables.hpp"
#include "page_memory.hpp"
#include "touched_pages.hpp"

namespace taiyen {
namespace {

// How many free extents are tried for an alignment before one is taken that is long enough for any.
constexpr uint32_t aligned_tries_max = 16;

// A short extent takes the end of a free extent of at least so many pages, not its start: the block before it may grow.
constexpr uint32_t roomy_extent_pages = 256;

// For extents from chosen_pages_min pages on: at most so many free extents that fit, and no more than the pages wanted,
// are compared by their resident memory.
constexpr uint32_t choices_max = 64;
constexpr uint64_t chosen_pages_min = 8;

// Makes [first, first + count) a free extent: descriptors, head bit, tree (H1, H2, H3 in docs/design/heap.md).
bool make_free(ty_heap *heap, uint64_t first, uint64_t count) {
    uint32_t head = static_cast<uint32_t>(first);
    uint32_t length = static_cast<uint32_t>(count);
    heap->descriptors[first] = {page_free, 0, 0, length, 0, 0};
    if (count > 1)
        heap->descriptors[first + count - 1] = {page_free_tail, 0, 0, length, 0, 0};
    set_head(heap, first);
    return tree_of(heap).insert(head);
}

// Takes a free extent out of the tree and clears its marks, so that its pages belong to no extent (H6: descriptors
// inside an extent are zero).
bool unmake_free(ty_heap *heap, page_extent extent) {
    if (!tree_of(heap).remove(extent.first))
        return false;
    heap->descriptors[extent.first] = {};
    heap->descriptors[extent.first + extent.count - 1] = {};
    clear_head(heap, extent.first);
    return true;
}

// The checked length of the free extent that starts at page; 0: damaged. Only the part up to used_end is about to be
// used, so only there it checks that no other extent starts.
uint32_t free_length(const ty_heap *heap, uint64_t page, uint64_t used_end) {
    const page_descriptor &head = heap->descriptors[page];
    uint64_t top = top_of(heap);
    if (head.kind != page_free || head.length == 0 || head.length > top - page || !is_head(heap, page))
        return 0;
    const page_descriptor &tail = heap->descriptors[page + head.length - 1];
    if (head.length > 1 && (tail.kind != page_free_tail || tail.length != head.length))
        return 0;
    if (used_end > page + head.length)
        return 0;
    return next_head(heap, page + 1, used_end) == used_end ? head.length : 0;
}

// Cuts [at, at + count) out of a free extent that holds it; the rest stays free. The head bit of `at` is set.
bool carve(ty_heap *heap, page_extent free_extent, uint64_t at, uint64_t count) {
    if (!unmake_free(heap, free_extent))
        return false;
    set_head(heap, at);
    bool sound = true;
    if (at > free_extent.first)
        sound = make_free(heap, free_extent.first, at - free_extent.first);
    uint64_t after = at + count;
    uint64_t end = uint64_t{free_extent.first} + free_extent.count;
    if (end > after)
        sound = make_free(heap, after, end - after) && sound;
    return sound;
}

uint64_t align_page(const ty_heap *heap, uint64_t page, uint64_t align_pages) {
    uint64_t base_page = reinterpret_cast<uintptr_t>(heap->base) / page_bytes;
    return ((base_page + page + align_pages - 1) & ~(align_pages - 1)) - base_page;
}

uint64_t align_page_down(const ty_heap *heap, uint64_t page, uint64_t align_pages) {
    uint64_t base_page = reinterpret_cast<uintptr_t>(heap->base) / page_bytes;
    return ((base_page + page) & ~(align_pages - 1)) - base_page;
}

// The free extent that ends at page, according to its descriptor; count 0 if none does. False: damaged.
bool free_run_before(const ty_heap *heap, uint64_t page, page_extent *extent) {
    *extent = {};
    if (page == first_user_page)
        return true;
    const page_descriptor &last = heap->descriptors[page - 1];
    uint8_t kind = kind_of(last);
    uint64_t head;
    if (kind == page_free && last.length == 1)
        head = page - 1;
    else if (kind == page_free_tail && last.length > 1 && last.length <= page - first_user_page)
        head = page - last.length;
    else
        return kind != page_free_tail && kind != page_free;
    *extent = {static_cast<uint32_t>(head), last.length};
    const page_descriptor &first = heap->descriptors[head];
    return first.kind == page_free && first.length == last.length && is_head(heap, head);
}

// The free extent that starts at page; count 0 if none does. False: damaged.
bool free_extent_at(const ty_heap *heap, uint64_t page, page_extent *extent) {
    *extent = {};
    if (page >= top_of(heap) || kind_of(heap->descriptors[page]) != page_free)
        return true;
    *extent = {static_cast<uint32_t>(page), free_length(heap, page, page + 1)};
    return extent->count != 0;
}

ty_status limit_reached(const ty_heap *heap, uint64_t pages) {
    return failure(TY_E_MEMORY, "allocate %llu bytes: the heap's limit of %llu bytes is reached",
                   static_cast<unsigned long long>(pages * page_bytes),
                   static_cast<unsigned long long>(heap->limit_bytes))
        .remedy("free blocks, or use a heap with a larger limit_bytes");
}

ty_status hard_limit_reached(const ty_heap *heap, uint64_t pages) {
    return failure(TY_E_MEMORY, "allocate %llu bytes: the hard limit is reached, %llu of %llu bytes are in use",
                   static_cast<unsigned long long>(pages * page_bytes),
                   static_cast<unsigned long long>(heap->used_pages * page_bytes),
                   static_cast<unsigned long long>(heap->hard_pages * page_bytes))
        .remedy("free blocks, or set a larger hard_bytes");
}

bool within_hard_limit(const ty_heap *heap, uint64_t more_pages) {
    if (heap->hard_pages == UINT64_MAX)
        return true;
    return heap->used_pages <= heap->hard_pages && more_pages <= heap->hard_pages - heap->used_pages;
}

void count_taken(ty_heap *heap, uint64_t first, uint64_t pages) {
    note_taken(heap, first, pages);
    heap->used_pages += pages;
    if (heap->used_pages > heap->soft_pages && !heap->beyond_soft) {
        heap->beyond_soft = true;
        heap->soft_due.store(true, std::memory_order_relaxed);
    }
}

void count_released(ty_heap *heap, uint64_t pages) {
    heap->used_pages -= pages;
    if (heap->used_pages <= heap->soft_pages)
        heap->beyond_soft = false;
}

// Raises top (H7: all from top on reads as zeros) so that [at, at + count) lies below it, at being at or above the
// start of a free extent that ends at top, or top itself. The pages in between become free.
ty_status rise(ty_heap *heap, page_extent ending, uint64_t at, uint64_t count) {
    uint64_t top = top_of(heap);
    uint64_t new_top = at + count;
    if (at > heap->first_table_page || count > heap->first_table_page - at)
        return limit_reached(heap, count);
    uint64_t from = ending.count != 0 ? ending.first : top;
    if (ending.count != 0 && next_head(heap, from + 1, top) != top)
        return tables_damaged("an extent starts inside a free extent", heap, from);
    if (ty_status status = provide_pages(heap, new_top); status != TY_OK)
        return status;
    if (ending.count != 0 && !unmake_free(heap, ending))
        return tables_damaged("a free extent is not in the tree", heap, from);
    heap->top.store(new_top, std::memory_order_release);
    heap->header->top_page = new_top;
    set_head(heap, at);
    if (at > from && !fault("gap_below_the_top_in_no_extent") && !make_free(heap, from, at - from))
        return tables_damaged("the tree of free extents is wrong", heap, from);
    return TY_OK;
}

// Position in the best-fit order of free extents.
struct fit_search {
    uint32_t length;
    uint32_t page;
    uint32_t tries;
};

// The next free extent from which an aligned extent can be taken, and where in it. *at 0: none. False: damaged.
bool next_fit(ty_heap *heap, uint64_t count, uint64_t align_pages, fit_search *from, page_extent *extent,
              uint64_t *at) {
    extent_tree tree = tree_of(heap);
    *at = 0;
    for (;; from->tries++) {
        uint64_t sure = count + align_pages - 1;
        if (from->tries == aligned_tries_max) {
            if (sure > UINT32_MAX)
                return true;
            if (from->length < sure) {
                from->length = static_cast<uint32_t>(sure);
                from->page = 0;
            }
        }
        uint32_t page = tree.lower_bound(from->length, from->page);
        if (page == extent_tree::none || page == extent_tree::damaged)
            return page == extent_tree::none;
        uint64_t aligned = align_page(heap, page, align_pages);
        from->length = heap->descriptors[page].length;
        from->page = page + 1;
        if (aligned + count <= uint64_t{page} + from->length) {
            *extent = {page, from->length};
            *at = aligned;
            return free_length(heap, page, aligned + count) == from->length;
        }
    }
}

// The cost of a place: pages without memory, which must be moved there or faulted in; and the length that it leaves
// over, since longer free extents are worth keeping.
uint64_t cost_of(const ty_heap *heap, page_extent free_extent, uint64_t at, uint64_t count) {
    return (count - count_touched(heap, at, count)) + (free_extent.count - count);
}

// The best fit, and where in it. *at 0: none fits. False: damaged. Where some free pages have memory and others not,
// that counts, too: the cheapest of the first choices.
bool find_fit(ty_heap *heap, const wanted_place &wanted, page_extent *extent, uint64_t *at) {
    uint64_t count = wanted.before + wanted.count + wanted.room;
    *at = 0;
    if (count > UINT32_MAX)
        return true;
    fit_search search{static_cast<uint32_t>(count), 0, 0};
    if (!next_fit(heap, count, wanted.align_pages, &search, extent, at))
        return false;
    if (*at == 0 || heap->memory.touched == nullptr || heap->memory.idle == 0 || !wanted.with_memory)
        return true;
    uint64_t cost = cost_of(heap, *extent, *at, count);
    for (uint32_t i = 1; i < choices_max && i < count && extent->count - count < cost; i++) {
        page_extent other;
        uint64_t other_at;
        if (!next_fit(heap, count, wanted.align_pages, &search, &other, &other_at))
            return false;
        if (other_at == 0 || other.count - count >= cost)
            break;
        if (uint64_t other_cost = cost_of(heap, other, other_at, count); other_cost < cost) {
            *extent = other;
            *at = other_at;
            cost = other_cost;
        }
    }
    return true;
}

} // namespace

ty_status tables_damaged(const char *what, const ty_heap *heap, uint64_t page) {
    return failure(TY_E_DAMAGED, "use the heap at %p: page %llu: %s", static_cast<void *>(heap->base),
                   static_cast<unsigned long long>(page), what)
        .remedy("run verify on the heap to see what else is wrong; restore it from a backup");
}

extent_tree tree_of(ty_heap *heap) {
    return {heap->descriptors, &heap->header->tree_root, top_of(heap)};
}

void set_head(ty_heap *heap, uint64_t page) {
    heap->heads[page / 64] |= uint64_t{1} << page % 64;
}

void clear_head(ty_heap *heap, uint64_t page) {
    heap->heads[page / 64] &= ~(uint64_t{1} << page % 64);
}

bool is_head(const ty_heap *heap, uint64_t page) {
    return heap->heads[page / 64] >> page % 64 & 1;
}

uint64_t next_head(const ty_heap *heap, uint64_t from, uint64_t end) {
    if (from >= end)
        return end;
    uint64_t index = from / 64;
    uint64_t word = heap->heads[index] & ~uint64_t{0} << from % 64;
    while (word == 0) {
        if (++index * 64 >= end)
            return end;
        word = heap->heads[index];
    }
    uint64_t found = index * 64 + static_cast<unsigned>(__builtin_ctzll(word));
    return found < end ? found : end;
}

uint64_t head_before(const ty_heap *heap, uint64_t page) {
    uint64_t index = page / 64;
    uint64_t word = heap->heads[index] & ~uint64_t{0} >> (63 - page % 64);
    while (word == 0) {
        if (index == 0)
            return 0;
        word = heap->heads[--index];
    }
    return index * 64 + 63 - static_cast<unsigned>(__builtin_clzll(word));
}

bool extent_at_head(const ty_heap *heap, uint64_t page, page_extent *extent) {
    const page_descriptor &head = heap->descriptors[page];
    uint8_t kind = kind_of(head);
    uint64_t length = head.length;
    if (kind == page_span)
        length = heap->classes[head.size_class].pages; // 0 for a class that does not exist
    else if (kind != page_extent_head && kind != page_free)
        length = 0;
    *extent = {static_cast<uint32_t>(page), static_cast<uint32_t>(length)};
    return length != 0 && length <= top_of(heap) - page && is_head(heap, page);
}

ty_status take_pages_in(ty_heap *heap, const wanted_place &wanted, uint32_t *first) {
    uint64_t top = top_of(heap);
    page_extent extent{};
    uint64_t at;
    if (!within_hard_limit(heap, wanted.count))
        return hard_limit_reached(heap, wanted.count);
    if (!find_fit(heap, wanted, &extent, &at))
        return tables_damaged("the free extent, or the tree of free extents, is wrong", heap, extent.first);
    if (at != 0) {
        at += wanted.before;
        if (wanted.at_end && extent.count >= roomy_extent_pages)
            at = align_page_down(heap, uint64_t{extent.first} + extent.count - wanted.count, wanted.align_pages);
        if (!carve(heap, extent, at, wanted.count))
            return tables_damaged("a free extent is not in the tree", heap, extent.first);
    } else {
        if (!free_run_before(heap, top, &extent))
            return tables_damaged("the last free extent is wrong", heap, top - 1);
        at = align_page(heap, extent.count != 0 ? extent.first : top, wanted.align_pages) + wanted.before;
        if (ty_status status = rise(heap, extent, at, wanted.count + wanted.room); status != TY_OK)
            return status;
        if (wanted.room != 0 && !make_free(heap, at + wanted.count, wanted.room))
            return tables_damaged("the tree of free extents is wrong", heap, at);
    }
    count_taken(heap, at, wanted.count);
    *first = static_cast<uint32_t>(at);
    return TY_OK;
}

ty_status take_pages(ty_heap *heap, uint64_t count, uint64_t align_pages, uint32_t *first, uint64_t *fresh_from) {
    *fresh_from = top_of(heap);
    bool at_end = heap->owner.movable && count <= span_pages_max;
    return take_pages_in(heap, {count, align_pages, 0, 0, at_end, count >= chosen_pages_min}, first);
}

ty_status take_better_place(ty_heap *heap, page_extent extent, uint32_t *first) {
    page_extent before, after, fitting{};
    uint64_t at;
    *first = 0;
    if (!free_run_before(heap, extent.first, &before) ||
        !free_extent_at(heap, uint64_t{extent.first} + extent.count, &after) ||
        !find_fit(heap, {extent.count, 1, 0, 0, false, false}, &fitting, &at))
        return tables_damaged("a free extent near it, or the tree of free extents, is wrong", heap, extent.first);
    bool better = before.count != 0 && after.count != 0 && at != 0 && at < extent.first;
    if (!better || !within_hard_limit(heap, extent.count))
        return TY_OK;
    if (!carve(heap, fitting, at, extent.count))
        return tables_damaged("a free extent is not in the tree", heap, fitting.first);
    heap->descriptors[at] = {page_extent_head, 0, 0, extent.count, 0, 0};
    count_taken(heap, at, extent.count);
    *first = static_cast<uint32_t>(at);
    return TY_OK;
}

static ty_status take_free_at(ty_heap *heap, page_extent wanted) {
    uint64_t top = top_of(heap);
    uint64_t end = uint64_t{wanted.first} + wanted.count;
    page_extent extent;
    if (end > top) {
        if (!free_run_before(heap, top, &extent))
            return tables_damaged("the last free extent is wrong", heap, top - 1);
        if (wanted.first >= (extent.count != 0 ? extent.first : top))
            return rise(heap, extent, wanted.first, wanted.count);
    } else {
        uint64_t head = head_before(heap, wanted.first);
        if (head < first_user_page)
            return tables_damaged("no extent holds it", heap, wanted.first);
        if (heap->descriptors[head].kind == page_free) {
            extent = {static_cast<uint32_t>(head), heap->descriptors[head].length};
            if (end <= uint64_t{extent.first} + extent.count) {
                if (free_length(heap, head, end) == 0 || !carve(heap, extent, wanted.first, wanted.count))
                    return tables_damaged("a free extent is wrong", heap, head);
                return TY_OK;
            }
        }
    }
    return failure(TY_E_EXISTS, "allocate at %p: some of it is in use",
                   static_cast<void *>(page_address(heap, wanted.first)));
}

ty_status take_pages_at(ty_heap *heap, page_extent wanted) {
    ty_status status = take_free_at(heap, wanted);
    if (status == TY_OK)
        count_taken(heap, wanted.first, wanted.count);
    return status;
}

// Frees pages in use and joins them with the free extents on both sides.
static ty_status join_free(ty_heap *heap, page_extent extent) {
    uint64_t first = extent.first;
    uint64_t end = first + extent.count;
    page_extent before, after;
    if (next_head(heap, first + 1, end) != end)
        return tables_damaged("an extent starts inside another one", heap, first);
    if (!free_run_before(heap, first, &before))
        return tables_damaged("the free extent before it is wrong", heap, first);
    if (fault("free_neighbours_not_joined"))
        after = {};
    else if (!free_extent_at(heap, end, &after))
        return tables_damaged("the free extent after it is wrong", heap, end);
    if (before.count != 0 && !unmake_free(heap, before))
        return tables_damaged("a free extent is not in the tree", heap, before.first);
    if (after.count != 0 && !unmake_free(heap, after)) {
        if (before.count != 0)
            make_free(heap, before.first, before.count);
        return tables_damaged("a free extent is not in the tree", heap, after.first);
    }
    if (!fault("descriptor_stays_inside_a_free_run"))
        heap->descriptors[first] = {};
    clear_head(heap, first);
    if (before.count != 0)
        first = before.first;
    if (!make_free(heap, first, end + after.count - first))
        return tables_damaged("the tree of free extents is wrong", heap, first);
    return TY_OK;
}

ty_status release_pages(ty_heap *heap, page_extent extent, page_extent emptied) {
    if (ty_status status = join_free(heap, extent); status != TY_OK)
        return status;
    count_released(heap, extent.count);
    note_freed(heap, extent, emptied);
    return TY_OK;
}

bool withdraw_free(ty_heap *heap, page_extent extent) {
    if (free_length(heap, extent.first, uint64_t{extent.first} + extent.count) != extent.count ||
        !unmake_free(heap, extent))
        return false;
    heap->descriptors[extent.first] = {page_extent_head, 0, 0, extent.count, 0, 0};
    set_head(heap, extent.first);
    return true;
}

void return_withdrawn(ty_heap *heap, page_extent extent) {
    static_cast<void>(join_free(heap, extent));
}

ty_status grow_extent(ty_heap *heap, page_extent extent, uint32_t count, uint64_t *fresh_from) {
    uint64_t end = uint64_t{extent.first} + extent.count;
    uint64_t more = count - extent.count;
    uint64_t top = top_of(heap);
    page_extent after;
    *fresh_from = top;
    if (!within_hard_limit(heap, more))
        return hard_limit_reached(heap, more);
    if (!free_extent_at(heap, end, &after))
        return tables_damaged("the free extent after it is wrong", heap, end);
    ty_status status;
    if (after.count >= more) {
        if (free_length(heap, end, end + more) == 0 || !carve(heap, after, end, more))
            return tables_damaged("a free extent is wrong", heap, end);
    } else if (end + after.count == top) {
        if (status = rise(heap, after, end, more); status != TY_OK)
            return status;
    } else {
        return TY_E_MEMORY;
    }
    clear_head(heap, end);
    heap->descriptors[extent.first].length = count;
    count_taken(heap, end, more);
    return TY_OK;
}

ty_status shrink_extent(ty_heap *heap, page_extent extent, uint32_t count) {
    page_extent tail{extent.first + count, extent.count - count};
    if (next_head(heap, extent.first + 1, uint64_t{extent.first} + extent.count) !=
        uint64_t{extent.first} + extent.count)
        return tables_damaged("an extent starts inside another one", heap, extent.first);
    heap->descriptors[extent.first].length = count;
    ty_status status = release_pages(heap, tail);
    if (status != TY_OK)
        heap->descriptors[extent.first].length = extent.count;
    return status;
}

ty_status split_extent(ty_heap *heap, page_extent extent, uint32_t count) {
    uint64_t end = uint64_t{extent.first} + extent.count;
    if (next_head(heap, extent.first + uint64_t{1}, end) != end)
        return tables_damaged("an extent starts inside another one", heap, extent.first);
    heap->descriptors[extent.first].length = count;
    heap->descriptors[extent.first + count] = {page_extent_head, 0, 0, extent.count - count, 0, 0};
    set_head(heap, extent.first + count);
    return TY_OK;
}

ty_status join_extents(ty_heap *heap, page_extent extent) {
    uint64_t end = uint64_t{extent.first} + extent.count;
    page_extent after;
    if (end >= top_of(heap) || heap->descriptors[end].kind != page_extent_head)
        return failure(TY_E_ARGUMENT, "join the blocks at %p: no extent starts after it",
                       static_cast<void *>(page_address(heap, extent.first)))
            .remedy("join what a split has made");
    if (!extent_at_head(heap, end, &after))
        return tables_damaged("the extent is wrong", heap, end);
    clear_head(heap, end);
    heap->descriptors[end] = {};
    heap->descriptors[extent.first].length = extent.count + after.count;
    return TY_OK;
}

} // namespace taiyen
