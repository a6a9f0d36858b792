#include "address_table.hpp"

namespace taiyen {

std::atomic<std::atomic<uint16_t> *> granule_slots[granule_count / piece_granules];
std::atomic<ty_heap *> heap_slots[slot_count];
constinit size_t slots_end = 1;
constinit os::mutex caches_lock{os::lock_rank::caches};

namespace {

struct granule_range {
    size_t first;
    size_t end;
};

granule_range granules_of(const ty_heap *heap, uint64_t from_byte, uint64_t limit_bytes) {
    uintptr_t base = reinterpret_cast<uintptr_t>(heap->base);
    uint64_t from = (from_byte + heap_granule_bytes - 1) >> granule_shift;
    uint64_t end = (limit_bytes + heap_granule_bytes - 1) >> granule_shift;
    return {(base >> granule_shift) + from, (base >> granule_shift) + end};
}

// The granule's entry, whose piece of the table is made if necessary; NULL with the error detail set.
[[gnu::cold, gnu::noinline]] std::atomic<uint16_t> *slot_place(size_t granule) {
    std::atomic<std::atomic<uint16_t> *> &piece = granule_slots[granule / piece_granules];
    if (piece.load(std::memory_order_relaxed) == nullptr) {
        void *memory;
        if (os::map_memory(page_bytes, os::memory_hint::none, &memory) != TY_OK)
            return nullptr;
        piece.store(static_cast<std::atomic<uint16_t> *>(memory), std::memory_order_release);
    }
    return piece.load(std::memory_order_relaxed) + granule % piece_granules;
}

[[gnu::cold]] ty_status enter_granules(const ty_heap *heap, granule_range range) {
    if (range.end > granule_count)
        return failure(TY_E_ARGUMENT, "use a heap at %p: it lies beyond the user address space",
                       static_cast<void *>(heap->base))
            .remedy("place it below 2^%u", address_bits);
    for (size_t granule = range.first; granule < range.end; granule++) {
        const std::atomic<uint16_t> *slot = slot_place(granule);
        if (slot == nullptr)
            return TY_E_MEMORY;
        if (slot->load(std::memory_order_relaxed) != 0)
            return failure(TY_E_ADDRESS, "use a heap at %p: another heap has part of its address range",
                           static_cast<void *>(heap->base))
                .remedy("give each heap multiples of 64 MiB of its own");
    }
    for (size_t granule = range.first; granule < range.end; granule++)
        slot_place(granule)->store(heap->slot, std::memory_order_release);
    return TY_OK;
}

} // namespace

[[gnu::cold]] ty_status address_table_add(ty_heap *heap) {
    size_t slot = 1;
    while (slot < slot_count && heap_slots[slot].load(std::memory_order_relaxed) != nullptr)
        slot++;
    if (slot == slot_count)
        return failure(TY_E_MEMORY, "use another heap: %zu heaps are in use", slot_count - 1)
            .remedy("destroy or close heaps that are no longer needed");
    heap->slot = static_cast<uint16_t>(slot);
    if (ty_status status = enter_granules(heap, granules_of(heap, 0, heap->limit_bytes)); status != TY_OK)
        return status;
    heap_slots[slot].store(heap, std::memory_order_release);
    slots_end = slot < slots_end ? slots_end : slot + 1;
    return TY_OK;
}

ty_status address_table_extend(ty_heap *heap, uint64_t limit_bytes) {
    return enter_granules(heap, granules_of(heap, heap->limit_bytes, limit_bytes));
}

[[gnu::cold]] void address_table_remove(ty_heap *heap) {
    granule_range range = granules_of(heap, 0, heap->limit_bytes);
    for (size_t granule = range.first; granule < range.end; granule++)
        slot_place(granule)->store(0, std::memory_order_release);
    heap_slots[heap->slot].store(nullptr, std::memory_order_release);
}

void address_table_replace(const ty_heap *heap, ty_heap *by) {
    by->slot = heap->slot;
    heap_slots[by->slot].store(by, std::memory_order_release);
}

void heap_look_at_owner(const void *address, size_t bytes, void (*look)(const heap_image *image, void *context),
                        void *context) {
    os::lock_guard guard(caches_lock);
    const auto start = reinterpret_cast<uintptr_t>(address);
    for (size_t slot = 1; slot < slots_end; slot++) {
        const ty_heap *heap = heap_slots[slot].load(std::memory_order_relaxed);
        if (heap == nullptr)
            continue;
        const auto base = reinterpret_cast<uintptr_t>(heap->base);
        const heap_image *image = heap_image_of(heap);
        if (image != nullptr && start < base + heap->limit_bytes && base < start + bytes)
            return look(image, context);
    }
}

} // namespace taiyen
