// Formats a heap; makes and drops the runtime state of one.
#include "attach.hpp"

#include "../spans/spans.hpp"
#include "../tables/tables.hpp"
#include "../threads/threads.hpp"

#include <new>

namespace taiyen {

static_assert(heap_header_pages == header_pages);

namespace {

ty_status bad_header(const void *base, const char *what) {
    return failure(TY_E_DAMAGED, "use the heap at %p: %s", base, what).remedy("restore it from a backup");
}

// Inlined, since volatile heaps do not link header_status().
[[gnu::always_inline]] inline ty_status check_header(const heap_header &header, const void *base, size_t mapped_bytes) {
    if (header.magic != heap_magic)
        return failure(TY_E_DAMAGED, "use the heap at %p: its header is not one", base)
            .remedy("restore the file from a copy");
    if (header.layout_version != heap_layout_version)
        return failure(TY_E_FORMAT, "use the heap at %p: its layout is version %u, this library knows %u", base,
                       header.layout_version, heap_layout_version)
            .remedy("use the version of the library that made it");
    if (header.page_bytes != page_bytes || header.limit_bytes > mapped_bytes ||
        check_place(base, header.limit_bytes) != TY_OK)
        return bad_header(base, "its page size or limit is not what it should be");
    table_places places(header.limit_bytes);
    if (header.descriptors_offset != places.descriptors_offset || header.bitmaps_offset != places.bitmaps_offset ||
        header.heads_offset != places.heads_offset)
        return bad_header(base, "its tables are not where they should be");
    if (header.top_page < first_user_page || header.top_page > places.first_table_page())
        return bad_header(base, "the end of its used pages is out of bounds");
    if (header.class_table > TY_CLASSES_DENSE)
        return bad_header(base, "its table of size classes is of an unknown kind");
    const char *text;
    if (!class_table_sound(header.classes, header.class_count, &text))
        return bad_header(base, text);
    return TY_OK;
}

// A request takes the smallest class that holds it.
[[gnu::cold]] void set_classes(ty_heap *heap) {
    const heap_header &header = *heap->header;
    heap->class_count = header.class_count;
    heap->small_max = header.classes[header.class_count - 1].block_bytes;
    uint32_t size_class = 0;
    for (uint32_t i = 0; i < header.class_count; i++)
        heap->classes[i] = make_class_info(header.classes[i]);
    for (uint32_t bytes = 0; bytes <= heap->small_max; bytes += 8) {
        while (heap->classes[size_class].block_bytes < bytes)
            size_class++;
        heap->class_of[bytes / 8] = static_cast<uint8_t>(size_class);
    }
    heap->class_of[0] = heap->class_of[16 / 8]; // a block of no bytes has the alignment of any object
}

[[gnu::cold]] void fill_in(ty_heap *heap, void *base, size_t limit_bytes, const heap_owner &owner, bool writable) {
    heap->base = static_cast<char *>(base);
    heap->header = static_cast<heap_header *>(base);
    heap->owner = owner;
    heap->mover.start(base, limit_bytes);
    heap->writable = writable;
    heap->keeps_extents.store(owner.movable && limit_bytes >= kept_limit_min, std::memory_order_relaxed);
    heap->barrier = os::process_barrier_available();
    heap_learn_top(heap);
    heap->huge_places = heap->provided == 0 ? 0 : UINT64_MAX; // UINT64_MAX: unknown, for memory that exists already
    heap->soft_pages = heap->hard_pages = UINT64_MAX;
    heap->growth.probe = huge_page_pages; // small at first
    heap->sweep_next = first_user_page;
    heap->memory.zeros.store(heap->header->top_page == first_user_page, std::memory_order_relaxed);
    set_tables(heap, limit_bytes);
    set_classes(heap);
}

ty_status make_heap(void *base, size_t mapped_bytes, const heap_owner &owner, bool writable, ty_heap **made) {
    if (ty_status status = check_place(base, mapped_bytes); status != TY_OK)
        return status;
    const heap_header &header = *static_cast<heap_header *>(base);
    if (ty_status status = check_header(header, base, mapped_bytes); status != TY_OK)
        return status;
    size_t limit_bytes = header.limit_bytes;
    void *memory;
    if (ty_status status = os::map_memory(sizeof(ty_heap), os::memory_hint::none, &memory); status != TY_OK)
        return status;
    ty_heap *heap = new (memory) ty_heap{};
    fill_in(heap, base, limit_bytes, owner, writable);
    if (ty_status status = writable ? make_volatile_tables(heap, limit_bytes / page_bytes) : TY_OK; status != TY_OK) {
        drop_tables(heap->tables);
        os::unmap_memory(memory, sizeof(ty_heap));
        return status;
    }
    *made = heap;
    return TY_OK;
}

// Under caches_lock.
void flush_caches(ty_heap *heap) {
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        flush_cache(cache, give_up::all);
    drop_caches(heap);
}

void drop_heap(ty_heap *heap) {
    if (heap->cached != nullptr)
        heap->cached->stop(heap);
    drop_tables(heap->tables);
    heap->mover.stop();
    os::retire_memory(heap, sizeof(ty_heap));
}

ty_status enter_tables(ty_heap *heap) {
    os::lock_guard guard(caches_lock);
    if (ty_status status = install_hooks(); status != TY_OK)
        return status;
    return address_table_add(heap);
}

} // namespace

[[gnu::cold]] ty_status check_place(const void *base, size_t limit_bytes) {
    if (reinterpret_cast<uintptr_t>(base) % heap_granule_bytes != 0)
        return failure(TY_E_ARGUMENT, "use a heap at %p", base).remedy("its base must be a multiple of 64 MiB");
    if (limit_bytes < heap_limit_min || limit_bytes > heap_limit_max || limit_bytes % page_bytes != 0)
        return failure(TY_E_ARGUMENT, "use a heap of %zu bytes", limit_bytes)
            .remedy("the limit must be a multiple of 4096 from 1 MiB to 16 TiB");
    return TY_OK;
}

[[gnu::cold]] ty_status header_status(const heap_header &header, const void *base, size_t mapped_bytes) {
    return check_header(header, base, mapped_bytes);
}

[[gnu::cold]] void set_tables(ty_heap *heap, size_t limit_bytes) {
    table_places places(limit_bytes);
    heap->limit_bytes = limit_bytes;
    heap->first_table_page = places.first_table_page();
    heap->descriptors = reinterpret_cast<page_descriptor *>(heap->base + places.descriptors_offset);
    heap->bitmaps = reinterpret_cast<std::atomic<uint64_t> *>(heap->base + places.bitmaps_offset);
    heap->heads = reinterpret_cast<uint64_t *>(heap->base + places.heads_offset);
}

void point_at_volatile_tables(ty_heap *heap) {
    const os::space *tables = heap->tables.spaces;
    heap->states = tables[table_states].as<span_state>();
    heap->remote_bits = tables[table_remote].as<std::atomic<uint64_t>>();
    heap->span_numbers = tables[table_numbers].as<std::atomic<uint32_t>>();
    heap->memory.touched = tables[table_touched].as<std::atomic<uint64_t>>();
    heap->memory.small_pages = tables[table_small_pages].as<std::atomic<uint64_t>>();
}

[[gnu::cold]] ty_status make_volatile_tables(ty_heap *heap, uint64_t pages) {
    const uint32_t wanted = heap->owner.give_back != nullptr ? table_stacks : table_touched;
    ty_status status = TY_OK;
    for (uint32_t i = 0; i < wanted && status == TY_OK; i++) {
        os::space *table = &heap->tables.spaces[i];
        const size_t bytes = volatile_table_bytes(i, pages);
        status = heap->owner.create_table != nullptr ? heap->owner.create_table(table, bytes)
                                                     : table->create_reserved(bytes);
    }
    if (status == TY_OK)
        status = provide_volatile(heap, heap->described.load(std::memory_order_relaxed));
    if (status != TY_OK)
        drop_tables(heap->tables);
    point_at_volatile_tables(heap);
    return status;
}

[[gnu::cold]] void drop_tables(volatile_tables &tables) {
    for (os::space &each : tables.spaces)
        each.destroy();
}

[[gnu::cold]] ty_status heap_format(void *base, size_t limit_bytes, ty_class_table classes, const heap_owner &owner) {
    if (ty_status status = check_place(base, limit_bytes); status != TY_OK)
        return status;
    if (classes != TY_CLASSES_CACHE_LINE && classes != TY_CLASSES_DENSE)
        return failure(TY_E_ARGUMENT, "make a heap with the table of size classes number %d", static_cast<int>(classes))
            .remedy("use TY_CLASSES_CACHE_LINE or TY_CLASSES_DENSE");
    if (ty_status status = provide_header(base, owner); status != TY_OK)
        return status;
    heap_header &header = *static_cast<heap_header *>(base);
    header.limit_bytes = limit_bytes;
    fill_in_constants(header);
    header.top_page = first_user_page;
    header.class_table = classes;
    header.class_count = fill_class_table(classes, header.classes);
    return TY_OK;
}

[[gnu::cold]] ty_status heap_attach(void *base, size_t mapped_bytes, const heap_owner &owner, bool writable,
                                    ty_heap **attached) {
    ty_heap *heap = nullptr;
    if (ty_status status = make_heap(base, mapped_bytes, owner, writable, &heap); status != TY_OK)
        return status;
    if (ty_status status = enter_tables(heap); status != TY_OK) {
        drop_tables(heap->tables);
        os::unmap_memory(heap, sizeof(ty_heap));
        return status;
    }
    *attached = heap;
    return TY_OK;
}

ty_status heap_attach_over(ty_heap *heap, const heap_owner &owner, ty_heap **writable) {
    if (ty_status status = make_heap(heap->base, heap->limit_bytes, owner, true, writable); status != TY_OK)
        return status;
    os::lock_guard guard(caches_lock);
    address_table_replace(heap, *writable);
    return TY_OK;
}

void heap_detach_over(ty_heap *heap, ty_heap *writable) {
    {
        os::lock_guard guard(caches_lock);
        flush_caches(writable);
        address_table_replace(writable, heap);
    }
    drop_heap(writable);
    heap_learn_top(heap);
}

[[gnu::cold]] void heap_learn_top(ty_heap *heap) {
    const uint64_t top = heap->header->top_page;
    heap->top.store(top, std::memory_order_relaxed);
    heap->provided = top == first_user_page ? 0 : top;
    heap->described.store(heap->provided, std::memory_order_relaxed);
    heap->asked.pages = heap->provided;
    heap->sweep_end = top;
    heap->memory.used = top - first_user_page;
}

bool heap_has_checks(const ty_heap *heap) {
    return heap->checks != nullptr;
}

bool heap_checked(const ty_heap *heap) {
    return checks_all(heap);
}

void heap_finish_checks(ty_heap *heap) {
    if (heap->checks != nullptr)
        heap->checks->calls->finish(heap);
}

[[gnu::cold]] void heap_detach(ty_heap *heap) {
    {
        os::lock_guard guard(caches_lock);
        flush_caches(heap);
        address_table_remove(heap);
    }
    if (heap->marks != nullptr)
        heap->marks->release(heap->marks);
    if (heap->checks != nullptr)
        heap->checks->calls->stop(heap);
    drop_heap(heap);
}

bool heap_is_open(const ty_heap *heap) {
    return heap->base != nullptr;
}

[[gnu::cold]] ty_status heap_closed(const char *call) {
    return failure(TY_E_ARGUMENT, "%s: the heap is closed", call).remedy("use no handle of a heap that has ended");
}

} // namespace taiyen
