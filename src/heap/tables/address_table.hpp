// Maps an address to its heap: one 16-bit slot number for each granule of the user address space, in pieces that are
// made when a heap lies there, and the heaps by slot.
#pragma once

#include "heap_runtime.hpp"

namespace taiyen {

inline constexpr unsigned granule_shift = 26;
inline constexpr unsigned address_bits = 47;
inline constexpr size_t granule_count = size_t{1} << (address_bits - granule_shift);
inline constexpr size_t slot_count = size_t{1} << 16; // slot 0: no heap
static_assert(size_t{1} << granule_shift == heap_granule_bytes);

inline constexpr size_t piece_granules = page_bytes / sizeof(uint16_t);
extern std::atomic<std::atomic<uint16_t> *> granule_slots[granule_count / piece_granules]; // NULL: no heap in the piece
extern std::atomic<ty_heap *> heap_slots[slot_count];
extern size_t slots_end; // slots from here on were never used: a fork visits only those below
// Guards the tables against writers, slots_end, and the lists of threads' caches.
extern os::mutex caches_lock;

// The slot of the heap whose granules contain the address, if any: the caller checks the heap's range.
inline uint16_t slot_of(const void *address) {
    uintptr_t granule = (reinterpret_cast<uintptr_t>(address) >> granule_shift) & (granule_count - 1);
    const std::atomic<uint16_t> *piece = granule_slots[granule / piece_granules].load(std::memory_order_acquire);
    return piece != nullptr ? piece[granule % piece_granules].load(std::memory_order_relaxed) : uint16_t{0};
}

// Enters the heap's range into the tables and sets its slot. Under caches_lock.
ty_status address_table_add(ty_heap *heap);
// Adds granules after the range, when the limit grows to limit_bytes. Under caches_lock.
ty_status address_table_extend(ty_heap *heap, uint64_t limit_bytes);
void address_table_remove(ty_heap *heap);
// `by` stands in the place of heap, whose memory it has.
void address_table_replace(const ty_heap *heap, ty_heap *by);

} // namespace taiyen
