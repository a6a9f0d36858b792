// The kernel's page sizes on x86-64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::os {

inline constexpr size_t page_bytes = 4096;
inline constexpr size_t segment_bytes = 16 * page_bytes;
inline constexpr size_t huge_page_bytes = size_t{2} << 20;

constexpr uintptr_t align_up(uintptr_t value, size_t alignment) {
    return (value + alignment - 1) & ~(uintptr_t{alignment} - 1);
}

} // namespace taiyen::os
