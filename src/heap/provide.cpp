#include "provide.hpp"

namespace taiyen {
namespace {

// Below so many pages a heap grows by less than a huge page at a time: owners back larger pieces with huge pages, most
// of which would be memory that nobody uses. What needs an eighth of a huge page itself, which is as fast as one, or a
// whole one, is worth it earlier.
constexpr uint64_t small_heap_pages = 3072;
constexpr uint64_t long_piece_pages = huge_page_pages / 8;
constexpr uint64_t small_heap_pages_for_long = 1024;

bool stays_small(uint64_t end, uint64_t piece) {
    if (piece >= huge_page_pages)
        return false;
    return end <= (piece < long_piece_pages ? small_heap_pages : small_heap_pages_for_long);
}

ty_status ask(const heap_owner &owner, char *from, char *to) {
    if (owner.provide == nullptr || from >= to)
        return TY_OK;
    return owner.provide(owner.context, from, static_cast<size_t>(to - from));
}

// The pages of a table that hold entries [from, end) and none before: those are usable already. From 0, all.
ty_status ask_table(const ty_heap *heap, uint64_t offset, uint64_t bits_per_entry, uint64_t from, uint64_t end) {
    uint64_t start = table_places::whole_pages((from * bits_per_entry + 7) / 8);
    uint64_t stop = table_places::whole_pages((end * bits_per_entry + 7) / 8);
    return ask(heap->owner, heap->base + offset + start, heap->base + offset + stop);
}

ty_status ask_tables(const ty_heap *heap, uint64_t limit_bytes, uint64_t from, uint64_t end) {
    const table_places tables(limit_bytes);
    ty_status status = ask_table(heap, tables.descriptors_offset, page_descriptor_bytes_v1 * 8, from, end);
    if (status == TY_OK)
        status = ask_table(heap, tables.bitmaps_offset, page_bitmap_bytes_v1 * 8, from, end);
    if (status == TY_OK)
        status = ask_table(heap, tables.heads_offset, 1, from, end);
    return status;
}

// A heap with many live blocks spends more time on missed address translations than on anything else: huge pages halve
// the time of random allocation there. Small heaps grow in smaller pieces and get none. Nor do tables, which grow in
// pieces that are no multiples of a huge page: each would be a mapping of its own.
void advise_huge(ty_heap *heap, uint64_t from, uint64_t end) {
    if (!heap->owner.huge || end - from < huge_page_pages)
        return;
    os::advise_huge(page_address(heap, from), (end - from) * page_bytes);
    uint64_t places = heap->huge_places.load(std::memory_order_relaxed);
    for (uint64_t i = (from + huge_page_pages - 1) / huge_page_pages; i < end / huge_page_pages && i < 64; i++)
        places |= uint64_t{1} << i;
    heap->huge_places.store(places, std::memory_order_relaxed);
}

// Pages below end, and entries of pages below described.
[[gnu::cold]] ty_status provide_to(ty_heap *heap, uint64_t end, uint64_t described) {
    uint64_t from = heap->provided;
    uint64_t first = from < first_user_page ? first_user_page : from;
    if (end > heap->described) {
        if (ty_status status = ask_tables(heap, heap->limit_bytes, heap->described, described); status != TY_OK)
            return status;
        heap->described = described;
    }
    if (ty_status status = ask(heap->owner, page_address(heap, first), page_address(heap, end)); status != TY_OK)
        return status;
    if (first < end)
        advise_huge(heap, first, end);
    heap->provided = end;
    return TY_OK;
}

} // namespace

ty_status provide_pages(ty_heap *heap, uint64_t end) {
    if (end <= heap->provided)
        return TY_OK;
    uint64_t step = heap->provided / 8;
    step = step < provide_step_min ? provide_step_min : step > provide_step_max ? provide_step_max : step;
    bool small = stays_small(end, end - heap->provided);
    if (small && step > huge_page_pages / 2)
        step = huge_page_pages / 2;
    if (end > small_heap_pages)
        step = provide_step_max;
    uint64_t wanted = end + step;
    if (!small)
        wanted = (wanted + huge_page_pages - 1) / huge_page_pages * huge_page_pages; // so that huge pages fit
    if (wanted > heap->first_table_page)
        wanted = heap->first_table_page;
    uint64_t all = heap->limit_bytes / page_bytes;
    if (provide_to(heap, wanted, wanted + wanted / 2 < all ? wanted + wanted / 2 : all) == TY_OK)
        return TY_OK;
    return provide_to(heap, end, end); // there may still be room for just what is needed
}

ty_status provide_tables(ty_heap *heap, uint64_t limit_bytes) {
    return ask_tables(heap, limit_bytes, 0, heap->described);
}

ty_status provide_header(void *base, const heap_owner &owner) {
    return ask(owner, static_cast<char *>(base), static_cast<char *>(base) + header_pages * page_bytes);
}

} // namespace taiyen
