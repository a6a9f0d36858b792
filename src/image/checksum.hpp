// 64-bit XXH3 checksums (xxHash, header-only). 0 stands for "unknown", so no checksum is 0.
#pragma once

#include "image_layout.hpp"

namespace taiyen {

uint64_t checksum(const void *bytes, size_t count, uint64_t seed = 0);

uint64_t header_checksum(const image_header_1 &header);
uint64_t header_checksum(const journal_header_1 &header);
uint64_t header_checksum(const chunk_header_1 &header);
uint64_t sector_checksum(const sums_sector_1 &sector, uint64_t number);

} // namespace taiyen
