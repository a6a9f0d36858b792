// The format of a shipper's objects. Fixed-width, little-endian, no padding. docs/design/ship.md has the rules,
// docs/reference.md the format for other programs.
#pragma once

#include "packages/common/common.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <taiyen/feed.h>

namespace taiyen::ship {

inline constexpr uint64_t object_magic = 0x70696873'79696154; // "Taiyship"
inline constexpr uint32_t object_version = 1;

enum class object_kind : uint32_t { base = 1, segment = 2 };

// A base is this header and a packed stream; a segment is this header and frames. SP1: both positions are sealed
// positions of a change feed, and a segment's records lead from the first to the second.
struct object_header {
    uint64_t magic;
    uint32_t version;
    uint32_t kind; // object_kind
    uint32_t level;
    uint32_t frames;
    uint64_t
        timeline_lsn; // LSN and hash of the position where the timeline began: the same in all segments of one timeline
    uint64_t timeline_hash;
    uint64_t heap_base;      // base: the heap's address
    uint64_t after_base;     // SP7: 1 + the LSN of the newest base that the destination had, by which a missing one is
                             // noticed; 0: it had none
    uint64_t floor;          // SP7: base: the LSN of the oldest base that is kept from now on; 0: all are kept
    uint64_t timeline_after; // SP7: 1 + the LSN at which the destination ended when the timeline began; 0: it was empty
    uint64_t since_base_ns;  // SP8: base: time since the base before it, by a clock that nobody sets; 0: not known
    uint64_t records;
    uint64_t raw_bytes;    // of the records, uncompressed
    uint64_t stored_bytes; // after this header; 0 for a base: the stream has its own length
    uint64_t first_ns;     // since 1970
    uint64_t last_ns;
    ty_feed_position from; // base: the LSN of the copy, as is `to`
    ty_feed_position to;
    uint64_t checksum; // of all bytes before it
};
static_assert(sizeof(object_header) == 120 + 2 * sizeof(ty_feed_position) + 8);
static_assert(sizeof(ty_feed_position) == 280);

// A frame is this header and its bytes. Uncompressed, they are for each record its length (4 bytes), its hash (8) and
// its bytes.
inline constexpr uint32_t frame_lz4_1 = 1; // flag: stored as an LZ4 block; otherwise uncompressed
struct frame_header {
    uint32_t raw_bytes;
    uint32_t stored_bytes;
    uint32_t records;
    uint32_t flags;
    uint64_t first; // LSN
    uint64_t time_ns;
    uint64_t checksum; // of the stored bytes, seeded with the checksum of all before, which is seeded with the log's
                       // identity
};
static_assert(sizeof(frame_header) == 40);
inline constexpr size_t record_head_bytes = 12;
inline constexpr size_t frame_raw_max = size_t{64} << 20;

inline constexpr uint64_t counter_max = uint64_t{1} << 62;

uint64_t checksum_of(const object_header &header);
uint64_t checksum_of(const frame_header &header, const void *stored, uint64_t log);
// TY_E_FORMAT, TY_E_DAMAGED. name: the object's name, which must be the one that its header gives.
ty_status check_header(const object_header &header, const std::string &name);
std::string name_of(const object_header &header);
std::string base_name(uint64_t lsn);
// The LSNs in the name of a segment; false: it is not the name of one.
bool segment_range(const std::string &name, uint64_t *first, uint64_t *last);
bool is_object_name(const std::string &name);

inline bool same_timeline(const object_header &a, const object_header &b) {
    return a.timeline_hash == b.timeline_hash && a.timeline_lsn == b.timeline_lsn;
}

// Whether the failure is one of an object itself.
inline bool is_damage(ty_status status) {
    return status == TY_E_DAMAGED || status == TY_E_FORMAT;
}

using common::fail;

} // namespace taiyen::ship
