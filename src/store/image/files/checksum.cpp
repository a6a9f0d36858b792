#include "checksum.hpp"

namespace taiyen {

uint64_t header_checksum(const image_header &header) {
    return checksum(&header, offsetof(image_header, checksum));
}

uint64_t places_checksum(const code_places &places) {
    return checksum(&places, offsetof(code_places, checksum));
}

uint64_t header_checksum(const journal_header &header) {
    return checksum(&header, offsetof(journal_header, checksum));
}

uint64_t header_checksum(const chunk_header &header) {
    // The checksum field stands in the middle of the page: the sum of what is before it seeds the sum of what is after
    // it.
    uint64_t before = checksum(&header, offsetof(chunk_header, checksum));
    return checksum(header.entries, sizeof header.entries, before);
}

uint64_t sector_checksum(const sums_sector &sector, uint64_t number) {
    return checksum(sector.sums, sizeof sector.sums, number);
}

} // namespace taiyen
