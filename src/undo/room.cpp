// Room for what is recorded, made by forgetting whole transactions from the oldest one on; and how they are forgotten.
#include "undo_runtime.hpp"

#include <algorithm>

namespace taiyen {
namespace {

// Forgets the oldest closed transaction of a ring up to a position. False: there is none.
bool evict(undo &u, undo_ring &ring, uint64_t closed_end, uint64_t closed_payload) {
    uint64_t &transactions = &ring == &u.back() ? u.undoable : u.redoable; // U7: counted along
    const uint64_t first = ring.positions->entries_begin;
    if (first == closed_end)
        return false;
    uint64_t position = first;
    while (position < closed_end && kind_of(ring.at(position)) != undo_kind::mark)
        position++;
    release_entries(u, ring, first, position);
    u.forgotten++;
    if (position == closed_end || !entry_is_sound(u, ring, ring.at(position))) { // the entry was overwritten
        ring.drop(closed_end, closed_payload);
        transactions = 0;
        return true;
    }
    uint64_t payload = ring.mark_at(position).payload_end;
    transactions--;
    ring.drop(position + 1 + fault("first_entry_of_the_next_step_forgotten"),
              std::clamp(payload, ring.positions->payload_begin, closed_payload));
    return true;
}

// The oldest transaction of redo is the newest of undo: it can be neither redone nor undone any more. (U1)
bool evict_redo(undo &u) {
    if (!evict(u, u.forth(), u.partial, u.partial_payload))
        return false;
    undo_ring &back = u.back();
    uint64_t end = back.positions->entries_end;
    const undo_entry &last = back.at(end - 1);
    if (end > u.control->cursor && entry_is_sound(u, back, last) && last.address < end - u.control->cursor)
        back.cut(end - 1 - last.address, back.mark_at(end - 1).payload_begin);
    return true;
}

// Forgets something other than the open transaction: the oldest one that can be undone; if there is none, or none may
// be forgotten, everything that can be redone (U8). False: nothing is left to forget.
bool forget_for_open(undo &u) {
    const undo_control &c = *u.control;
    const bool cycle = u.is(undo_cycle);
    if (!u.fixed() &&
        evict(u, u.back(), cycle ? c.cursor : c.open_begin, cycle ? u.payload_at_cursor() : c.open_payload))
        return true;
    if (cycle)
        end_cycle(u);
    return cycle;
}

// The open transaction moves to the cursor, over what was undone.
void close_gap(undo &u) {
    undo_control &c = *u.control;
    undo_ring &back = u.back();
    const uint64_t first = c.open_begin, end = back.positions->entries_end;
    c.open_payload = u.payload_at_cursor();
    c.open_begin = c.cursor;
    if (first == c.cursor)
        return;
    back.cut(c.cursor, c.open_payload);
    for (uint64_t position = first; position < end; position++) {
        const undo_entry entry = back.at(position);
        if (entry_is_sound(u, back, entry))
            back.pull(entry);
        else // the entry was overwritten: an undo will report it
            back.push(entry.address, entry.bytes, entry.what);
    }
}

undo_room refuse(undo &u) {
    u.set(undo_full, true);
    u.target = nullptr;
    static_cast<void>(static_cast<ty_status>(
        failure(TY_E_SPACE, "record for an undo: the transaction does not fit in the buffer")
            .remedy("ty_undo_cancel takes back what was recorded; use a larger buffer, or shorter transactions")));
    return undo_room::refused;
}

} // namespace

// U4: recording makes room first, and then neither fails nor allocates.
undo_room make_room(undo &u, undo_ring &ring, uint64_t entries, uint64_t bytes, bool one_piece, uint64_t kept_bytes) {
    const bool redo = &ring == &u.forth();
    if (redo && u.redo_lost)
        return undo_room::none;
    const uint64_t kept_max = u.control->kept_bytes_max;
    const bool possible =
        kept_bytes <= kept_max && entries < ring.entry_count && bytes + undo_ring::mark_room <= ring.payload_bytes;
    while (possible) {
        bool fits = ring.has_room(entries, bytes + (one_piece ? ring.skip_for(bytes) : 0)) &&
                    u.kept.bytes() <= kept_max - kept_bytes;
        if (fits)
            return undo_room::there;
        // What an open transaction adds to redo while it is cancelled is useless afterwards: nothing is forgotten for
        // it.
        if (redo ? u.fixed() || u.is(undo_open) || !evict_redo(u) : !forget_for_open(u))
            break;
    }
    if (!redo)
        return refuse(u);
    u.unrecorded |= ring.positions->entries_end != u.partial;
    u.redo_lost = true;
    u.target = nullptr;
    if (u.is(undo_open))
        drop_partial(u);
    else
        drop_redo(u);
    return undo_room::none;
}

bool evict_for_memory(undo &u) {
    const uint64_t before = u.kept.count();
    while (u.kept.count() == before)
        if (u.target != &u.back() || !forget_for_open(u))
            return false;
    return true;
}

void release_kept(undo &u, uint64_t offset, uint64_t bytes) {
    u.kept.erase(offset, bytes);
    if (block_is(u, offset, bytes))                    // else others have freed it, and own it now
        static_cast<void>(heap_free(u.base + offset)); // what damaged tables keep is no longer part of the history
}

void release_entries(undo &u, undo_ring &ring, uint64_t first, uint64_t end) {
    for (uint64_t position = first; position < end; position++) {
        const undo_entry &entry = ring.at(position);
        if (holds(entry) && entry_is_sound(u, ring, entry) && u.kept.contains(block_offset(entry)))
            release_kept(u, block_offset(entry), entry.bytes);
    }
}

void drop_redo(undo &u) {
    undo_ring &forth = u.forth();
    release_entries(u, forth, forth.positions->entries_begin, forth.positions->entries_end);
    forth.restart();
    u.redoable = 0;
    u.partial = u.partial_payload = 0;
    if (u.is(undo_open))
        close_gap(u);
    else if (!fault("undone_steps_count_as_done_at_an_exit"))
        u.back().cut(u.control->cursor, u.payload_at_cursor());
}

void end_cycle(undo &u) {
    drop_redo(u);
    u.set(undo_cycle, false);
    u.set(undo_redo_lost, false);
}

void drop_partial(undo &u) {
    undo_ring &forth = u.forth();
    release_entries(u, forth, u.partial, forth.positions->entries_end);
    forth.cut(u.partial, u.partial_payload);
}

void forget_all(undo &u) {
    uint64_t slot = 0, offset = 0;
    while (u.kept.next(&slot, &offset)) {
        ty_block block;
        bool live = heap_find_block(u.heap, u.base + offset, &block) && block.address == u.base + offset;
        if (live)
            static_cast<void>(heap_free(block.address)); // as in release_kept
        slot++;
    }
    u.kept.clear();
    u.kept.cover(u.offset_of(u.control), u.buffer_bytes);
    u.back().restart();
    u.forth().restart();
    u.undoable = u.redoable = 0;
    u.control->cursor = u.control->open_begin = u.control->open_payload = 0;
    for (undo_state state : {undo_open, undo_full, undo_cycle, undo_redo_lost, undo_applying})
        u.set(state, false);
    u.target = nullptr;
}

} // namespace taiyen
