#include "provide.hpp"

namespace taiyen {
namespace {

// Up to so many pages a heap grows by less than a huge page at a time: owners back larger pieces with huge pages, most
// of which would stay unused. A piece that itself takes an eighth of a huge page, or a whole one, is worth a huge page
// earlier: it is as fast.
constexpr uint64_t small_heap_pages = 3072;
constexpr uint64_t long_piece_pages = huge_page_pages / 8;
constexpr uint64_t small_heap_pages_for_long = 1024;

// Where the address space is limited, a step is at most this share of the limit, so that others have the rest.
constexpr unsigned step_shift = 6;

bool stays_small(uint64_t end, uint64_t piece) {
    if (piece >= huge_page_pages)
        return false;
    return end <= (piece < long_piece_pages ? small_heap_pages : small_heap_pages_for_long);
}

[[gnu::cold]] ty_status ask(const heap_owner &owner, char *from, char *to) {
    if (owner.provide == nullptr || from >= to)
        return TY_OK;
    return owner.provide(owner.context, from, static_cast<size_t>(to - from));
}

// Provides the pages of the tables that hold entries below end. What was asked for is not asked for again.
[[gnu::cold]] ty_status ask_tables(const ty_heap *heap, uint64_t limit_bytes, uint64_t end, asked_parts *asked) {
    const table_places tables(limit_bytes);
    const uint64_t offsets[] = {tables.descriptors_offset, tables.bitmaps_offset, tables.heads_offset};
    static constexpr uint16_t bits[] = {page_descriptor_bytes_v1 * 8, page_bitmap_bytes_v1 * 8, 1};
    for (unsigned i = 0; i < 3; i++) {
        uint64_t stop = table_places::whole_pages((end * bits[i] + 7) / 8);
        if (stop <= asked->bytes[i])
            continue;
        char *start = heap->base + offsets[i];
        if (ty_status status = ask(heap->owner, start + asked->bytes[i], start + stop); status != TY_OK)
            return status;
        asked->bytes[i] = stop;
    }
    return TY_OK;
}

// P2: untouched memory is not resident out of proportion. Huge pages beyond what was found in use.
constexpr uint64_t unproven_pages_max = (uint64_t{32} << 20) / page_bytes;

// A heap with many live blocks spends most of its time on TLB misses: huge pages halve the time of random allocation
// there. Small heaps grow in smaller pieces and get none. Nor do tables, which grow in pieces that are not multiples of
// a huge page: each would be a mapping of its own. The last piece that may be advised starts with a part in small
// pages, as does what is beyond: so later use can be detected.
void ask_for_huge(ty_heap *heap, uint64_t from, uint64_t end) {
    if (!heap->owner.huge || end - from < huge_page_pages)
        return;
    huge_growth &growth = heap->growth;
    if (growth.probe != 0) {
        if (os::half_resident_huge(page_address(heap, growth.probe))) {
            wish_huge(heap, growth.probe, from, true);
            growth.found += from - growth.end;
            growth.asked = 0;
        }
        growth.end = from;
    }
    from = (from + huge_page_pages - 1) & ~(huge_page_pages - 1);
    uint64_t pages = end - from;
    uint64_t room = growth.found + unproven_pages_max - growth.asked;
    uint64_t asked = pages < room ? pages : room & ~(huge_page_pages - 1);
    growth.asked += asked;
    growth.probe = asked < pages ? from + asked : asked > room / 2 ? from : 0;
    wish_huge(heap, from, end, false);
    uint64_t small = growth.probe == from ? huge_page_pages : 0;
    if (small < asked)
        wish_huge(heap, from + small, from + asked, true);
}

// Provides pages below end, and table entries of pages below described. Pages first: if they cannot be had, no entries
// are made for them.
[[gnu::cold]] ty_status provide_to(ty_heap *heap, uint64_t end, uint64_t described) {
    uint64_t first = heap->asked.pages < first_user_page ? first_user_page : heap->asked.pages;
    if (first < end) {
        char *address = page_address(heap, first);
        const size_t bytes = (end - first) * page_bytes;
        if (ty_status status = ask(heap->owner, address, address + bytes); status != TY_OK)
            return status;
        heap->asked.pages = end;
        if (heap->owner.mapped != nullptr)
            heap->owner.mapped(&heap->mover, address, bytes);
        ask_for_huge(heap, first, end);
    }
    if (end > heap->described.load(std::memory_order_relaxed)) {
        ty_status status = ask_tables(heap, heap->limit_bytes, described, &heap->asked);
        if (status == TY_OK)
            status = provide_volatile(heap, described);
        if (status != TY_OK)
            return status;
        heap->described.store(described, std::memory_order_release);
    }
    heap->provided = end;
    return TY_OK;
}

} // namespace

// P2: untouched memory is not resident out of proportion. A huge page is resident as a whole, however little of it is
// touched.
void wish_huge(ty_heap *heap, uint64_t from, uint64_t end, bool huge) {
    os::advise_huge(page_address(heap, from), (end - from) * page_bytes, huge);
    uint64_t places = heap->huge_places.load(std::memory_order_relaxed);
    for (uint64_t i = from / huge_page_pages; huge && i < end / huge_page_pages && i < 64; i++)
        places |= uint64_t{1} << i;
    heap->huge_places.store(places, std::memory_order_relaxed);
}

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
    if (heap->owner.most_mapped != nullptr) {
        const uint64_t share = heap->owner.most_mapped() / page_bytes >> step_shift;
        step = step < share ? step : share;
    }
    uint64_t wanted = end + step;
    if (!small)
        wanted = (wanted + huge_page_pages - 1) / huge_page_pages * huge_page_pages; // whole huge pages
    if (wanted > heap->first_table_page)
        wanted = heap->first_table_page;
    uint64_t all = heap->limit_bytes / page_bytes;
    if (provide_to(heap, wanted, wanted + wanted / 16 < all ? wanted + wanted / 16 : all) == TY_OK)
        return TY_OK;
    return provide_to(heap, end, end); // what is just needed may still fit
}

[[gnu::cold]] uint64_t volatile_table_bytes(uint32_t table, uint64_t pages) {
    static constexpr uint16_t bits[table_count] = {
        sizeof(span_state) * 8, page_bitmap_bytes_v1 * 8, sizeof(uint32_t) * 8, 1, 1, sizeof(magazine *) * 8};
    if (table == table_small_pages)
        pages = pages / huge_page_pages;
    return ((pages + 1) * bits[table] + 63) / 64 * 8; // + 1: number 0 is not a span's
}

[[gnu::cold]] ty_status provide_volatile(ty_heap *heap, uint64_t described) {
    for (uint32_t i = 0; i < table_count; i++) {
        os::space &table = heap->tables.spaces[i];
        if (table.most() == 0)
            continue;
        if (ty_status status = table.provide(volatile_table_bytes(i, described)); status != TY_OK)
            return status;
    }
    return TY_OK;
}

ty_status provide_tables(const ty_heap *heap, uint64_t limit_bytes, asked_parts *asked) {
    return ask_tables(heap, limit_bytes, heap->described.load(std::memory_order_relaxed), asked);
}

ty_status provide_header(void *base, const heap_owner &owner) {
    return ask(owner, static_cast<char *>(base), static_cast<char *>(base) + header_pages * page_bytes);
}

} // namespace taiyen
