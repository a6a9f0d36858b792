// The heaps that the suite pack packs.
#pragma once

#include "harness.hpp"

namespace bench {

// A volatile heap, destroyed at the end.
class packed_heap {
public:
    explicit packed_heap(size_t limit_bytes);
    ~packed_heap();
    packed_heap(const packed_heap &) = delete;
    ty_heap *get() const { return heap_; }

private:
    ty_heap *heap_ = nullptr;
};

// The places of the world, as examples/atlas has them: one of so many.
void fill_atlas(ty_heap *heap, size_t one_of);
// The drawing of examples/draw, with the countries of the world, in so many copies.
void fill_drawing(ty_heap *heap, size_t copies);
// Linked blocks of 16 to 256 bytes, half of which were freed at random and replaced by others, twice.
void fill_churned(ty_heap *heap, size_t bytes);
// Readings in blocks of a megabyte: slowly changing doubles with two decimal places.
void fill_numbers(ty_heap *heap, size_t bytes);

} // namespace bench
