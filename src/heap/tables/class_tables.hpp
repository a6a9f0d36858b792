// Size classes: the two built-in tables, and what is computed from a heap's own table when it is attached.
#pragma once

#include "heap_layout.hpp"
#include <taiyen/heap.h>

namespace taiyen {

// The largest block of a class. Larger requests are extents of pages.
inline constexpr uint32_t small_bytes_max = 32768;

// A class as the fast path needs it. A class that does not exist has no blocks.
struct class_info {
    uint32_t block_bytes;
    uint32_t reciprocal;
    uint32_t span_mask; // bytes of a span - 1
    uint16_t blocks;
    uint8_t pages;
    uint8_t words; // of a span's bitmap
};

constexpr class_info make_class_info(size_class_record record) {
    uint32_t span_bytes = record.pages * static_cast<uint32_t>(page_bytes);
    uint32_t blocks = span_bytes / record.block_bytes;
    return {record.block_bytes,
            static_cast<uint32_t>(((uint64_t{1} << 32) + record.block_bytes - 1) / record.block_bytes),
            span_bytes - 1,
            static_cast<uint16_t>(blocks),
            static_cast<uint8_t>(record.pages),
            static_cast<uint8_t>((blocks + 63) / 64)};
}

// The block that holds an offset in a span, and whether it starts there. The offset divided by the block size, in units
// of 2^-32; never too small, since the reciprocal is rounded up, and too large by less than one reciprocal, since
// offsets are below 2^16: so the whole part is exact, and the fraction is below one reciprocal only at the start of a
// block.
struct place_in_span {
    uint32_t index;
    bool exact;
};
inline place_in_span find_place(uint32_t reciprocal, uint64_t offset_in_span) {
    uint64_t quotient = offset_in_span * reciprocal;
    return {static_cast<uint32_t>(quotient >> 32), static_cast<uint32_t>(quotient) < reciprocal};
}

// The bits of a span's bitmap word that stand for blocks (H5: set exactly where allocated).
inline uint64_t word_mask(const class_info &info, uint32_t word) {
    uint32_t rest = info.blocks - word * 64;
    return rest >= 64 ? ~uint64_t{0} : (uint64_t{1} << rest) - 1;
}

// Fills in a built-in table; returns the number of classes.
uint32_t fill_class_table(ty_class_table table, size_class_record classes[size_class_count_max]);

// Whether a table read from a heap can be used: sizes rise, are multiples of 8, fit their spans. *text says what is
// wrong.
bool class_table_sound(const size_class_record *classes, uint32_t count, const char **text);

} // namespace taiyen
