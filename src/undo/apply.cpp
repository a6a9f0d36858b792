// Undo, redo and cancel: transactions are reversed, entry by entry from the newest on, and redone.
#include "undo_runtime.hpp"

#include <cstring>

namespace taiyen {
namespace {

ty_status block_changed(const undo &u, uint64_t offset) {
    return failure(TY_E_DAMAGED, "undo or redo: the block at %p is not as it was left",
                   static_cast<void *>(u.base + offset))
        .remedy("free and resize blocks that were recorded by ty_undo_free and ty_undo_resize only");
}

undo_entry inverse_of(const undo_entry &entry) {
    undo_kind kind = undo_kind::data;
    switch (kind_of(entry)) {
    case undo_kind::alloc:
        kind = undo_kind::free;
        break;
    case undo_kind::free:
        kind = undo_kind::alloc;
        break;
    case undo_kind::grow:
        kind = undo_kind::shrink;
        break;
    case undo_kind::shrink:
        kind = undo_kind::grow;
        break;
    default:
        break;
    }
    return {entry.address, entry.bytes, what_of(kind, position_of(entry), undo_mirrored)};
}

ty_status split_tail(undo &u, const undo_entry &entry) {
    uint64_t kept = position_of(entry);
    if (u.kept.contains(entry.address) || !block_is(u, entry.address, kept + entry.bytes))
        return block_changed(u, entry.address);
    if (ty_status status = heap_split_extent(u.heap, u.base + entry.address, kept))
        return status;
    u.kept.insert(entry.address + kept, entry.bytes);
    return TY_OK;
}

ty_status join_tail(undo &u, const undo_entry &entry) {
    uint64_t tail = block_offset(entry);
    if (u.kept.contains(entry.address) || !block_is(u, entry.address, position_of(entry)) || !u.kept.contains(tail) ||
        !block_is(u, tail, entry.bytes))
        return block_changed(u, entry.address);
    if (ty_status status = heap_join_extents(u.heap, u.base + entry.address))
        return status;
    u.kept.erase(tail, entry.bytes);
    return TY_OK;
}

// Reverses an operation on a block: a block that it keeps becomes live again, or the other way round. (U2: a block is
// kept for exactly one entry.)
ty_status reverse_block(undo &u, const undo_entry &entry) {
    const bool kept = kind_of(entry) == undo_kind::free;
    switch (kind_of(entry)) {
    case undo_kind::alloc:
    case undo_kind::free:
        if (u.kept.contains(entry.address) != kept || !block_is(u, entry.address, entry.bytes))
            return block_changed(u, entry.address);
        if (!kept)
            u.kept.insert(entry.address, entry.bytes);
        else if (!fault("live_block_counts_as_kept"))
            u.kept.erase(entry.address, entry.bytes);
        return TY_OK;
    case undo_kind::grow:
        return split_tail(u, entry);
    default:
        return join_tail(u, entry);
    }
}

ty_status run_procedure(undo &u, const undo_ring &ring, const undo_entry &entry, undo_run run) {
    const char *payload = ring.payload + position_of(entry);
    undo_call call;
    memcpy(&call, payload, sizeof call);
    u.running = run;
    u.target = run == undo_run::undoing && !u.redo_lost ? &u.forth() : nullptr;
    ty_status got = procedure_run(u.heap, entry.address, payload + sizeof call, entry.bytes);
    u.target = nullptr;
    u.running = undo_run::none;
    if (static_cast<uint64_t>(got) == call.expected)
        return TY_OK;
    return failure(TY_E_MISMATCH, "undo or redo: the procedure %llu returned %s",
                   static_cast<unsigned long long>(entry.address), ty_status_name(got))
        .remedy("it has to return what was given when it was recorded");
}

ty_status undo_block(undo &u, const undo_entry &entry) {
    const undo_entry mirror = inverse_of(entry);
    undo_room room = make_room(u, u.forth(), 1, 0, false, holds(mirror) ? mirror.bytes : 0);
    if (ty_status status = reverse_block(u, entry))
        return status;
    if (room == undo_room::there)
        u.forth().push(mirror.address, mirror.bytes, mirror.what);
    else if (holds(mirror) && !fault("block_kept_by_nothing"))
        release_kept(u, block_offset(mirror), mirror.bytes);
    u.unrecorded |= room == undo_room::none;
    return TY_OK;
}

void undo_data(undo &u, const undo_entry &entry) {
    char *memory = u.base + entry.address;
    undo_room room = make_room(u, u.forth(), 1, padded(entry.bytes), false, 0);
    if (room == undo_room::there)
        u.forth().push_data(entry.address, memory, entry.bytes);
    u.unrecorded |= room == undo_room::none;
    u.back().copy_out(position_of(entry), memory, entry.bytes);
}

ty_status undo_entry_at(undo &u, uint64_t position) {
    const undo_entry entry = u.back().at(position);
    switch (kind_of(entry)) {
    case undo_kind::data:
        undo_data(u, entry);
        return TY_OK;
    case undo_kind::procedure:
        return run_procedure(u, u.back(), entry, undo_run::undoing);
    default:
        return undo_block(u, entry);
    }
}

// Data are swapped with what is recorded, so that this can be reversed.
ty_status redo_entry_at(undo &u, uint64_t position) {
    const undo_entry &entry = u.forth().at(position);
    switch (kind_of(entry)) {
    case undo_kind::data:
        u.forth().swap(position_of(entry), u.base + entry.address, entry.bytes);
        return TY_OK;
    case undo_kind::procedure:
        return run_procedure(u, u.forth(), entry, undo_run::redoing);
    default:
        return reverse_block(u, entry);
    }
}

// Reverses entries of redo that were already redone: [first, end), the last one redone is the first.
ty_status reverse_redo(undo &u, uint64_t first, uint64_t end) {
    for (uint64_t position = first; position < end; position++) {
        const undo_entry &entry = u.forth().at(position);
        if (kind_of(entry) == undo_kind::procedure)
            return TY_E_DAMAGED;
        if (kind_of(entry) == undo_kind::data)
            u.forth().swap(position_of(entry), u.base + entry.address, entry.bytes);
        else if (ty_status status = reverse_block(u, inverse_of(entry)))
            return status;
    }
    return TY_OK;
}

// What a procedure allocated in an undo is useless after the redo: the next undo allocates again.
void free_what_procedures_made(undo &u, uint64_t first, uint64_t end) {
    for (uint64_t position = first; position < end; position++) {
        const undo_entry &entry = u.forth().at(position);
        bool made = kind_of(entry) == undo_kind::alloc || kind_of(entry) == undo_kind::grow;
        if (made && !(entry.what & undo_mirrored))
            release_kept(u, block_offset(entry), entry.bytes);
    }
}

// Redoes redo's entries [first, end) and removes them. *half_done: it failed, and what was redone of them stays.
ty_status redo_entries(undo &u, uint64_t first, uint64_t end, uint64_t payload, bool *half_done) {
    *half_done = false;
    for (uint64_t position = end; position > first; position--) {
        ty_status status = redo_entry_at(u, position - 1);
        if (status) {
            const ty_error error = keep_error();
            *half_done = reverse_redo(u, position, end) != TY_OK;
            return report_again(error, status);
        }
    }
    free_what_procedures_made(u, first, end);
    u.forth().cut(first, payload);
    return TY_OK;
}

ty_status give_up(undo &u, const char *what) {
    const ty_error error = keep_error();
    forget_all(u);
    return failure(TY_E_DAMAGED, "%s: half of a transaction is done, and the history is forgotten (cannot %s)", what,
                   error.operation)
        .remedy("check the heap's content, or go back to its last snapshot: ty_discard");
}

// Undoes entries, newest first; redo has their mirror from u.partial on, as far as it can hold it (U5: a failure is
// reversed).
ty_status take_back(undo &u, uint64_t first, uint64_t end) {
    undo_ring &forth = u.forth();
    if (forth.empty())
        forth.restart();
    u.partial = forth.positions->entries_end;
    u.partial_payload = forth.positions->payload_end;
    u.redo_lost = u.is(undo_redo_lost);
    u.unrecorded = false;
    u.set(undo_applying, true);
    ty_status status = TY_OK;
    for (uint64_t position = end; position > first && !status; position--)
        status = undo_entry_at(u, position - 1);
    if (!status) {
        u.set(undo_applying, false);
        return TY_OK;
    }
    const ty_error error = keep_error();
    bool half_done = u.unrecorded;
    if (!half_done && !u.redo_lost && !fault("half_an_undo_stays") &&
        redo_entries(u, u.partial, forth.positions->entries_end, u.partial_payload, &half_done))
        half_done = true;
    (void)report_again(error, status);
    if (half_done)
        return give_up(u, "undo");
    u.set(undo_applying, false);
    return status;
}

} // namespace

// U1: undo's transactions after the cursor match redo's one to one.
ty_status undo_back(ty_heap *heap) {
    constexpr const char *call = "undo";
    undo *u;
    if (ty_status status = find_undo(heap, call, &u))
        return status;
    undo_control &c = *u->control;
    undo_ring &back = u->back();
    if (u->is(undo_open))
        return failure(TY_E_ARGUMENT, "%s: a transaction is open", call).remedy("end or cancel it first");
    if (c.cursor == back.positions->entries_begin)
        return failure(TY_E_NOT_FOUND, "%s: there is nothing to undo", call);
    const uint64_t end = c.cursor;
    uint64_t first;
    if (ty_status status = check_step(*u, back, end, &first))
        return status;
    if (ty_status status = take_back(*u, first, end - 1))
        return status;
    u->set(undo_cycle, true);
    c.cursor = first;
    u->undoable--; // U7: counted along
    if (u->redo_lost) {
        u->set(undo_redo_lost, u->fixed());
        drop_redo(*u);
        return TY_OK;
    }
    undo_mark mark{};
    const undo_mark &done = back.mark_at(end - 1);
    mark.time_unix_ns = done.time_unix_ns;
    mark.peer = end;
    memcpy(mark.label, done.label, sizeof mark.label);
    u->forth().close(u->partial, u->partial_payload, mark);
    u->redoable++;
    return TY_OK;
}

ty_status undo_forth(ty_heap *heap) {
    constexpr const char *call = "redo";
    undo *u;
    if (ty_status status = find_undo(heap, call, &u))
        return status;
    undo_ring &forth = u->forth();
    if (u->is(undo_open))
        return failure(TY_E_ARGUMENT, "%s: a transaction is open", call).remedy("end or cancel it first");
    if (forth.empty())
        return failure(TY_E_NOT_FOUND, "%s: there is nothing to redo", call);
    const uint64_t end = forth.positions->entries_end;
    uint64_t first;
    if (ty_status status = check_step(*u, forth, end, &first))
        return status;
    const undo_mark mark = forth.mark_at(end - 1);
    if (mark.peer <= u->control->cursor || mark.peer > u->back().positions->entries_end)
        return failure(TY_E_DAMAGED, "%s: redo does not fit undo", call).remedy("ty_undo_clear forgets the history");
    bool half_done;
    u->set(undo_applying, true);
    ty_status status = redo_entries(*u, first, end - 1, mark.payload_begin, &half_done);
    if (half_done)
        return give_up(*u, call);
    u->set(undo_applying, false);
    if (status)
        return status;
    u->control->cursor = mark.peer;
    u->undoable++; // U7: counted along
    u->redoable--;
    return TY_OK;
}

ty_status undo_cancel(ty_heap *heap) {
    constexpr const char *call = "cancel a transaction of undo";
    undo *u;
    if (ty_status status = find_undo(heap, call, &u))
        return status;
    undo_control &c = *u->control;
    undo_ring &back = u->back();
    if (!u->is(undo_open))
        return failure(TY_E_ARGUMENT, "%s: none is open%s", call, u->is(undo_off) ? ", since undo is off" : "")
            .remedy("call ty_undo_begin first");
    if (ty_status status = check_entries(*u, back, c.open_begin, back.positions->entries_end))
        return status;
    if (ty_status status = take_back(*u, c.open_begin, back.positions->entries_end)) {
        u->target = u->is(undo_open) && !u->is(undo_full) ? &back : nullptr;
        return status;
    }
    if (fault("cancel_forgets_what_can_be_redone"))
        drop_redo(*u);
    drop_partial(*u); // U8: only this; what can be redone stays
    back.cut(c.open_begin, c.open_payload);
    u->set(undo_open, false);
    u->set(undo_full, false);
    u->target = nullptr;
    return TY_OK;
}

ty_status undo_exit(ty_heap *heap) {
    undo *u;
    if (ty_status status = find_undo(heap, "end a cycle of undo", &u))
        return status;
    if (u->is(undo_cycle))
        end_cycle(*u);
    return TY_OK;
}

ty_status undo_clear(ty_heap *heap) {
    undo *u;
    if (ty_status status = find_undo(heap, "clear the history of undo", &u))
        return status;
    forget_all(*u);
    u->set(undo_off, false);
    return TY_OK;
}

} // namespace taiyen
