#include "checksum.hpp"

#define XXH_INLINE_ALL
#define XXH_NO_STREAM
#include <xxhash.h>

namespace taiyen {

uint64_t checksum(const void *bytes, size_t count, uint64_t seed) {
    uint64_t sum = XXH3_64bits_withSeed(bytes, count, seed);
    return sum ? sum : 1;
}

} // namespace taiyen
