// What the image and the log have in common: positions in the log, opens, and how far a counter can rise. Parts of the
// format on disk: fixed-width, little-endian, no padding.
#pragma once

#include <cstdint>

namespace taiyen {

// Files store these formats alone: docs/design/image.md and log.md.
inline constexpr uint32_t format_version = 1;

// No counter (epochs, header writes, opens, LSNs, offsets) comes near this in a heap's life. A file with a higher one
// is refused, so that no sum overflows.
inline constexpr uint64_t counter_max = uint64_t{1} << 62;
// A writing open refuses a counter above this, so that every value that it ever reaches can be read again.
inline constexpr uint64_t counter_begin_max = counter_max / 2;

// Each writing open of a heap has its own identity, once there is something to distinguish: I8 (nothing is acknowledged
// before the files name the open). number: rises with each open. random: distinguishes opens of copies of a heap.
struct open_identity {
    uint64_t number;
    uint64_t random;
};
constexpr bool operator==(const open_identity &a, const open_identity &b) {
    return a.number == b.number && a.random == b.random;
}

// The headers of journal and log name an open, and for a while the one before it (I8, L7).
template <class Header>
bool names_open(const Header &header, const open_identity &open) {
    return header.open == open || (header.previous.number && header.previous == open);
}

// A header lies in two slots: the newer valid one counts, and the next one is written over the other.
inline constexpr uint32_t header_slots = 2;
// number_of(n): the number of the header in slot n; 0: it is not valid. header_slots: none is.
template <class NumberOf>
uint32_t newest_slot(const NumberOf &number_of) {
    uint32_t newest = header_slots;
    uint64_t highest = 0;
    for (uint32_t n = 0; n < header_slots; ++n)
        if (const uint64_t number = number_of(n); number > highest) {
            highest = number;
            newest = n;
        }
    return newest;
}
// Where the next one is written: over the newest one, which may be unflushed, if the other one would do.
constexpr uint32_t slot_to_write(uint32_t newest, bool other_would_do) {
    return other_would_do ? newest : 1 - newest;
}

inline constexpr uint32_t log_streams_max = 8;

// A position in one log stream.
struct stream_position {
    uint64_t offset;     // counts bytes of the ring and rises for ever; the place is offset % the ring's bytes
    uint64_t generation; // 0: nothing was ever logged
    uint64_t lsn;        // of the last record before it in this ring
};
constexpr bool operator==(const stream_position &a, const stream_position &b) {
    return a.offset == b.offset && a.generation == b.generation && a.lsn == b.lsn;
}

// A position in a log, as a snapshot stores it (its redo point). The snapshot holds every record with an LSN up to
// `lsn`, the snapshot LSN. Every record above it lies after the position in its log stream. With several log streams,
// some records up to it also lie after it: readers skip them. With one, none do, and at[0].lsn is the LSN.
struct log_positions {
    uint64_t lsn = 0;
    uint64_t count = 1; // of log streams
    stream_position at[log_streams_max] = {};
};
inline bool operator==(const log_positions &a, const log_positions &b) {
    bool same = a.lsn == b.lsn && a.count == b.count;
    for (uint64_t s = 0; s < a.count && same; ++s)
        same = a.at[s] == b.at[s];
    return same;
}
inline log_positions positions_of_one(const stream_position &position) {
    log_positions positions{position.lsn};
    positions.at[0] = position;
    return positions;
}
// For a snapshot that holds records which the log does not have, up to this LSN.
inline log_positions with_lsn(log_positions positions, uint64_t lsn) {
    positions.lsn = lsn;
    if (positions.count == 1)
        positions.at[0].lsn = lsn;
    return positions;
}
// The start of a log.
inline log_positions positions_at_begin(uint64_t lsn, uint64_t streams) {
    log_positions positions{lsn, streams ? streams : 1};
    for (uint64_t s = 0; s < positions.count; ++s)
        positions.at[s].lsn = lsn;
    return positions;
}

} // namespace taiyen
