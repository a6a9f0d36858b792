// The kernel's page sizes on x86-64.
#pragma once

#include <cstddef>

namespace taiyen::os {

inline constexpr size_t page_bytes = 4096;
inline constexpr size_t segment_bytes = 16 * page_bytes;
inline constexpr size_t huge_page_bytes = size_t{2} << 20;

} // namespace taiyen::os
