// 64-bit XXH3 checksums (xxHash, header-only).
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen {

// Never 0, which stands for "unknown".
uint64_t checksum(const void *bytes, size_t count, uint64_t seed = 0);

} // namespace taiyen
