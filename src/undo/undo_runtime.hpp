// The runtime state of a heap with undo while it is attached; shared by the files of this layer.
//
// U1: the entries of undo before the cursor are done; those from it on, up to the open transaction, are undone, and its
//     transactions there match those in redo one to one, newest against oldest.
// U2: a block is kept for exactly one entry: a free or shrink before the cursor in undo or in the open transaction, or
//     one in redo. The set of kept blocks is exactly these.
// U3: a kept block is live in the heap, with the size that its entry says, and its bytes are not touched.
// U4: recording makes room first, by whole transactions, and then neither fails nor allocates.
// U5: an undo or redo changes nothing before the whole transaction is validated; a later failure is reversed, as far as
//     redo holds it.
// U6: no byte read from the buffers is used as a size or place before it is checked: at the attach for the chain of all
//     entries, by the checksum for what was closed.
// U7: `undoable` and `redoable` are the numbers of transactions before the cursor in undo, and in redo; `recorded` of
//     each ring is what its entries say. They are counted along: only calls that list or attach walk the entries.
// U8: redo is dropped when a transaction ends that has recorded something, and not before: one that is cancelled, or
//     empty, leaves it. Only if the open transaction has no other room, and nothing older can be forgotten, it is
//     dropped at once.
#pragma once

#include "kept.hpp"
#include "undo_ring.hpp"

namespace taiyen {

// Whether a procedure is running, and for what.
enum class undo_run : uint8_t { none, undoing, redoing };

struct undo : heap_service {
    undo_ring *target; // what is recorded goes there; NULL: take the slow path
    char *base;
    uint64_t first_offset; // of blocks
    uint64_t end_offset;
    ty_heap *heap;
    kept_blocks kept;
    undo_ring rings[2];
    undo_control *control;
    uint64_t buffer_bytes; // of the block that starts with control
    uint64_t forgotten;
    uint64_t undoable; // U7: counted along
    uint64_t redoable;
    bool reattached;
    bool lost_volatile;
    char *outside; // volatile buffers
    uint64_t outside_bytes;

    // While a transaction is undone or redone:
    undo_run running;
    bool redo_lost;   // redo will not hold this transaction
    bool unrecorded;  // something was changed that redo does not hold
    uint64_t partial; // where in redo's entries, and payload, its part of the transaction begins
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
    // Where the payload after undo's done transactions begins.
    uint64_t payload_at_cursor() {
        uint64_t cursor = control->cursor;
        return cursor == back().positions->entries_begin ? back().positions->payload_begin
                                                         : back().mark_at(cursor - 1).payload_end;
    }
};

inline undo *undo_of(ty_heap *heap) {
    return heap_may_be_concurrent(heap) ? nullptr : static_cast<undo *>(heap_service_of(heap));
}

// The undo of a heap for a call named by `call`: attached, of this process, and no procedure of it running.
ty_status find_undo(ty_heap *heap, const char *call, undo **found);

// ---- attach.cpp

// The runtime state of buffers in a block of so many bytes, whose sizes are sound. Nothing in the heap changes.
ty_status undo_create(ty_heap *heap, undo_control *control, uint64_t buffer_bytes, undo **made);
void undo_destroy(undo *u); // NULL: does nothing

// ---- internal_blocks.cpp

// The buffers of a heap to which no undo is attached, checked as an attach does; the caller destroys them. *found NULL:
// the heap has none. Nothing in the heap changes.
ty_status read_detached(ty_heap *heap, undo **found);

// ---- record.cpp

// Where a record goes.
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
// Checks the header of the buffers in a block of so many bytes. Expected: TY_E_DAMAGED, TY_E_FORMAT.
ty_status check_control(const undo_control &control, uint64_t block_bytes);
// Checks all of the buffers in the heap; the kept blocks go to u.kept (U2, U3). Of volatile buffers, what the heap has.
ty_status check_buffers(undo &u);
// Whether what an entry names lies in the ring and among the heap's blocks (U6).
bool entry_is_sound(const undo &u, const undo_ring &ring, const undo_entry &entry);
// Checks the closed transaction whose mark stands before a place (U5); *first is its first entry.
ty_status check_step(undo &u, undo_ring &ring, uint64_t end, uint64_t *first);
// Checks entries that are to be reversed: those of a closed transaction, or of the open one.
ty_status check_entries(undo &u, undo_ring &ring, uint64_t first, uint64_t end);

// ---- room.cpp

enum class undo_room {
    there,
    none,    // an undo is under way, and redo does not hold it (any more)
    refused, // the transaction does not fit; the detail says so
};
// Makes room in a ring for one payload, so many entries, and blocks to keep (U4).
undo_room make_room(undo &u, undo_ring &ring, uint64_t entries, uint64_t bytes, bool one_piece, uint64_t kept_bytes);
// Forgets the oldest transactions up to one that keeps blocks; false: there was none.
bool evict_for_memory(undo &u);
// Keeps a block no longer, and frees it.
void release_kept(undo &u, uint64_t offset, uint64_t bytes);
// The same for all blocks that these entries keep.
void release_entries(undo &u, undo_ring &ring, uint64_t first, uint64_t end);
// Frees everything that is kept; afterwards nothing can be undone, redone or ended.
void forget_all(undo &u);
// Empties redo, and cuts off undo's undone transactions; an open one moves to their place.
void drop_redo(undo &u);
// The same, and ends the cycle.
void end_cycle(undo &u);
// Removes redo's part of a transaction that is being cancelled.
void drop_partial(undo &u);

} // namespace taiyen
