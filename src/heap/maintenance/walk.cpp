#include "walk.hpp"

#include "../tables/tables.hpp"

namespace taiyen {
namespace {

// A checked heap's blocks are those that the program knows.
bool call_back(const ty_heap *heap, ty_block block, ty_block_callback *callback, void *context) {
    if (heap->checks != nullptr && !heap->checks->calls->as_program_sees(heap, &block))
        return true;
    return callback(&block, context);
}

bool each_in_span(const ty_heap *heap, page_run area, ty_block_callback *callback, void *context) {
    const class_info &info = heap->classes[heap->descriptors[area.first].size_class];
    const std::atomic<uint64_t> *words = bitmap_of(heap, area.first);
    for (uint32_t i = 0; i < info.words; i++) {
        uint64_t word = words[i].load(std::memory_order_relaxed) & word_mask(info, i);
        for (; word != 0; word &= word - 1) {
            uint64_t index = uint64_t{i} * 64 + static_cast<unsigned>(__builtin_ctzll(word));
            ty_block block{page_address(heap, area.first) + index * info.block_bytes, info.block_bytes};
            if (!call_back(heap, block, callback, context))
                return false;
        }
    }
    return true;
}

// What the largest bitmap of a span takes.
constexpr uint32_t live_words_max = span_pages_max * bitmap_words_per_page;

// Bits past the last block are no blocks (H5), whatever a damaged heap has there.
void copy_live(const ty_heap *heap, const class_info &info, uint64_t head, uint64_t (&live)[live_words_max]) {
    const std::atomic<uint64_t> *words = bitmap_of(heap, head);
    for (uint32_t i = 0; i < info.words; i++)
        live[i] = words[i].load(std::memory_order_relaxed) & word_mask(info, i);
}

ty_area area_of_kind(ty_area_kind kind, void *address, size_t bytes) {
    return {kind, address, bytes, 0, 0, 0, nullptr};
}

// live: room for a bitmap, which the area then leads to.
ty_area describe_area(const ty_heap *heap, page_run pages, uint64_t (&live)[live_words_max]) {
    ty_area area = area_of_kind(TY_AREA_FREE, page_address(heap, pages.first), pages.count * page_bytes);
    if (kind_at(heap, pages.first) == page_run_head) {
        area.kind = TY_AREA_RUN;
        area.block_size_bytes = area.size_bytes;
        area.block_count = area.live_count = 1;
    } else if (kind_at(heap, pages.first) == page_span) {
        const class_info &info = heap->classes[heap->descriptors[pages.first].size_class];
        area.kind = TY_AREA_SPAN;
        area.block_size_bytes = info.block_bytes;
        area.block_count = info.blocks;
        area.live_count = count_allocated(heap, info, pages.first);
        copy_live(heap, info, pages.first, live);
        area.live = live;
    }
    return area;
}

ty_status end_of_walk(const area_walk &walk, const ty_heap *heap) {
    return walk.damaged() ? tables_damaged("no area starts there", heap, walk.page()) : TY_OK;
}

} // namespace

bool area_walk::next(page_run *area) {
    if (next_ >= top_of(heap_) || !area_at_head(heap_, next_, area))
        return false;
    next_ += area->count;
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
    area_walk walk(heap);
    page_run area;
    while (walk.next(&area)) {
        bool go_on = true;
        if (kind_at(heap, area.first) == page_span) {
            go_on = each_in_span(heap, area, callback, context);
        } else if (kind_at(heap, area.first) == page_run_head) {
            ty_block block{page_address(heap, area.first), area.count * page_bytes};
            go_on = call_back(heap, block, callback, context);
        }
        if (!go_on)
            return TY_OK;
    }
    return end_of_walk(walk, heap);
}

ty_status heap_each_area(ty_heap *heap, ty_area_callback *callback, void *context) {
    callback_pause paused(heap);
    ty_area area = area_of_kind(TY_AREA_CONTROL, heap->base, header_pages * page_bytes);
    uint64_t live[live_words_max]{};
    if (!callback(&area, context))
        return TY_OK;
    area_walk walk(heap);
    page_run pages;
    while (walk.next(&pages)) {
        area = describe_area(heap, pages, live);
        if (!callback(&area, context))
            return TY_OK;
    }
    if (walk.damaged())
        return end_of_walk(walk, heap);
    uint64_t top = top_of(heap);
    area = area_of_kind(TY_AREA_FREE, page_address(heap, top), (heap->first_table_page - top) * page_bytes);
    if (area.size_bytes != 0 && !callback(&area, context))
        return TY_OK;
    char *tables = page_address(heap, heap->first_table_page);
    area = area_of_kind(TY_AREA_CONTROL, tables, heap->limit_bytes - heap->first_table_page * page_bytes);
    callback(&area, context);
    return TY_OK;
}

// What was never used counts as in use: it is not dirty but where tables stood before a growth, and there the zeros
// that replaced them matter (H7).
page_area heap_area_at(ty_heap *heap, uint64_t page) {
    uint64_t pages = heap->limit_bytes / page_bytes;
    uint64_t top = top_of(heap);
    if (page < first_user_page)
        return {0, first_user_page, false};
    if (page >= heap->first_table_page)
        return {heap->first_table_page, pages - heap->first_table_page, false};
    if (page >= top)
        return {top, heap->first_table_page - top, false};
    uint64_t head = head_before(heap, page);
    page_run area;
    if (head < first_user_page || !area_at_head(heap, head, &area) || page >= head + area.count)
        return {page, 1, false}; // damaged: better saved than left out
    return {area.first, area.count, kind_at(heap, head) == page_free};
}

page_area heap_area_now(ty_heap *heap, uint64_t page) {
    os::lock_guard guard(heap->pages_lock);
    return heap_area_at(heap, page);
}

} // namespace taiyen
