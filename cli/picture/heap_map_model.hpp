// The data of the picture: the touched part of a heap as cells of so many pages each.
#pragma once

#include "picture/heap_map.hpp"
#include <vector>

namespace heap_map {

inline constexpr uint64_t page_bytes = 4096;

// Pages of a cell, in fractions, by what they hold. What is in no member was never used.
struct cell {
    double small = 0;      // live bytes of small blocks, in pages
    double small_free = 0; // free room in spans
    double large = 0;      // extents that are one block
    double free = 0;       // free extents
    double control = 0;
    double log_size = 0; // sum of log2(block size), weighted by small + small_free
    uint32_t dirty = 0;  // pages
    bool starts = false; // a large block starts here

    double spans() const { return small + small_free; }
    double touched() const { return spans() + large + free + control; }
};

struct model {
    ty_kind kind = TY_VOLATILE;
    ty_heap_stats stats{};
    uint64_t touched_pages = 0;
    uint64_t pages_per_cell = 1;
    uint64_t dirty_pages = 0;
    std::vector<cell> cells;
    cell total;
    std::vector<ty_class_stats> classes; // by block size; blocks of whole pages last
};

// Reads a heap. At most cells_max cells, each of a power of two of pages.
ty_status look(ty_heap *heap, uint64_t cells_max, model &model);

} // namespace heap_map
