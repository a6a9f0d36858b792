// A chunk: up to a megabyte of blocks of one sequence, gathered, transposed into planes where that packs better, and
// packed.
#pragma once

#include "../codec/codec.hpp"
#include "layout.hpp"

#include <optional>

namespace taiyen::pack {

// The bytes of a chunk of blocks of this size; one of one-block extents may end anywhere.
inline uint64_t chunk_of(uint64_t block_bytes) {
    return block_bytes == 0 ? chunk_bytes : chunk_bytes / block_bytes * block_bytes;
}

// One thread's work on a chunk, and its buffers.
struct chunk {
    std::optional<content_cursor> from;
    uint64_t block_bytes = 0;
    std::vector<uint8_t> raw, planes;
    std::vector<uint8_t> frame; // the frame's header, then the packed bytes
    frame_header header{};

    void pack(packer &with, uint32_t raw_bytes);
};

// The widths that are tried for blocks of a size; 0: the bytes as they are.
std::vector<uint16_t> widths_for(uint64_t block_bytes);
// Whether a stream's chunk may have this width.
bool width_is_known(uint64_t block_bytes, uint16_t width);

} // namespace taiyen::pack
