// What is known of a heap with undo while it is attached; shared by the files of this layer.
//
// U1: the entries of undo before the cursor are done; those from it on, up to the open transaction, are undone, and its
//     transactions there stand one to one against those in redo, newest against oldest.
// U2: a block is kept for exactly one entry: a free or shrink before the cursor in undo or in the open transaction, or
//     one in redo. The set of kept blocks is exactly these.
// U3: a kept block is live in the heap, with the size that its entry says, and its bytes are not touched.
// U4: recording makes room first, by whole transactions, and then neither fails nor allocates.
// U5: nothing is changed by an undo or redo before all of the transaction is validated; and what fails later is
//     reversed, as far as redo holds it.
// U6: no byte read from the buffers is used as a size or place before it is checked: at the attach for the chain of all
//     entries, by the checksum for what was closed.
// U7: `undoable` and `redoable` are how many transactions stand before the cursor in undo, and in redo; `recorded` of
//     each ring is what its entries say. They are counted along: no call but those that list or attach looks at all.
// U8: what can be redone goes when a transaction ends that has recorded something, and not before: one that is
//     cancelled, or empty, leaves it. Only where the open transaction has no room besides, and nothing older can go,
//     it goes at once.
#pragma once

#include "kept.hpp"
#include "undo_ring.hpp"

namespace taiyen {

// What a procedure that runs records, and where.
enum class undo_run : uint8_t { none, undoing, redoing };

struct undo : heap_service {
    undo_ring *target; // what is recorded goes there; NULL: there is more to it
    char *base;
    uint64_t first_offset; // of blocks
    uint64_t end_offset;
    ty_heap *heap;
    kept_blocks kept;
    undo_ring rings[2];
    undo_control *control;
    uint64_t buffer_bytes; // of the block that starts with control
    uint64_t forgotten;
    uint64_t undoable; // U7
    uint64_t redoable;
    bool reattached;
    bool lost_volatile;
    char *outside; // volatile buffers
    uint64_t outside_bytes;

    // While a transaction is taken back or done again:
    undo_run running;
    bool redo_lost;   // redo will not hold this transaction
    bool unrecorded;  // something was changed that it does not hold
    uint64_t partial; // where in redo's entries, and payload, what it holds of it begins
    uint64_t partial_payload;

    undo_ring &back() { return rings[0]; }
    undo_ring &forth() { return rings[1]; }
    bool is(undo_state state) const { return control->state & state; }
    void set(undo_state state, bool on) {
        control->state = on ? control->state | state : control->state & ~static_cast<uint32_t>(state);
    }
    bool fixed() const { return control->flags & undo_fixed; }
    uint64_t offset_of(const void *address) const {
        return static_cast<uint64_t>(static_cast<const char *>(address) - base);
    }
    bool in_blocks(uint64_t offset, uint64_t bytes) const {
        return offset >= first_offset && offset <= end_offset && bytes <= end_offset - offset;
    }
    // Where the payload behind undo's transactions that are done begins.
    uint64_t payload_at_cursor() {
        uint64_t cursor = control->cursor;
        return cursor == back().places->entries_begin ? back().places->payload_begin
                                                      : back().mark_at(cursor - 1).payload_end;
    }
};

inline undo *undo_of(ty_heap *heap) {
    return heap_may_be_concurrent(heap) ? nullptr : static_cast<undo *>(heap_service_of(heap));
}

// The undo of a heap for a call named by `call`: attached, of this process, and no procedure of it running.
ty_status find_undo(ty_heap *heap, const char *call, undo **found);

// ---- attach.cpp

// The volatile side of buffers in a block of so many bytes, whose sizes are sound. Nothing in the heap changes.
ty_status undo_create(ty_heap *heap, undo_control *control, uint64_t buffer_bytes, undo **made);
void undo_destroy(undo *u); // NULL: nothing to do

// ---- own_blocks.cpp

// The buffers that a heap has and that nothing is attached to, checked as an attach does; to be destroyed. *found NULL:
// it has none. Nothing in the heap changes.
ty_status read_detached(ty_heap *heap, undo **found);

// ---- record.cpp

// What becomes of a record.
enum class undo_route {
    ring,    // it goes to u->target
    plain,   // the call does what its plain form does: undo is off, or redo will not hold the transaction
    nowhere, // a redo is under way
};
// u may be NULL. Refused where no transaction is open, or where it does not fit.
ty_status find_route(undo *u, const char *call, undo_route *route);

// ---- check.cpp

// Whether the block that starts at an offset is live and has exactly this size.
bool block_is(const undo &u, uint64_t offset, uint64_t bytes);
// Whether bytes touch a kept block or the buffers.
bool touches_kept(const undo &u, uint64_t offset, uint64_t bytes);
// The header of the buffers in a block of so many bytes. Expected: TY_E_DAMAGED, TY_E_FORMAT.
ty_status check_control(const undo_control &control, uint64_t block_bytes);
// All of the buffers in the heap; the kept blocks go to u.held (U2, U3). Of volatile ones, what they hold.
ty_status check_buffers(undo &u);
// An entry: that what it names lies in the ring and among the heap's blocks (U6).
bool entry_is_sound(const undo &u, const undo_ring &ring, const undo_entry &entry);
// The closed transaction whose mark stands before a place (U5); *first is its first entry.
ty_status check_step(undo &u, undo_ring &ring, uint64_t end, uint64_t *first);
// Entries that are to be taken back: those of a closed transaction, or of the open one.
ty_status check_entries(undo &u, undo_ring &ring, uint64_t first, uint64_t end);

// ---- room.cpp

enum class undo_room {
    there,
    none,    // an undo is under way, and redo does not hold it (any more)
    refused, // the transaction does not fit; the detail says so
};
// Room in a ring for one payload, so many entries, and blocks to be held (U4).
undo_room make_room(undo &u, undo_ring &ring, uint64_t entries, uint64_t bytes, bool one_piece, uint64_t kept_bytes);
// Forgets the oldest transactions up to one that holds blocks; false: there was none.
bool evict_for_memory(undo &u);
// Ends the holding of a block, and frees it.
void release_kept(undo &u, uint64_t offset, uint64_t bytes);
// Of all blocks that these entries hold.
void release_entries(undo &u, undo_ring &ring, uint64_t first, uint64_t end);
// All that is kept is freed, and nothing is there to be undone, redone or ended.
void forget_all(undo &u);
// Redo is emptied, and undo's undone transactions are cut off; an open one moves to their place.
void drop_redo(undo &u);
// The same, and the cycle is over.
void end_cycle(undo &u);
// What redo holds of a transaction that is being taken back goes.
void drop_partial(undo &u);

} // namespace taiyen
