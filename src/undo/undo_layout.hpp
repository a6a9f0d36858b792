// The persistent format of the undo buffers: one block of the heap, its service root, in format version 1.
//
//   control | entries of undo | entries of redo | recorded bytes of undo | recorded bytes of redo
//
// The last two are missing where the buffers are volatile. Places in the rings count up for ever; a place's slot is its
// remainder modulo the ring's size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen {

inline constexpr uint64_t undo_magic = 0x00316f646e555954; // "TYUndo1"
inline constexpr uint32_t undo_version = 1;

// One recorded change, or the mark that closes a transaction.
enum class undo_kind : uint8_t {
    data = 1,      // put these bytes back
    procedure = 2, // call this procedure
    alloc = 3,     // this block was allocated: keep it
    free = 4,      // this block was freed, and is kept: make it live again
    grow = 5,      // this run grew by a tail: split that off and keep it
    shrink = 6,    // this run lost its tail, which is kept: join it again
    mark = 7,      // the entries before it are one transaction
};

struct undo_entry {
    uint64_t address; // offset in the heap; the procedure's id; of a mark: how many entries it closes
    uint64_t bytes;   // of the data, arguments, block, or tail; of a mark: sizeof(undo_mark)
    uint64_t what; // undo_kind; bit 8: undo_mirrored; from bit 16 on the payload's offset in its ring, or for grow and
                   // shrink the bytes before the tail
};
inline constexpr uint64_t undo_mirrored = uint64_t{1} << 8; // recorded by undoing an entry, not by a procedure
inline constexpr unsigned undo_position_shift = 16;

// Precedes a procedure's arguments.
struct undo_call {
    uint64_t expected; // a ty_status
};

struct undo_mark {
    uint64_t payload_begin; // place of the transaction's first payload
    uint64_t payload_end;   // place after this mark
    uint64_t time_unix_ns;
    uint64_t bytes; // recorded
    uint64_t peer;  // in redo: the position after the transaction's mark in undo; in undo 0
    char label[48];
    uint64_t checksum; // of the entries, the payload and the fields above
};

struct undo_ring_positions {
    uint64_t entries_begin;
    uint64_t entries_end;
    uint64_t payload_begin;
    uint64_t payload_end;
};

enum undo_flag : uint32_t {
    undo_fixed = 1,
    undo_volatile = 2,
};
enum undo_state : uint32_t {
    undo_open = 1,       // a transaction is open
    undo_full = 2,       // and it does not fit
    undo_cycle = 4,      // under way
    undo_off = 8,        // by a full fixed buffer
    undo_redo_lost = 16, // in this cycle, of a fixed buffer
    undo_applying = 32,  // an undo or redo is under way
};

struct undo_control {
    uint64_t magic;
    uint32_t version;
    uint32_t flags;            // undo_flag
    uint64_t entry_count;      // of each ring
    uint64_t payload_bytes[2]; // of each ring
    uint64_t kept_bytes_max;
    uint32_t state; // undo_state
    uint32_t zero;
    undo_ring_positions positions[2]; // undo, redo
    uint64_t cursor;                  // in the entries of undo: those from it on are undone
    uint64_t open_begin;              // the open transaction's first entry and payload in undo
    uint64_t open_payload;
    char label[48];
};

inline constexpr size_t undo_control_bytes = 192;
inline constexpr size_t undo_entry_bytes = 24;
inline constexpr size_t undo_mark_bytes = 96;
static_assert(sizeof(undo_control) == undo_control_bytes && offsetof(undo_control, positions) == 56);
static_assert(offsetof(undo_control, cursor) == 120 && offsetof(undo_control, label) == 144);
static_assert(sizeof(undo_entry) == undo_entry_bytes && sizeof(undo_mark) == undo_mark_bytes);
static_assert(offsetof(undo_mark, label) == 40 && offsetof(undo_mark, checksum) == 88);

} // namespace taiyen
