#include "walk.hpp"

#include "../tables/tables.hpp"

namespace taiyen {
namespace {

// For a checked heap, the block as the program sees it, if it does.
bool call_back(const ty_heap *heap, ty_block block, ty_block_callback *callback, void *context) {
    if (heap->checks != nullptr && !heap->checks->calls->as_program_sees(heap, &block))
        return true;
    return callback(&block, context);
}

bool each_in_span(const ty_heap *heap, page_extent extent, ty_block_callback *callback, void *context) {
    const class_info &info = heap->classes[heap->descriptors[extent.first].size_class];
    const std::atomic<uint64_t> *words = bitmap_of(heap, extent.first);
    for (uint32_t i = 0; i < info.words; i++) {
        uint64_t word = words[i].load(std::memory_order_relaxed) & word_mask(info, i);
        for (; word != 0; word &= word - 1) {
            uint64_t index = uint64_t{i} * 64 + static_cast<unsigned>(__builtin_ctzll(word));
            ty_block block{page_address(heap, extent.first) + index * info.block_bytes, info.block_bytes};
            if (!call_back(heap, block, callback, context))
                return false;
        }
    }
    return true;
}

// The words of a span's largest bitmap.
constexpr uint32_t live_words_max = span_pages_max * bitmap_words_per_page;

// H5: bits past the last block stand for no block, whatever a damaged heap has there.
void copy_live(const ty_heap *heap, const class_info &info, uint64_t head, uint64_t (&live)[live_words_max]) {
    const std::atomic<uint64_t> *words = bitmap_of(heap, head);
    for (uint32_t i = 0; i < info.words; i++)
        live[i] = words[i].load(std::memory_order_relaxed) & word_mask(info, i);
}

ty_extent extent_of_kind(ty_extent_kind kind, void *address, size_t bytes) {
    return {kind, address, bytes, 0, 0, 0, nullptr};
}

// live: room for a bitmap, to which the extent then points.
ty_extent describe_extent(const ty_heap *heap, page_extent pages, uint64_t (&live)[live_words_max]) {
    ty_extent extent = extent_of_kind(TY_EXTENT_FREE, page_address(heap, pages.first), pages.count * page_bytes);
    if (kind_at(heap, pages.first) == page_extent_head) {
        extent.kind = TY_EXTENT_BLOCK;
        extent.block_size_bytes = extent.size_bytes;
        extent.block_count = extent.live_count = 1;
    } else if (kind_at(heap, pages.first) == page_span) {
        const class_info &info = heap->classes[heap->descriptors[pages.first].size_class];
        extent.kind = TY_EXTENT_SPAN;
        extent.block_size_bytes = info.block_bytes;
        extent.block_count = info.blocks;
        extent.live_count = count_allocated(heap, info, pages.first);
        copy_live(heap, info, pages.first, live);
        extent.live = live;
    }
    return extent;
}

ty_status end_of_walk(const extent_walk &walk, const ty_heap *heap) {
    return walk.damaged() ? tables_damaged("no extent starts there", heap, walk.page()) : TY_OK;
}

} // namespace

bool extent_walk::next(page_extent *extent) {
    if (next_ >= top_of(heap_) || !extent_at_head(heap_, next_, extent))
        return false;
    next_ += extent->count;
    return true;
}

uint32_t count_allocated(const ty_heap *heap, const class_info &info, uint64_t head) {
    uint32_t count = 0;
    const std::atomic<uint64_t> *words = bitmap_of(heap, head);
    for (uint32_t i = 0; i < info.words; i++)
        count += count_bits(words[i].load(std::memory_order_relaxed) & word_mask(info, i));
    return count;
}

ty_status heap_each_block(ty_heap *heap, ty_block_callback *callback, void *context) {
    callback_pause paused(heap);
    extent_walk walk(heap);
    page_extent extent;
    while (walk.next(&extent)) {
        bool go_on = true;
        if (kind_at(heap, extent.first) == page_span) {
            go_on = each_in_span(heap, extent, callback, context);
        } else if (kind_at(heap, extent.first) == page_extent_head) {
            ty_block block{page_address(heap, extent.first), extent.count * page_bytes};
            go_on = call_back(heap, block, callback, context);
        }
        if (!go_on)
            return TY_OK;
    }
    return end_of_walk(walk, heap);
}

ty_status heap_each_extent(ty_heap *heap, ty_extent_callback *callback, void *context) {
    callback_pause paused(heap);
    ty_extent extent = extent_of_kind(TY_EXTENT_CONTROL, heap->base, header_pages * page_bytes);
    uint64_t live[live_words_max]{};
    if (!callback(&extent, context))
        return TY_OK;
    extent_walk walk(heap);
    page_extent pages;
    while (walk.next(&pages)) {
        extent = describe_extent(heap, pages, live);
        if (!callback(&extent, context))
            return TY_OK;
    }
    if (walk.damaged())
        return end_of_walk(walk, heap);
    uint64_t top = top_of(heap);
    extent = extent_of_kind(TY_EXTENT_FREE, page_address(heap, top), (heap->first_table_page - top) * page_bytes);
    if (extent.size_bytes != 0 && !callback(&extent, context))
        return TY_OK;
    char *tables = page_address(heap, heap->first_table_page);
    extent = extent_of_kind(TY_EXTENT_CONTROL, tables, heap->limit_bytes - heap->first_table_page * page_bytes);
    callback(&extent, context);
    return TY_OK;
}

// Pages that were never used count as in use: they are dirty only where tables stood before a growth, and there the
// zeros that replaced them matter (H7).
page_extent_use heap_extent_at(ty_heap *heap, uint64_t page) {
    uint64_t pages = heap->limit_bytes / page_bytes;
    uint64_t top = top_of(heap);
    if (page < first_user_page)
        return {0, first_user_page, false};
    if (page >= heap->first_table_page)
        return {heap->first_table_page, pages - heap->first_table_page, false};
    if (page >= top)
        return {top, heap->first_table_page - top, false};
    uint64_t head = head_before(heap, page);
    page_extent extent;
    if (head < first_user_page || !extent_at_head(heap, head, &extent) || page >= head + extent.count)
        return {page, 1, false}; // damaged: better saved than left out
    return {extent.first, extent.count, kind_at(heap, head) == page_free};
}

page_extent_use heap_extent_now(ty_heap *heap, uint64_t page) {
    os::lock_guard guard(heap->pages_lock);
    return heap_extent_at(heap, page);
}

ty_status heap_select_pages(ty_heap *heap, const os::page_set &pages, const page_choice &choice, page_list *list) {
    uint64_t capacity = pages.count() < choice.limit ? pages.count() : choice.limit;
    if (ty_status status = list->reserve(capacity))
        return status;
    uint64_t end = choice.end < pages.page_count() ? choice.end : pages.page_count();
    page_extent_use extent{};
    for (uint64_t page = pages.next(choice.first); page < end && list->count() < capacity;) {
        if (page - extent.first >= extent.count)
            extent = choice.extent_at(heap, page);
        if (extent.free) {
            page = pages.next(extent.first + extent.count);
            continue;
        }
        if (!choice.but || !choice.but->contains(page))
            list->push_in_room(page);
        page = pages.next(page + 1);
    }
    return TY_OK;
}

} // namespace taiyen
