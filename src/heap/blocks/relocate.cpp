#include "relocate.hpp"

#include "../pages/pages.hpp"
#include "alloc.hpp"
#include "recycle.hpp"

#include <cstring>

namespace taiyen {
namespace {

// A shrinking extent is moved only if it is short, since it is copied.
constexpr uint64_t tidy_bytes_max = uint64_t{256} << 10;

// Fewer small pages are copied: they fault in less time than a call takes.
constexpr uint64_t moved_pages_min = 8;

// The new place of a growing block. Pages from fresh_from on were above top; donors are for its additional pages.
struct new_place {
    page_extent extent;
    uint64_t fresh_from;
    memory_donors donors;
};

// The offset within a huge page at which the new place should start, in pages: that of the old one, so that pages can
// be moved whole. A short extent is copied instead, once, to the start of a huge page.
uint64_t offset_for(const ty_heap *heap, const live_block &block) {
    uint64_t page = reinterpret_cast<uintptr_t>(heap->base + block.offset) / page_bytes;
    return !block.small && block.extent.count >= aligned_extent_pages ? page % huge_page_pages : 0;
}

page_extent pages_of(const live_block &block) {
    return block.small ? page_extent{0, static_cast<uint32_t>((block.bytes + page_bytes - 1) / page_bytes)}
                       : block.extent;
}

// The pages of an extent after the first count.
page_extent after(page_extent extent, uint32_t count) {
    return {extent.first + count, extent.count - count};
}

// An extent of place->extent.count pages for a block that has grown and is likely to grow again: if there is enough
// memory, in front of as many free pages.
[[gnu::cold, gnu::noinline]] ty_status take_growing_extent(ty_heap *heap, const live_block &block, new_place *place) {
    uint64_t pages = place->extent.count;
    uint64_t before = offset_for(heap, block);
    const wanted_place choices[] = {{pages, huge_page_pages, before, pages, false, false},
                                    {pages, huge_page_pages, before, 0, false, false},
                                    {pages, 1, 0, 0, false, false}};
    os::lock_guard guard(heap->pages_lock);
    place->fresh_from = top_of(heap);
    ty_status status = TY_E_MEMORY;
    for (uint32_t i = heap->owner.movable && pages >= huge_page_pages ? 0 : 2; i < 3 && status == TY_E_MEMORY; i++)
        status = take_pages_in(heap, choices[i], &place->extent.first);
    if (status != TY_OK)
        return status;
    heap->descriptors[place->extent.first] = {page_extent_head, 0, 0, place->extent.count, 0, 0};
    withdraw_donors(heap, after(place->extent, pages_of(block).count), place->fresh_from, &place->donors);
    return TY_OK;
}

// A block about to move takes the free rest of its last huge page, so that this is moved, too, and not copied.
void fill_last_huge_page(ty_heap *heap, uint64_t pages_wanted, page_extent *extent) {
    uint64_t base_page = reinterpret_cast<uintptr_t>(heap->base) / page_bytes;
    uint64_t missing = -(base_page + extent->first + extent->count) & (huge_page_pages - 1);
    uint64_t filled = extent->count + missing;
    uint64_t fresh_from;
    if (missing == 0 || extent->count < huge_page_pages || filled > pages_wanted)
        return;
    os::lock_guard guard(heap->pages_lock);
    if (grow_extent(heap, *extent, static_cast<uint32_t>(filled), &fresh_from) == TY_OK)
        extent->count = static_cast<uint32_t>(filled);
}

// Moves content between small pages. Destination pages with memory are copied into; the first stretch without memory
// gets the pages. Returns the pages that are gone. PM4: nothing is copied over a page that moved uncounted. The target
// of a move must read as zeros, so its end is not left for the kernel to find.
page_extent move_small_pages(ty_heap *heap, page_extent from, uint64_t to) {
    uint64_t hole = next_with_touched(heap, to, to + from.count, false);
    uint64_t stop = next_with_touched(heap, hole, to + from.count, true);
    page_extent rest = after(from, static_cast<uint32_t>(hole - to));
    char *source = page_address(heap, rest.first);
    char *target = page_address(heap, hole);
    size_t moved = 0;
    if (stop - hole >= moved_pages_min)
        moved = heap->mover.hand_over(source, target, (stop - hole) * page_bytes);
    memcpy(page_address(heap, to), page_address(heap, from.first), (hole - to) * page_bytes);
    memcpy(target + moved, source + moved, rest.count * page_bytes - moved);
    return {rest.first, static_cast<uint32_t>(moved / page_bytes)};
}

// None of these pages is part of a huge one, unless the kernel makes them so on its own.
bool in_small_pages(const ty_heap *heap, uint64_t first, uint64_t count) {
    uint64_t from = first / huge_page_pages;
    uint64_t last = (first + count - 1) / huge_page_pages;
    return last < 64 && (heap->huge_places.load(std::memory_order_relaxed) >> from) << from << (63 - last) == 0;
}

// Not inlined: it would be there twice, with take_growing_extent. Not cold: it copies, and cold code would copy byte by
// byte.
[[gnu::noinline]] page_extent move_content(ty_heap *heap, page_extent from, const new_place &place) {
    uint64_t to = place.extent.first;
    bool small = in_small_pages(heap, from.first, from.count) && in_small_pages(heap, to, from.count);
    if (small && heap->memory.touched != nullptr && heap->memory.zeros.load(std::memory_order_relaxed))
        return move_small_pages(heap, from, to);
    size_t moved = heap->mover.move(page_address(heap, from.first), page_address(heap, to), from.count * page_bytes,
                                    is_vacant(heap, to, from.count));
    if (heap->memory.small_pages != nullptr && (to + from.count) % huge_page_pages != 0)
        note_small_pages(heap, to + from.count - 1, 1); // the tail is copied to small pages
    uint32_t first = static_cast<uint32_t>((from.first + huge_page_pages - 1) & ~(huge_page_pages - 1));
    return {first, static_cast<uint32_t>(moved / page_bytes)};
}

} // namespace

void *grow_elsewhere(ty_heap *heap, thread_cache *cache, live_block block, size_t size) {
    char *from = heap->base + block.offset;
    if (block.small && size <= heap->small_max) {
        void *moved = alloc_entered(heap, cache, size, 0, false);
        if (moved == nullptr)
            return nullptr;
        memcpy(moved, from, block.bytes);
        return free_entered(heap, cache, from) == TY_OK ? moved : nullptr;
    }
    if (size > heap->limit_bytes)
        return no_block(failure(TY_E_MEMORY, "resize a block to %zu bytes: more than the heap's limit", size)
                            .remedy("use a heap with a larger limit_bytes"));
    new_place place{{0, static_cast<uint32_t>((size + page_bytes - 1) / page_bytes)}, 0, {}};
    if (take_growing_extent(heap, block, &place) != TY_OK)
        return nullptr;
    char *to = page_address(heap, place.extent.first);
    page_extent emptied{};
    if (!block.small && heap->owner.movable) {
        fill_last_huge_page(heap, place.extent.count, &block.extent);
        emptied = move_content(heap, block.extent, place);
    } else {
        memcpy(to, from, block.bytes);
    }
    recycle(heap, after(place.extent, pages_of(block).count), place.fresh_from, place.donors);
    ty_status status = block.small ? free_entered(heap, cache, from) : free_extent(heap, cache, from, emptied);
    return status == TY_OK ? to : nullptr;
}

void *tidy_shrunk(ty_heap *heap, thread_cache *cache, const live_block &block, size_t size, uint64_t freed_bytes) {
    void *from = heap->base + block.offset;
    if (!heap->owner.movable || block.small || size > freed_bytes || size > tidy_bytes_max)
        return from;
    void *to = nullptr;
    if (size <= heap->small_max) {
        to = alloc_entered(heap, cache, size, 0, false);
    } else {
        uint32_t first;
        os::lock_guard guard(heap->pages_lock);
        if (take_better_place(heap, block.extent, &first) == TY_OK && first != 0)
            to = page_address(heap, first);
    }
    if (to == nullptr)
        return from;
    memcpy(to, from, size);
    return free_entered(heap, cache, from) == TY_OK ? to : nullptr;
}

} // namespace taiyen
