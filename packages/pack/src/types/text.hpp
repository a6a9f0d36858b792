// Type descriptors as text (docs/reference.md, "Type descriptors in a text").
#pragma once

#include "descriptor_set.hpp"

namespace taiyen::pack {

inline constexpr size_t text_bytes_max = size_t{16} << 20;

// SH3: read_text() reads what write_text() writes, and gives the same set.
ty_status read_text(descriptor_set &set, std::string_view text);
std::string write_text(const descriptor_set &set);

} // namespace taiyen::pack
