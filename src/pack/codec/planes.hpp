// Class planes: byte 0 of all items, then byte 1 of all, and so on. Items of one size class are alike, so each plane is
// packed better than the items are. Known from array compressors as the byte shuffle (HDF5, Blosc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::pack {

// items of width bytes each, width a multiple of 4. planes has room for items * width bytes; nothing may overlap.
void to_planes(const uint8_t *items, size_t count, size_t width, uint8_t *planes);
// Of the planes of count items, so many from the first on. Fast where both are multiples of items_at_once.
inline constexpr size_t items_at_once = 16;
void from_planes(const uint8_t *planes, size_t count, size_t width, size_t first, size_t wanted, uint8_t *items);

} // namespace taiyen::pack
