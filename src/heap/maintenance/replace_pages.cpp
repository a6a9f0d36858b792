// The pages of a heap become those of another moment: what the runtime state knows of their content is made anew.
//
// MK5: each span whose descriptor or bitmap may change is forgotten before, and learned again after.
#include "../pages/pages.hpp"
#include "../spans/spans.hpp"
#include "../threads/threads.hpp"
#include "attach.hpp"

namespace taiyen {
namespace {

// The pages that a page of the tables describes, if it says where spans are or which of their blocks are live. Each
// change of a span changes such a page.
page_extent_use described_by(const ty_heap *heap, uint64_t page) {
    const table_places places(heap->limit_bytes);
    const uint64_t offset = page * page_bytes;
    auto part = [&](uint64_t start, uint64_t bytes_a_page) {
        return page_extent_use{(offset - start) / bytes_a_page, page_bytes / bytes_a_page, false};
    };
    if (offset >= places.heads_offset)
        return {};
    return offset >= places.bitmaps_offset ? part(places.bitmaps_offset, page_bitmap_bytes_v1)
                                           : part(places.descriptors_offset, page_descriptor_bytes_v1);
}

// Calls with each page below `end` that is described by these pages.
template <class Use>
void each_described(const ty_heap *heap, const os::page_set &pages, uint64_t end, Use use) {
    for (uint64_t page = pages.next(heap->first_table_page); page < pages.page_count(); page = pages.next(page + 1)) {
        const page_extent_use described = described_by(heap, page);
        for (uint64_t i = described.first; i < described.first + described.count && i < end; i++)
            use(static_cast<uint32_t>(i));
    }
}

void forget_spans(ty_heap *heap, const os::page_set &pages) {
    each_described(heap, pages, top_of(heap), [&](uint32_t page) {
        if (const uint32_t number = number_of(heap, page); number != 0)
            forget_span(heap, number);
    });
}

void learn_span(ty_heap *heap, uint32_t page) {
    const page_descriptor &described = heap->descriptors[page];
    if (kind_of(described) != page_span || !is_head(heap, page) || number_of(heap, page) != 0)
        return;
    os::lock_guard guard(lock_of(heap, described.size_class));
    if (const uint32_t number = know_span(heap, described.size_class, page); number != 0)
        place_shared(heap, number);
}

void learn_spans(ty_heap *heap, const os::page_set &pages) {
    each_described(heap, pages, top_of(heap), [&](uint32_t page) { learn_span(heap, page); });
}

} // namespace

ty_status heap_provide_for(ty_heap *heap, const char *page) {
    heap_header header;
    memcpy(&header, page, sizeof header);
    if (ty_status status = header_status(header, heap->base, heap->limit_bytes))
        return status;
    os::lock_guard guard(heap->pages_lock);
    return provide_pages(heap, header.top_page);
}

void heap_replace_pages(ty_heap *heap, const os::page_set &pages, const page_source &source, uint64_t used_pages) {
    heap->reached = reached_by(heap);
    if (!fault("spans_remembered_over_a_return")) // MK5
        forget_spans(heap, pages);
    for (uint64_t page = pages.next(0); page < pages.page_count(); page = pages.next(page + 1))
        source.copy(source.context, page, page_address(heap, page));
    heap->top.store(heap->header->top_page, std::memory_order_relaxed);
    heap->used_pages = used_pages;
    heap->beyond_soft = heap->used_pages > heap->soft_pages;
    if (fault("pages_above_a_lower_top_forgotten"))
        heap->reached = 0;
    learn_spans(heap, pages);
}

ty_status heap_renew(ty_heap *heap, const heap_owner &owner, void (*replace)(void *context), void *context) {
    heap_change_begin(heap);
    heap->reached = reached_by(heap);
    for (uint32_t page = first_user_page; page < top_of(heap); page++)
        if (const uint32_t number = number_of(heap, page); number != 0)
            forget_span(heap, number);
    replace(context);
    heap->owner = owner;
    heap_learn_top(heap);
    const ty_status status = provide_volatile(heap, heap->described.load(std::memory_order_relaxed));
    for (uint32_t page = first_user_page; status == TY_OK && page < top_of(heap); page++)
        learn_span(heap, page);
    heap_change_end(heap);
    return status;
}

size_t heap_asked_pages(const ty_heap *heap, os::page_range (&ranges)[heap_asked_max]) {
    const table_places places(heap->limit_bytes);
    const uint64_t starts[] = {places.descriptors_offset, places.bitmaps_offset, places.heads_offset};
    ranges[0] = {0, heap->asked.pages < first_user_page ? first_user_page : heap->asked.pages};
    for (size_t i = 0; i < 3; i++)
        ranges[i + 1] = {starts[i] / page_bytes, (heap->asked.bytes[i] + page_bytes - 1) / page_bytes};
    return heap_asked_max;
}

// MK6: what is given back from now on would change without the tracker's knowledge.
void heap_pin_memory(ty_heap *heap) {
    os::lock_guard guard(heap->pages_lock);
    heap->owner.movable = heap->owner.huge = false;
    heap->owner.give_back = nullptr;
    heap->mover.stop();
    heap->memory.touched = nullptr;
    heap->memory.small_pages = nullptr;
    heap->memory.idle = 0;
    heap->memory.zeros.store(false, std::memory_order_relaxed);
    heap->memory.due.store(false, std::memory_order_relaxed);
}

uint64_t heap_count_used(const ty_heap *heap) {
    return heap->used_pages;
}

} // namespace taiyen
