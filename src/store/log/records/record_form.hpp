// The format of a record, shared by its writer and its reader. docs/design/log.md describes it under "Records".
#pragma once

#include <cstdint>

namespace taiyen {

// An item starts with a byte. Its upper half is the kind; the lower half is a count (0: a varint follows), or the
// operation.
enum class record_item : uint8_t {
    // 0 to 8: so many low bytes of each word; 0: words that become zero
    all_bytes = 8,
    one_mask = 9,
    masks = 10,
    tokens = 11,
    near_tokens = 12,
    operation = 15,
};
// Lower half where the upper half is `operation`; else an operation_kind.
inline constexpr uint8_t record_part_starts = 0;
inline constexpr uint8_t record_root_removed = 6;
// The first item of a record, and nowhere else: a length and so many bytes of the program. What follows counts if an
// outcome says so.
inline constexpr uint8_t record_prepared = 7;
// A record by itself. Its second byte is a record_outcome.
inline constexpr uint8_t record_outcome_follows = 8;
// Also only the first item of a record. What follows counts with the prepared record after it.
inline constexpr uint8_t record_pending = 9;
// 10 to 15: as alloc, but 2 to 7 blocks of that size, one right after the other.
inline constexpr uint8_t record_alloc_run = 10;
inline constexpr unsigned record_alloc_run_max = 7;

// The second byte of items other than tokens and operations.
inline constexpr uint8_t record_width_bits = 0x3f; // of each distance
inline constexpr uint8_t record_first_apart = 0x40;
inline constexpr unsigned record_width_max = 56; // so that a distance is read with one load
inline constexpr uint64_t record_zero_words_max =
    4096; // of one item: the reader's work is bounded by the record's size

// The first byte of a word in an item of tokens: lower half its kind, upper half the distance.
inline constexpr unsigned record_near_max = 14; // 15: a varint follows, of what is beyond 15
inline constexpr uint8_t token_zero = 0, token_masked = 13;
struct token_field { // bytes of the word that follow; the others are unchanged
    uint8_t start;
    uint8_t bytes;
};
// 0: becomes zero; 1 to 8: low bytes; 9 to 12: low bytes of the upper half; 13: a mask and the bytes it names; 14, 15:
// the high bytes, which are what changes in floating-point numbers that hold integers.
inline constexpr token_field token_fields[16] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7},
                                                 {0, 8}, {4, 1}, {4, 2}, {4, 3}, {4, 4}, {0, 0}, {6, 2}, {5, 3}};

// Items of near tokens have other kinds 9 to 12: 1 to 4 bytes, a signed distance in words from the value before. That
// is what the item's last token of kinds 5 to 12 said, at first 0: pointers to blocks that lie near each other are
// short.
inline constexpr uint8_t token_near = 9, token_near_last = 12, token_wide = 5;

// Whether the value before is this token's for the next one.
constexpr bool token_is_wide(unsigned kind) {
    return kind >= token_wide && kind <= token_near_last;
}

// The lowest n bytes.
constexpr uint64_t low_bytes(unsigned n) {
    return n == 0 ? 0 : UINT64_MAX >> (64 - 8 * n);
}

// From a bit for each byte to the bytes' bits.
constexpr uint64_t byte_mask(uint8_t bits) {
    uint64_t spread = (bits * uint64_t{0x0101010101010101}) & 0x8040201008040201; // bit i alone in byte i
    return ((((spread + 0x7f7f7f7f7f7f7f7f) | spread) & 0x8080808080808080) >> 7) * 0xff;
}

} // namespace taiyen
