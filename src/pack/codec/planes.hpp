// Class planes: byte 0 of all items, then byte 1 of all, and so on. Items of one size class are alike, so each plane is
// packed better than the items are. Known from array compressors as the byte shuffle (HDF5, Blosc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::pack {

// items of width bytes each, width a multiple of 4. planes has room for items * width bytes; nothing may overlap.
void to_planes(const uint8_t *items, size_t count, size_t width, uint8_t *planes);
void from_planes(const uint8_t *planes, size_t count, size_t width, uint8_t *items);

} // namespace taiyen::pack
