// Grows the limit: the tables move to the new end.
#include "../spans/spans.hpp"
#include "../tables/tables.hpp"
#include "../threads/threads.hpp"
#include "attach.hpp"

#include <cstring>

namespace taiyen {
namespace {

struct table_bytes {
    uint64_t descriptors;
    uint64_t bitmaps;
    uint64_t heads;

    explicit table_bytes(uint64_t pages)
        : descriptors(pages * page_descriptor_bytes_v1), bitmaps(pages * page_bitmap_bytes_v1),
          heads((pages + 63) / 64 * 8) {}
    uint64_t all() const { return table_places::whole_pages(descriptors + bitmaps + heads + 1); }
};

// Copies the entries of all pages below top out of the tables, and zeroes those: their pages are above top and become
// ordinary pages (H7: from top on all reads as zeros).
void lift_tables(ty_heap *heap, char *copy, const table_bytes &bytes) {
    memcpy(copy, heap->descriptors, bytes.descriptors);
    memcpy(copy + bytes.descriptors, static_cast<void *>(heap->bitmaps), bytes.bitmaps);
    memcpy(copy + bytes.descriptors + bytes.bitmaps, heap->heads, bytes.heads);
    memset(static_cast<void *>(heap->descriptors), 0, bytes.descriptors);
    if (!fault("grow_leaves_old_bitmaps"))
        memset(static_cast<void *>(heap->bitmaps), 0, bytes.bitmaps);
    memset(heap->heads, 0, bytes.heads);
}

void put_tables(ty_heap *heap, const char *copy, const table_bytes &bytes) {
    memcpy(static_cast<void *>(heap->descriptors), copy, bytes.descriptors);
    memcpy(static_cast<void *>(heap->bitmaps), copy + bytes.descriptors, bytes.bitmaps);
    memcpy(heap->heads, copy + bytes.descriptors + bytes.bitmaps, bytes.heads);
}

void write_header(ty_heap *heap) {
    table_places places(heap->limit_bytes);
    heap_header &header = *heap->header;
    header.limit_bytes = heap->limit_bytes;
    header.descriptors_offset = places.descriptors_offset;
    header.bitmaps_offset = places.bitmaps_offset;
    header.heads_offset = places.heads_offset;
}

// Makes the runtime state know no span; the sweep finds them again.
void forget_spans(ty_heap *heap) {
    for (class_spans &spans : heap->spans)
        spans.shared = {};
    heap->numbers_used = 0;
    heap->unused_number = 0;
    heap->sweep_next = first_user_page;
    heap->sweep_end = top_of(heap);
    heap->swept.store(false, std::memory_order_relaxed);
}

// Replaces the volatile tables, for more pages, and extends the address table. On failure nothing has changed.
ty_status swap_tables(ty_heap *heap, size_t limit_bytes) {
    volatile_tables before = heap->tables;
    heap->tables = {};
    ty_status status = make_volatile_tables(heap, limit_bytes / page_bytes);
    if (status == TY_OK) {
        os::lock_guard guard(caches_lock);
        status = address_table_extend(heap, limit_bytes);
    }
    if (status != TY_OK) {
        drop_tables(heap->tables);
        heap->tables = before;
        point_at_volatile_tables(heap);
        return status;
    }
    const os::space &touched = before.spaces[table_touched];
    if (touched.provided() != 0)
        memcpy(heap->tables.spaces[table_touched].as<char>(), touched.as<char>(), touched.provided());
    drop_tables(before);
    return TY_OK;
}

// First all steps that can fail; then the tables move.
ty_status move_tables(ty_heap *heap, size_t limit_bytes) {
    asked_parts asked{{}, heap->asked.pages};
    if (ty_status status = provide_tables(heap, limit_bytes, &asked); status != TY_OK)
        return status;
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        flush_cache(cache, give_up::all);
    table_bytes bytes(top_of(heap));
    void *copy;
    if (ty_status status = os::map_memory(bytes.all(), os::memory_hint::none, &copy); status != TY_OK)
        return status;
    ty_status status = swap_tables(heap, limit_bytes);
    if (status != TY_OK) {
        os::unmap_memory(copy, bytes.all());
        return status;
    }
    lift_tables(heap, static_cast<char *>(copy), bytes);
    set_tables(heap, limit_bytes);
    heap->asked = asked;
    put_tables(heap, static_cast<const char *>(copy), bytes);
    write_header(heap);
    forget_spans(heap);
    os::unmap_memory(copy, bytes.all());
    return TY_OK;
}

} // namespace

ty_status heap_grow(ty_heap *heap, size_t limit_bytes) {
    if (ty_status status = check_place(heap->base, limit_bytes); status != TY_OK)
        return status;
    if (!heap->writable || limit_bytes <= heap->limit_bytes)
        return failure(TY_E_ARGUMENT, "raise the limit of the heap at %p to %zu bytes", static_cast<void *>(heap->base),
                       limit_bytes)
            .remedy("a heap that is open for writing can get a limit larger than its %llu bytes",
                    static_cast<unsigned long long>(heap->limit_bytes));
    pause_guard paused(heap, pause_to::change);
    return move_tables(heap, limit_bytes);
}

} // namespace taiyen
