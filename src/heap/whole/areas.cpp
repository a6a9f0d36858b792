// Making the live blocks of whole areas, as ty_each_area has told of them: a span at a time, in one pause.
#include "../blocks/blocks.hpp"
#include "../spans/spans.hpp"
#include "../threads/threads.hpp"

namespace taiyen {
namespace {

ty_status refuse(const ty_area &area, const char *what) {
    return failure(TY_E_ARGUMENT, "make the area at %p: %s", area.address, what)
        .remedy("hand in areas as ty_each_area tells them of a heap with the same base and class table");
}

// The pages that bytes from an address on are, where blocks can lie there.
bool pages_of(const ty_heap *heap, const void *address, uint64_t bytes, page_run *run) {
    const uint64_t offset = offset_in(heap, address);
    const uint64_t first = first_user_page * page_bytes, end = heap->first_table_page * page_bytes;
    if (offset < first || offset >= end || bytes == 0 || bytes > end - offset || (offset | bytes) % page_bytes != 0)
        return false;
    *run = {static_cast<uint32_t>(offset / page_bytes), static_cast<uint32_t>(bytes / page_bytes)};
    return true;
}

bool find_class(const ty_heap *heap, size_t block_bytes, uint32_t *size_class) {
    if (block_bytes == 0 || block_bytes > heap->small_max)
        return false;
    *size_class = heap->class_of[(block_bytes + 7) / 8];
    return heap->classes[*size_class].block_bytes == block_bytes;
}

// No bits past the last block, and as many as the area says.
bool bitmap_fits(const class_info &info, const ty_area &area) {
    size_t count = 0;
    for (uint32_t i = 0; i < info.words; i++) {
        if ((area.live[i] & ~word_mask(info, i)) != 0)
            return false;
        count += count_bits(area.live[i]);
    }
    return count == area.live_count;
}

// H4, H5. A span without live blocks is none.
ty_status make_span_area(ty_heap *heap, const ty_area &area) {
    uint32_t size_class;
    if (!find_class(heap, area.block_size_bytes, &size_class))
        return refuse(area, "the heap has no size class of such blocks");
    const class_info &info = heap->classes[size_class];
    const size_t bytes = info.pages * page_bytes;
    if ((area.size_bytes != 0 && area.size_bytes != bytes) ||
        (area.block_count != 0 && area.block_count != info.blocks))
        return refuse(area, "spans of its size class have another size in this heap");
    page_run run;
    if (!pages_of(heap, area.address, bytes, &run) || head_of_span(info, run.first) != run.first)
        return refuse(area, "no span of its size class can start there");
    if (area.live == nullptr || !bitmap_fits(info, area))
        return refuse(area, "its bitmap of live blocks is missing, or does not fit its counts");
    return area.live_count != 0 ? make_span_at(heap, size_class, run.first, area.live) : TY_OK;
}

// The text of who finds the pages taken says what it is about, and not what to do.
ty_status in_use(const ty_area &area) {
    return failure(TY_E_EXISTS, "make the area at %p: some of it is in use", area.address)
        .remedy("make areas where the heap has no blocks, each once");
}

ty_status make_run_area(ty_heap *heap, const ty_area &area) {
    page_run run;
    if (!pages_of(heap, area.address, area.size_bytes, &run))
        return refuse(area, "it is no run of whole pages in the heap's blocks");
    os::lock_guard guard(heap->pages_lock);
    ty_status status = take_pages_at(heap, run);
    if (status == TY_OK)
        heap->descriptors[run.first] = {page_run_head, 0, 0, run.count, 0, 0};
    return status;
}

} // namespace

ty_status heap_make_areas(ty_heap *heap, const ty_area *areas, size_t count, size_t *made) {
    *made = 0;
    if (!heap->writable)
        return not_writable("make areas", heap);
    if (checks_all(heap))
        return unsupported_by_checks("make areas", heap);
    pause_guard paused(heap, pause_to::change); // as in heap_alloc_at
    for (; *made < count; ++*made) {
        const ty_area &area = areas[*made];
        ty_status status = TY_OK;
        if (area.kind == TY_AREA_SPAN)
            status = make_span_area(heap, area);
        else if (area.kind == TY_AREA_RUN)
            status = make_run_area(heap, area);
        if (status == TY_E_EXISTS)
            return in_use(area);
        if (status != TY_OK)
            return status;
    }
    return TY_OK;
}

} // namespace taiyen
