#include "pointer.hpp"

#include <cstdio>

namespace taiyen {
namespace {

// Whether the calling thread, which has entered, owns the span: then no other thread changes its persistent metadata.
bool is_own(const ty_heap *heap, uint64_t page) {
    const thread_cache *cache = heap->writable ? cache_at(heap->slot) : nullptr;
    return cache != nullptr && heap->states[number_of(heap, page)].owner.load(std::memory_order_relaxed) == cache;
}

ty_status find_small(ty_heap *heap, uint32_t size_class, uint64_t offset, live_block *block) {
    const class_info &info = heap->classes[size_class];
    if (info.blocks == 0)
        return tables_damaged("a span of a size class that does not exist", heap, offset / page_bytes);
    small_block place = small_block_at(heap, size_class, offset);
    uint64_t start = uint64_t{place.head} * page_bytes + uint64_t{place.index} * info.block_bytes;
    *block = {start, info.block_bytes, true, place, {}};
    if (is_own(heap, offset / page_bytes)) {
        bool cached = heap->cached != nullptr && heap->cached->is_last(cache_at(heap->slot), heap->base + start);
        return is_live(heap, place) && !cached ? TY_OK : TY_E_NOT_FOUND;
    }
    os::lock_guard guard(heap->spans[size_class].lock);
    return is_live(heap, place) ? TY_OK : TY_E_NOT_FOUND;
}

ty_status find_extent(ty_heap *heap, uint64_t page, live_block *block) {
    os::lock_guard guard(heap->pages_lock);
    uint64_t head = head_before(heap, page);
    page_extent extent;
    *block = {head * page_bytes, page_bytes, false, {}, {}};
    if (head >= first_user_page && kind_of(heap->descriptors[head]) == page_extent_kept)
        return TY_E_NOT_FOUND; // K1: an extent that a thread keeps is neither block nor free
    if (head < first_user_page || !extent_at_head(heap, head, &extent) || page >= head + extent.count)
        return tables_damaged("no extent holds it", heap, page);
    *block = {head * page_bytes, extent.count * page_bytes, false, {}, extent};
    return kind_of(heap->descriptors[head]) == page_extent_head ? TY_OK : TY_E_NOT_FOUND;
}

void describe_block(const ty_heap *heap, const live_block &block, uint64_t offset, char *text, size_t text_bytes) {
    if (block.offset == offset)
        snprintf(text, text_bytes, "the block's state changed meanwhile");
    else
        snprintf(text, text_bytes, "inside the block at %p of %llu bytes",
                 static_cast<void *>(heap->base + block.offset), static_cast<unsigned long long>(block.bytes));
}

// Describes an address at which no live block is.
const char *describe_place(ty_heap *heap, uint64_t offset) {
    uint64_t page = offset / page_bytes;
    if (page < first_user_page || page >= heap->first_table_page)
        return "in the heap's own tables";
    if (page >= top_of(heap))
        return "in the part of the heap that was never used";
    const page_descriptor &descriptor = heap->descriptors[page];
    if (kind_of(descriptor) != page_span)
        return "in a free extent: freed already, or never allocated";
    small_block place = small_block_at(heap, descriptor.size_class, offset);
    return place.exact ? "freed already" : "inside a free block";
}

} // namespace

ty_heap *heap_at(const void *address) {
    uintptr_t value = reinterpret_cast<uintptr_t>(address);
    if (value >> address_bits != 0)
        return nullptr;
    ty_heap *heap = heap_slots[slot_of(address)].load(std::memory_order_acquire);
    if (heap == nullptr || value - reinterpret_cast<uintptr_t>(heap->base) >= heap->limit_bytes)
        return nullptr;
    return heap;
}

ty_status find_block(ty_heap *heap, const void *address, live_block *block) {
    uint64_t offset = offset_in(heap, address);
    uint64_t page = offset / page_bytes;
    if (page < first_user_page || page >= top_of(heap)) {
        *block = {page * page_bytes, page_bytes, false, {}, {}};
        return TY_E_NOT_FOUND;
    }
    if (kind_of(heap->descriptors[page]) == page_span)
        return find_small(heap, heap->descriptors[page].size_class, offset, block);
    return find_extent(heap, page, block);
}

[[gnu::cold]] ty_status not_a_block(const char *verb, const ty_heap *heap, const void *address) {
    char text[72];
    live_block block;
    if (heap == nullptr) {
        snprintf(text, sizeof text, "the address lies in no heap");
    } else {
        ty_heap *found = const_cast<ty_heap *>(heap);
        ty_status status = find_block(found, address, &block);
        if (status == TY_OK)
            describe_block(heap, block, offset_in(heap, address), text, sizeof text);
        else if (status == TY_E_NOT_FOUND)
            snprintf(text, sizeof text, "%s", describe_place(found, offset_in(heap, address)));
        else
            return status;
    }
    return failure(TY_E_ARGUMENT, "%s %p: %s", verb, address, text)
        .remedy("hand in the address that the allocation returned, and only until it is freed");
}

} // namespace taiyen
