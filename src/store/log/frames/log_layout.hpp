// The format of a log. Fixed-width, little-endian, no padding. docs/design/log.md has the rules.
#pragma once

#include "src/store/store.hpp"

#include <cstddef>
#include <cstdint>

namespace taiyen {

inline constexpr uint64_t log_magic = 0x676c6e6579696154; // "Taiyenlg"

inline constexpr uint32_t log_block_bytes_min = 64;
inline constexpr uint32_t log_block_bytes_max = 65536;
inline constexpr uint64_t log_ring_bytes_min = uint64_t{8} * log_block_bytes_max;

// Two slots, each in blocks of its own: at offset 0 of the sink, and after that. The valid one with the higher number
// counts. Written when the log is created, and once for each open.
struct log_header {
    uint64_t magic;
    uint32_t version;
    uint32_t block_bytes;
    uint64_t features_incompatible; // none is known
    uint8_t heap_identity[16];
    uint64_t log_identity; // random; not 0
    uint64_t ring_offset;  // a multiple of block_bytes
    uint64_t ring_bytes;   // also a multiple; of all rings together
    uint64_t created_unix_s;
    uint64_t number; // of header writes
    open_identity open;
    open_identity previous; // the heap's image may still name this one; number 0: none
    uint32_t streams;       // 1 to log_streams_max
    uint32_t reserved;
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(log_header) == 128);
static_assert(offsetof(log_header, streams) == 112);

// The start of a frame, one write of the log, at the start of a block; the payload follows without a gap. The offset
// where the frame before it ended, the generation and the log's identity are not stored: they are in the checksum
// (frame.hpp), so a frame is valid after one frame, in one generation, of one log only. That makes the header small,
// and stale frames invalid.
struct frame_header {
    uint32_t checksum_low; // of `shape` and the payload
    uint32_t checksum_high;
    // bits 0-22 payload bytes, 23-29 unstable: how many frames before this one were not known to be durable when its
    // write began, 30 generation start, 31 zero
    uint32_t shape;
};
static_assert(sizeof(frame_header) == 12);
inline constexpr uint32_t frame_payload_max = (1u << 23) - 1;
inline constexpr uint32_t frame_unstable_max = 127;
inline constexpr uint32_t frame_generation_start = 1u << 30;

// How far behind a gap a frame can be whose write had begun when the one in the gap was not known to be durable: so
// many frames, the first of them in the gap, of at most so many bytes each, or of a fraction of the ring where it is
// small.
inline constexpr uint32_t frames_unstable = 2;
inline constexpr uint32_t log_frame_bytes_max = 4u << 20; // with its header
inline constexpr uint32_t frames_in_ring_min = 8;
static_assert(log_frame_bytes_max <= frame_payload_max && frames_unstable <= frame_unstable_max);

// In a log of several log streams the payload of a frame with records starts with this. L9: frames claim what had been
// durable in all log streams.
struct frame_claim {
    uint64_t durable; // all records of all log streams up to this LSN were durable when the frame's write began
};
static_assert(sizeof(frame_claim) == 8);

// The whole payload of a frame that starts a generation. Its checksum uses generation 0.
struct generation_start {
    uint64_t generation;          // half random, half a check (frame.hpp)
    uint64_t previous_generation; // of the frames before it, or of the snapshot that it continues
    uint64_t lsn;                 // of the last transaction before those that follow
    uint64_t wrap; // 1: the writer continues at the ring's front. 0: it begins (an open, or a snapshot in place of a
                   // write): no write is in flight, and up to `lsn` everything is durable (L4)
};
static_assert(sizeof(generation_start) == 32);

} // namespace taiyen
