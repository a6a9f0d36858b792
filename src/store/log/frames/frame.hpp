// Frames: where they lie in the ring, and their checksums. For the writer (ring_runtime.hpp) and the reader (scan.cpp).
#pragma once

#include "../log.hpp"
#include "log_layout.hpp"

namespace taiyen {

struct ring_geometry {
    uint32_t block_bytes;
    uint32_t frame_bytes_max;
    uint64_t offset; // of the sink
    uint64_t bytes;
    uint32_t claim_bytes; // size of the frame_claim before a frame's records, or 0
};

ring_geometry geometry_of(const log_header &header, uint32_t stream = 0);
// The word that represents the log in the checksums of that ring. L8: no frame of one log stream is valid in another.
uint64_t ring_identity(uint64_t log, uint32_t stream);

// Bytes of the ring that a frame takes.
inline uint64_t frame_bytes(const ring_geometry &ring, uint32_t payload_bytes) {
    uint64_t bytes = sizeof(frame_header) + payload_bytes;
    return (bytes + ring.block_bytes - 1) / ring.block_bytes * ring.block_bytes;
}

// The next offset, from this one on, whose place is the ring's front. A frame lies where the one before it ended, but
// what does not fit before the ring's end follows a generation start at the front.
inline uint64_t next_front(const ring_geometry &ring, uint64_t position) {
    return (position + ring.bytes - 1) / ring.bytes * ring.bytes;
}

// The checksum of a frame is a hash of its bytes, seeded with the log's number, xor the generation's number, xor a word
// that represents the offset `from` where the frame before it ended. From two of the three the reader computes the
// third: at which offset a frame of this generation follows, or to which generation a frame at that offset belongs.
// frame: the header, with its shape set, and the payload after it.
uint64_t frame_checksum(uint64_t log, uint64_t generation, uint64_t from, const uint8_t *frame, uint32_t payload_bytes);
uint64_t frame_from(uint64_t log, uint64_t generation, const uint8_t *frame, uint32_t payload_bytes);
uint64_t frame_generation(uint64_t log, uint64_t from, const uint8_t *frame, uint32_t payload_bytes);

// A generation's number is half random, and half a check of the other half, so that a reader recognizes it.
uint64_t make_generation(uint64_t log);
bool is_generation(uint64_t log, uint64_t generation);

// In a frame's payload each record is preceded by its length, seven bits a byte, the lowest first (LEB128). In a log of
// several log streams a second such number follows: how many LSNs right before the record's own are not in this log
// stream, times two, plus 1 for an independent record.
inline constexpr size_t length_bytes_max = 4;
inline constexpr size_t step_bytes_max = 10;
inline size_t length_bytes(size_t length) {
    return 1 + (length >= 1u << 7) + (length >= 1u << 14) + (length >= 1u << 21);
}
inline void put_length(uint8_t *at, size_t length) {
    for (; length >= 1u << 7; length >>= 7)
        *at++ = static_cast<uint8_t>(length | 0x80);
    *at = static_cast<uint8_t>(length);
}
// Returns the bytes taken; 0 if there is no valid length.
inline size_t get_length(const uint8_t *at, size_t bytes, size_t *length) {
    size_t value = 0;
    for (size_t i = 0; i < bytes && i < length_bytes_max; ++i) {
        value |= static_cast<size_t>(at[i] & 0x7f) << 7 * i;
        if (!(at[i] & 0x80)) {
            *length = value;
            return i + 1;
        }
    }
    return 0;
}
inline size_t put_step(uint8_t *at, uint64_t skipped, bool independent) {
    size_t bytes = 0;
    for (uint64_t value = skipped << 1 | independent;; value >>= 7) {
        bool more = value >= 1u << 7;
        at[bytes++] = static_cast<uint8_t>((value & 0x7f) | (more ? 0x80 : 0));
        if (!more)
            return bytes;
    }
}
inline size_t get_step(const uint8_t *at, size_t bytes, uint64_t *skipped, bool *independent) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && i < step_bytes_max; ++i) {
        value |= static_cast<uint64_t>(at[i] & 0x7f) << 7 * i;
        if (!(at[i] & 0x80)) {
            *skipped = value >> 1;
            *independent = value & 1;
            return i + 1;
        }
    }
    return 0;
}

} // namespace taiyen
