// A layout and roots as frames, and from them.
#pragma once

#include "../blocks/blocks.hpp"
#include "frames.hpp"

#include <string>

namespace taiyen::pack {

struct root {
    std::string name;
    uint64_t offset; // from the base
};

ty_status write_extents(const layout &of, packer &with, frame_writer &to);
ty_status write_roots(const std::vector<root> &roots, packer &with, frame_writer &to);

// The header and the tables of a stream, which may say anything: what is returned fits together, and lies in the heap
// without overlaps (PK3).
ty_status read_tables(frame_reader &from, stream_header *header, layout *places, std::vector<root> *roots);

} // namespace taiyen::pack
