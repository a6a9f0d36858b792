// The packed stream, in format version 1. All fields are little-endian, of fixed width and without padding.
// docs/reference.md, "The packed stream", describes it for other programs.
//
//   header | frames of extents | frames of roots | frames of content | end
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::pack {

inline constexpr uint64_t stream_magic = 0x314b434150595454; // "TTYPACK1"
inline constexpr uint32_t stream_version = 1;
inline constexpr uint64_t stream_page_bytes = 4096;
inline constexpr uint64_t first_block_page = 2;  // of a heap
inline constexpr uint32_t chunk_bytes = 1 << 20; // the most that a frame holds, unpacked

struct stream_header {
    uint64_t magic;
    uint32_t version;
    uint32_t needed_features; // a reader refuses those that it does not know; none are defined yet
    uint64_t base;
    uint64_t limit_bytes;
    uint32_t kind;    // ty_kind of the heap that was packed
    uint32_t classes; // ty_class_table
    uint64_t extents;
    uint64_t roots;
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t packed_unix_s;
    uint64_t zero[5];
    uint64_t checksum; // XXH3 of all bytes before it
};

enum class frame_type : uint32_t {
    extents = 1, // extent_record, each followed by its bitmap
    roots = 2,   // root_record
    content = 3, // the bytes of blocks, in the order of content_order
    end = 4,     // no bytes
};

enum class codec_id : uint16_t { none = 0, lz4 = 1, zstd = 2 };

struct frame_header {
    uint32_t type;        // frame_type
    uint16_t codec;       // codec_id
    uint16_t plane_width; // the bytes are transposed, for items of so many bytes: byte 0 of each item, then byte 1 of
                          // each, ...; 0: they are not
    uint32_t raw_bytes;
    uint32_t packed_bytes;
    uint64_t number;   // of the frame, from 0 on
    uint64_t checksum; // XXH3 of the packed bytes
    uint64_t header_checksum;
};

// An extent of one block (block_bytes 0: all its pages), or a span with live blocks of block_bytes each. Extents are in
// order of their pages. A span's bitmap follows: bit n % 64 of word n / 64 is set if block n is live, in as many words
// as its blocks take.
struct extent_record {
    uint32_t first_page;
    uint32_t pages;
    uint32_t block_bytes;
    uint32_t zero;
};

struct root_record {
    char name[48];
    uint64_t offset; // from the base
};

inline constexpr size_t stream_header_bytes = 128;
inline constexpr size_t frame_header_bytes = 40;
inline constexpr size_t extent_record_bytes = 16;
inline constexpr size_t root_record_bytes = 56;
static_assert(sizeof(stream_header) == stream_header_bytes && offsetof(stream_header, checksum) == 120);
static_assert(sizeof(frame_header) == frame_header_bytes && offsetof(frame_header, header_checksum) == 32);
static_assert(sizeof(extent_record) == extent_record_bytes);
static_assert(sizeof(root_record) == root_record_bytes);

} // namespace taiyen::pack
