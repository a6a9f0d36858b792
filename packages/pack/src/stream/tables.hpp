// A layout and roots, written as frames and read from them.
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

// Reads the header and the tables of a stream, which may contain anything: what is returned is consistent, and lies in
// the heap without overlaps (PK3: checked before it is used).
ty_status read_tables(frame_reader &from, stream_header *header, layout *places, std::vector<root> *roots);

} // namespace taiyen::pack
