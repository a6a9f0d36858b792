// Checksums of the structures on disk.
#pragma once

#include "image_layout.hpp"
#include "src/os/os.hpp"

namespace taiyen {

uint64_t header_checksum(const image_header &header);
uint64_t places_checksum(const code_places &places);
uint64_t header_checksum(const journal_header &header);
uint64_t header_checksum(const chunk_header &header);
uint64_t sector_checksum(const sums_sector &sector, uint64_t number);

} // namespace taiyen
