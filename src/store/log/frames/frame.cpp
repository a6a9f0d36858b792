#include "frame.hpp"

#include <cstring>

namespace taiyen {
namespace {

// Odd, so that multiplication by it can be undone. A flipped bit of a checksum thereby yields an offset far from any
// possible one.
constexpr uint64_t spread = 0x9e3779b97f4a7c15;

constexpr uint64_t inverse_of(uint64_t odd) {
    uint64_t inverse = odd;
    for (int i = 0; i < 6; ++i) // each step doubles the number of correct bits
        inverse *= 2 - odd * inverse;
    return inverse;
}
constexpr uint64_t unspread = inverse_of(spread);
static_assert(spread * unspread == 1);

uint64_t frame_hash(uint64_t log, const uint8_t *frame, uint32_t payload_bytes) {
    constexpr size_t summed = offsetof(frame_header, shape);
    return checksum(frame + summed, sizeof(frame_header) - summed + payload_bytes, log);
}

// The stored checksum without the hash.
uint64_t frame_rest(uint64_t log, const uint8_t *frame, uint32_t payload_bytes) {
    frame_header header;
    memcpy(&header, frame, sizeof header);
    return (uint64_t{header.checksum_high} << 32 | header.checksum_low) ^ frame_hash(log, frame, payload_bytes);
}

uint64_t with_check(uint64_t log, uint32_t number) {
    return checksum(&number, sizeof number, log) << 32 | number;
}

} // namespace

ring_geometry geometry_of(const log_header &header, uint32_t stream) {
    const uint32_t count = header.streams;
    const uint64_t ring = header.ring_bytes / count;
    const uint64_t part = ring / frames_in_ring_min / header.block_bytes * header.block_bytes;
    const uint32_t most = part < log_frame_bytes_max ? static_cast<uint32_t>(part) : log_frame_bytes_max;
    return {header.block_bytes, most, header.ring_offset + stream * ring, ring,
            count > 1 ? uint32_t{sizeof(frame_claim)} : 0};
}

// L8: a frame is valid in one log stream.
uint64_t ring_identity(uint64_t log, uint32_t stream) {
    return stream == 0 || fault("frame_valid_in_another_stream") ? log : checksum(&stream, sizeof stream, log);
}

uint64_t frame_checksum(uint64_t log, uint64_t generation, uint64_t from, const uint8_t *frame,
                        uint32_t payload_bytes) {
    return frame_hash(log, frame, payload_bytes) ^ generation ^ from * spread;
}

uint64_t frame_from(uint64_t log, uint64_t generation, const uint8_t *frame, uint32_t payload_bytes) {
    return (frame_rest(log, frame, payload_bytes) ^ generation) * unspread;
}

uint64_t frame_generation(uint64_t log, uint64_t from, const uint8_t *frame, uint32_t payload_bytes) {
    return frame_rest(log, frame, payload_bytes) ^ from * spread;
}

uint64_t make_generation(uint64_t log) {
    uint32_t number = 0;
    while (number == 0)
        os::random_bytes(&number, sizeof number);
    return with_check(log, number);
}

bool is_generation(uint64_t log, uint64_t generation) {
    const auto number = static_cast<uint32_t>(generation);
    return number != 0 && generation == with_check(log, number);
}

} // namespace taiyen
