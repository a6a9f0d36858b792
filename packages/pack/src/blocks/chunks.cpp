#include "chunks.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::pack {
namespace {

// Bytes of a sample: enough that planes of long items are long enough to compare.
size_t sample_bytes_for(uint64_t block_bytes) {
    return block_bytes > 256 ? 128 << 10 : 32 << 10;
}

void gather(chunk &c, uint32_t raw_bytes) {
    for (uint64_t filled = 0; filled < raw_bytes;) {
        content_cursor::stretch part = c.from->next(raw_bytes - filled);
        memcpy(c.raw.data() + filled, part.address, part.bytes);
        filled += part.bytes;
    }
}

// The width whose planes pack best, by a sample from the middle.
uint16_t best_width(chunk &c, packer &with, uint32_t raw_bytes) {
    std::vector<uint16_t> widths = widths_for(c.block_bytes);
    uint64_t item = std::max<uint64_t>(c.block_bytes, 8);
    uint64_t items = raw_bytes / item;
    uint64_t taken = std::min<uint64_t>(items, sample_bytes_for(c.block_bytes) / item);
    if (taken == 0)
        return 0;
    const uint8_t *sample = c.raw.data() + (items - taken) / 2 * item;
    size_t bytes = taken * item, best_bytes = SIZE_MAX;
    uint16_t best = 0;
    for (uint16_t width : widths) {
        const uint8_t *tried = sample;
        if (width != 0) {
            to_planes(sample, bytes / width, width, c.planes.data());
            tried = c.planes.data();
        }
        size_t packed = with.try_pack(tried, bytes, c.frame.data() + sizeof(frame_header), bytes);
        if (packed != 0 && packed < best_bytes) {
            best_bytes = packed;
            best = width;
        }
    }
    return best;
}

} // namespace

std::vector<uint16_t> widths_for(uint64_t block_bytes) {
    if (block_bytes == 0)
        return {0, 8, 4};
    auto width = static_cast<uint16_t>(block_bytes);
    return block_bytes > 256 ? std::vector<uint16_t>{0, width, 8} : std::vector<uint16_t>{0, width};
}

bool width_is_known(uint64_t block_bytes, uint16_t width) {
    std::vector<uint16_t> known = widths_for(block_bytes);
    return std::find(known.begin(), known.end(), width) != known.end();
}

void chunk::pack(packer &with, uint32_t raw_bytes) {
    raw.resize(chunk_bytes);
    planes.resize(chunk_bytes);
    frame.resize(sizeof(frame_header) + chunk_bytes);
    gather(*this, raw_bytes);
    uint16_t width = with.codec() == codec_id::none ? uint16_t{0} : best_width(*this, with, raw_bytes);
    const uint8_t *best = raw.data();
    if (width != 0) {
        size_t whole = raw_bytes / width * width; // the end of a one-block extent may be shorter
        to_planes(raw.data(), raw_bytes / width, width, planes.data());
        memcpy(planes.data() + whole, raw.data() + whole, raw_bytes - whole);
        best = planes.data();
    }
    uint8_t *to = frame.data() + sizeof(frame_header);
    size_t packed = with.pack(best, raw_bytes, to, raw_bytes);
    codec_id codec = packed != 0 ? with.codec() : codec_id::none;
    if (packed == 0)
        memcpy(to, raw.data(), packed = raw_bytes);
    header = {static_cast<uint32_t>(frame_type::content),
              static_cast<uint16_t>(codec),
              codec == codec_id::none ? uint16_t{0} : width,
              raw_bytes,
              static_cast<uint32_t>(packed),
              0,
              0,
              0};
}

} // namespace taiyen::pack
