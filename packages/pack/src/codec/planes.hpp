// Byte planes: byte 0 of all items, then byte 1 of all items, and so on. Items of one size class are alike, so their
// planes compress better than the items do. Array compressors call it byte shuffle (HDF5, Blosc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::pack {

// count items of width bytes each; width is a multiple of 4. planes has room for count * width bytes; the buffers must
// not overlap.
void to_planes(const uint8_t *items, size_t count, size_t width, uint8_t *planes);
// Some of count items, from `first` on, from their planes. Fast where both are multiples of items_at_once.
inline constexpr size_t items_at_once = 16;
void from_planes(const uint8_t *planes, size_t count, size_t width, size_t first, size_t wanted, uint8_t *items);

} // namespace taiyen::pack
