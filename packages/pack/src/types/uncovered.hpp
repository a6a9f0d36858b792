// The words of reached blocks that no field covers: those that are addresses, by type and offset.
//
// SH9: each aligned word of each reached block is either covered or checked here; a value in a live block, or just
// after one, is never skipped.
#pragma once

#include "program_ranges.hpp"
#include "walker.hpp"

namespace taiyen::pack {

// Where in a block a word lies.
enum class place_kind : uint8_t {
    inside,  // in an object
    reserve, // in an object's array, after its count
    after,   // after an object's end
    spare,   // after an object or in bytes, where a smaller block would have no room: the program may not have asked
             // for it
    bytes    // in bytes without type descriptor, or before the first object
};

struct place {
    uint32_t content; // plans::of
    place_kind kind;
    uint64_t offset; // from the object's start, or the block's
    auto operator<=>(const place &) const = default;
};

struct word_tally {
    uint64_t count = 0;  // addresses
    uint64_t starts = 0; // of these, addresses of a block's first byte
    uint64_t bases = 0;  // of these, the heap's base
    uint64_t lost = 0;   // of these, addresses of blocks that nothing else leads to
    uint64_t of = 0;     // words that are not 0
    const void *example = nullptr;
    uint64_t value = 0;
};

struct uncovered_words {
    std::map<place, word_tally> hidden; // addresses of live blocks
    std::map<place, word_tally> code;   // addresses in programs and libraries
};

// Offsets from here on count as one: an undescribed array would have as many as it has elements.
inline constexpr uint64_t offset_max = 64 << 10;

// SH11: after a move, it also gives remains of objects their new values.
uncovered_words find_uncovered(const walker &walk, const program_ranges &programs);

} // namespace taiyen::pack
