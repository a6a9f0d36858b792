// What making and raising a heap have in common.
#pragma once

#include "heap_runtime.hpp"

namespace taiyen {

ty_status check_place(const void *base, size_t limit_bytes);
void set_tables(ty_heap *heap, size_t limit_bytes); // where they stand for this limit
ty_status map_states(ty_heap *heap, uint64_t pages);
void unmap_states(ty_heap *heap);
constexpr size_t touched_bytes(uint64_t pages) {
    return (pages + 63) / 64 * 8;
}
// And behind them a bit a huge page: page_memory.
constexpr size_t memory_bits_bytes(uint64_t pages) {
    return touched_bytes(pages) + touched_bytes(pages / huge_page_pages + 1);
}

} // namespace taiyen
