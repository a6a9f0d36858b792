// The form of a log, version 1. Fixed-width, little-endian, no padding. docs/design/log.md tells the rules.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen {

inline constexpr uint64_t log_magic_1 = 0x676c6e6579696154; // "Taiyenlg"
inline constexpr uint32_t log_version_1 = 1;

// At offset 0 of the sink, in blocks of its own; written when the log is made, and never again.
struct log_header_1 {
    uint64_t magic;
    uint32_t version;
    uint32_t block_bytes;
    uint64_t features_incompatible; // none is known
    uint8_t heap_identity[16];
    uint64_t log_identity; // random; not 0
    uint64_t ring_offset;  // a multiple of block_bytes
    uint64_t ring_bytes;   // likewise
    uint64_t created_unix_s;
    uint64_t reserved[6];
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(log_header_1) == 128);

// What a write of the log starts with, at the start of a block; the payload follows without a gap. The position, the
// session and the log's identity are not stored: the checksum is seeded with them (frame_seed), so a frame is valid at
// one place, in one session, of one log only. That makes it small, and stale frames invalid.
struct frame_header_1 {
    uint32_t checksum_low; // 64-bit XXH3 of `shape` and the payload
    uint32_t checksum_high;
    // bits 0-22 payload bytes, 23-29 unstable: how many frames before this one were not known to be stable when it was
    // sealed, 30 session start, 31 zero
    uint32_t shape;
};
static_assert(sizeof(frame_header_1) == 12);
inline constexpr uint32_t frame_payload_max_1 = (1u << 23) - 1;
inline constexpr uint32_t frame_unstable_max_1 = 127;

// The payload of a frame that starts a session: this alone. It is sealed with session 0.
struct session_start_1 {
    uint64_t session;          // random; not 0
    uint64_t previous_session; // that the frames before it, or the snapshot it continues, belong to
    uint64_t sequence;         // of the last transaction before it
};
static_assert(sizeof(session_start_1) == 24);

} // namespace taiyen
