// Makes the live blocks of whole extents, as reported by ty_each_extent: a span at a time, in one pause.
#include "../blocks/blocks.hpp"
#include "../spans/spans.hpp"
#include "../threads/threads.hpp"
#include "walk.hpp"

namespace taiyen {
namespace {

ty_status refuse(const ty_extent &extent, const char *what) {
    return failure(TY_E_ARGUMENT, "make the extent at %p: %s", extent.address, what)
        .remedy("hand in extents as ty_each_extent reports them for a heap with the same base and class table");
}

// The pages of a range of bytes, if blocks can lie there.
bool pages_of(const ty_heap *heap, const void *address, uint64_t bytes, page_extent *extent) {
    const uint64_t offset = offset_in(heap, address);
    const uint64_t first = first_user_page * page_bytes, end = heap->first_table_page * page_bytes;
    if (offset < first || offset >= end || bytes == 0 || bytes > end - offset || (offset | bytes) % page_bytes != 0)
        return false;
    *extent = {static_cast<uint32_t>(offset / page_bytes), static_cast<uint32_t>(bytes / page_bytes)};
    return true;
}

bool find_class(const ty_heap *heap, size_t block_bytes, uint32_t *size_class) {
    if (block_bytes == 0 || block_bytes > heap->small_max)
        return false;
    *size_class = heap->class_of[(block_bytes + 7) / 8];
    return heap->classes[*size_class].block_bytes == block_bytes;
}

// Whether it has no bits past the last block, and as many as the extent says.
bool bitmap_fits(const class_info &info, const ty_extent &extent) {
    size_t count = 0;
    for (uint32_t i = 0; i < info.words; i++) {
        if ((extent.live[i] & ~word_mask(info, i)) != 0)
            return false;
        count += count_bits(extent.live[i]);
    }
    return count == extent.live_count;
}

// H4: a span starts at a multiple of its size. H5: bits are set exactly where blocks are allocated. A span without live
// blocks is not made.
ty_status make_span_extent(ty_heap *heap, const ty_extent &extent) {
    uint32_t size_class;
    if (!find_class(heap, extent.block_size_bytes, &size_class))
        return refuse(extent, "the heap has no size class of such blocks");
    const class_info &info = heap->classes[size_class];
    const size_t bytes = info.pages * page_bytes;
    if ((extent.size_bytes != 0 && extent.size_bytes != bytes) ||
        (extent.block_count != 0 && extent.block_count != info.blocks))
        return refuse(extent, "spans of its size class have another size in this heap");
    page_extent pages;
    if (!pages_of(heap, extent.address, bytes, &pages) || head_of_span(info, pages.first) != pages.first)
        return refuse(extent, "no span of its size class can start there");
    if (extent.live == nullptr || !bitmap_fits(info, extent))
        return refuse(extent, "its bitmap of live blocks is missing, or does not fit its counts");
    return extent.live_count != 0 ? make_span_at(heap, size_class, pages.first, extent.live) : TY_OK;
}

// The failure of the layer below does not name the extent, nor what to do.
ty_status in_use(const ty_extent &extent) {
    return failure(TY_E_EXISTS, "make the extent at %p: some of it is in use", extent.address)
        .remedy("make extents where the heap has no blocks, each once");
}

ty_status make_block_extent(ty_heap *heap, const ty_extent &extent) {
    page_extent pages;
    if (!pages_of(heap, extent.address, extent.size_bytes, &pages))
        return refuse(extent, "it is no extent of whole pages in the heap's blocks");
    os::lock_guard guard(heap->pages_lock);
    ty_status status = take_pages_at(heap, pages);
    if (status == TY_OK)
        heap->descriptors[pages.first] = {page_extent_head, 0, 0, pages.count, 0, 0};
    return status;
}

// The number of a span's pages with live blocks. Steps from page to page, not from block to block.
uint64_t filled_pages(const ty_heap *heap, page_extent span) {
    const class_info &info = heap->classes[heap->descriptors[span.first].size_class];
    const std::atomic<uint64_t> *words = bitmap_of(heap, span.first);
    uint64_t filled = 0;
    for (uint64_t page = 0; page < span.count;) { // all before it are counted
        uint64_t index = page * page_bytes / info.block_bytes, live = 0;
        for (; index < info.blocks; index = (index / 64 + 1) * 64) {
            live = words[index / 64].load(std::memory_order_relaxed) & ~uint64_t{0} << (index % 64);
            if (live != 0)
                break;
        }
        if (live == 0)
            break;
        index = index / 64 * 64 + static_cast<unsigned>(__builtin_ctzll(live));
        const uint64_t first = index * info.block_bytes / page_bytes;
        const uint64_t end = ((index + 1) * info.block_bytes - 1) / page_bytes + 1;
        filled += end - (first > page ? first : page);
        page = end;
    }
    return filled;
}

// P2: untouched memory is not resident out of proportion. A caller that makes extents writes their blocks, so huge
// pages are asked for where at most a sixteenth of one is in no live block, in a bounded number of stretches, so that
// the process does not run out of mappings. In the first huge page the header is in small pages already.
constexpr uint64_t filled_pages_min = huge_page_pages - huge_page_pages / 16;
constexpr unsigned filled_stretches_max = 1024;

void ask_for_filled(ty_heap *heap, uint64_t first, uint64_t end) {
    uint64_t place = first / huge_page_pages, filled = 0;
    unsigned stretches = 0;
    bool asked = false;
    auto go_to = [&](uint64_t next) {
        const bool before = asked;
        asked = place != 0 && filled >= filled_pages_min && (before || stretches < filled_stretches_max);
        stretches += asked && !before;
        if (asked)
            wish_huge(heap, place * huge_page_pages, (place + 1) * huge_page_pages, true);
        place = next;
        filled = 0;
    };
    extent_walk walk(heap, first);
    for (page_extent extent; walk.page() < end && walk.next(&extent);) {
        const page_kind kind = kind_at(heap, extent.first);
        const uint64_t used = kind == page_extent_head ? extent.count
                              : kind == page_span      ? filled_pages(heap, extent)
                                                       : 0;
        for (uint64_t page = extent.first;
             page < walk.page();) { // an extent may be in several huge pages, a span is in one
            const uint64_t here = page / huge_page_pages, after = (here + 1) * huge_page_pages;
            const uint64_t pages = (walk.page() < after ? walk.page() : after) - page;
            if (here != place)
                go_to(here);
            filled += used < pages ? used : pages;
            page += pages;
        }
    }
    go_to(0);
}

} // namespace

ty_status heap_make_extents(ty_heap *heap, const ty_extent *extents, size_t count, size_t *made) {
    *made = 0;
    if (!heap->writable)
        return not_writable("make extents", heap);
    if (checks_all(heap))
        return unsupported_by_checks("make extents", heap);
    pause_guard paused(heap, pause_to::change); // as in heap_alloc_at
    uint64_t first = UINT64_MAX, end = 0;
    for (; *made < count; ++*made) {
        const ty_extent &extent = extents[*made];
        ty_status status = TY_OK;
        if (extent.kind == TY_EXTENT_SPAN)
            status = make_span_extent(heap, extent);
        else if (extent.kind == TY_EXTENT_BLOCK)
            status = make_block_extent(heap, extent);
        if (status == TY_E_EXISTS)
            return in_use(extent);
        if (status != TY_OK)
            return status;
        const uint64_t page = offset_in(heap, extent.address) / page_bytes;
        if (extent.kind == TY_EXTENT_BLOCK || (extent.kind == TY_EXTENT_SPAN && extent.live_count != 0)) {
            first = page < first ? page : first;
            end = page >= end ? page + 1 : end;
        }
    }
    if (heap->owner.huge && end != 0)
        ask_for_filled(heap, first, end);
    return TY_OK;
}

} // namespace taiyen
