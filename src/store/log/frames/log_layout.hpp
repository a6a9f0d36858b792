// The format of a log, versions 2 and 3. The suffix of a name is the version that introduced it. Fixed-width,
// little-endian, no padding. docs/design/log.md has the rules.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen {

inline constexpr uint64_t log_magic_1 = 0x676c6e6579696154; // "Taiyenlg"
inline constexpr uint32_t log_version_1 = 1;                // one header alone
inline constexpr uint32_t log_version_2 = 2;                // one log stream
inline constexpr uint32_t log_version_3 = 3;                // several log streams

inline constexpr uint32_t log_block_bytes_min_1 = 64;
inline constexpr uint32_t log_block_bytes_max_1 = 65536;
inline constexpr uint64_t log_ring_bytes_min_1 = uint64_t{8} * log_block_bytes_max_1;
// The most rings of a log. They follow each other, all of one size, in whole blocks.
inline constexpr uint32_t log_streams_max_3 = 8;

// An open of the heap that the log belongs to: number rises with each, random distinguishes opens of copies.
struct log_open_2 {
    uint64_t number;
    uint64_t random;
};
constexpr bool operator==(const log_open_2 &a, const log_open_2 &b) {
    return a.number == b.number && a.random == b.random;
}

// No counter comes near this. A log with a higher one is refused, so that no sum overflows.
inline constexpr uint64_t log_counter_max_2 = uint64_t{1} << 62;
// A writing open refuses a counter above this, so that every value that it ever reaches can be read again.
inline constexpr uint64_t log_counter_begin_max_2 = log_counter_max_2 / 2;

// Two slots, each in blocks of its own: at offset 0 of the sink, and behind that. The valid one with the higher number
// counts. Written when the log is created, and once for each open.
inline constexpr uint32_t log_slot_count_2 = 2;
struct log_header_2 {
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
    log_open_2 open;
    log_open_2 previous; // the heap's image may still name this one; number 0: none
    uint32_t streams;    // in version 3: 2 to log_streams_max_3; in version 2: 0
    uint32_t reserved;
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(log_header_2) == 128);
static_assert(offsetof(log_header_2, streams) == 112);
constexpr uint32_t streams_of(const log_header_2 &header) {
    return header.version == log_version_3 ? header.streams : 1;
}

// The start of a frame, one write of the log, at the start of a block; the payload follows without a gap. The offset
// where the frame before it ended, the generation and the log's identity are not stored: they are in the checksum
// (frame.hpp), so a frame is valid behind one frame, in one generation, of one log only. That makes the header small,
// and stale frames invalid.
struct frame_header_1 {
    uint32_t checksum_low; // of `shape` and the payload
    uint32_t checksum_high;
    // bits 0-22 payload bytes, 23-29 unstable: how many frames before this one were not known to be durable when its
    // write began, 30 generation start, 31 zero
    uint32_t shape;
};
static_assert(sizeof(frame_header_1) == 12);
inline constexpr uint32_t frame_payload_max_1 = (1u << 23) - 1;
inline constexpr uint32_t frame_unstable_max_1 = 127;
inline constexpr uint32_t frame_generation_start_1 = 1u << 30;

// How far behind a gap a frame can be whose write had begun when the one in the gap was not known to be durable: so
// many frames, the first of them in the gap, of at most so many bytes each, or of a fraction of the ring where it is
// small.
inline constexpr uint32_t frames_unstable_1 = 2;
inline constexpr uint32_t frame_bytes_max_1 = 4u << 20; // with its header
inline constexpr uint32_t frames_in_ring_min_1 = 8;
static_assert(frame_bytes_max_1 <= frame_payload_max_1 && frames_unstable_1 <= frame_unstable_max_1);

// In a log of several log streams the payload of a frame with records starts with this. L9: frames claim what had been
// durable in all log streams.
struct frame_claim_3 {
    uint64_t durable; // all records of all log streams up to this LSN were durable when the frame's write began
};
static_assert(sizeof(frame_claim_3) == 8);

// The whole payload of a frame that starts a generation. Its checksum uses generation 0.
struct generation_start_1 {
    uint64_t generation;          // half random, half a check (frame.hpp)
    uint64_t previous_generation; // of the frames before it, or of the snapshot that it continues
    uint64_t lsn;                 // of the last transaction before those that follow
    uint64_t wrap; // 1: the writer continues at the ring's front. 0: it begins (an open, or a snapshot in place of a
                   // write): no write is in flight, and up to `lsn` everything is durable (L4)
};
static_assert(sizeof(generation_start_1) == 32);

} // namespace taiyen
