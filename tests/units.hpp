#pragma once

#include <cstddef>

namespace taiyen::test {

inline constexpr size_t kb = size_t{1} << 10, mb = size_t{1} << 20, tb = size_t{1} << 40;

} // namespace taiyen::test
