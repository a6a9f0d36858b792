// Checksums of the structures on disk.
#pragma once

#include "image_layout.hpp"
#include "src/os/os.hpp"

namespace taiyen {

uint64_t header_checksum(const image_header_2 &header);
uint64_t places_checksum(const code_places_2 &places);
uint64_t header_checksum(const journal_header_2 &header);
uint64_t header_checksum(const journal_header_1 &header);
uint64_t header_checksum(const chunk_header_1 &header);
uint64_t sector_checksum(const sums_sector_1 &sector, uint64_t number);

} // namespace taiyen
