// Transactions, and the records of data and procedures.
#include "undo_runtime.hpp"

#include <cstring>

namespace taiyen {
namespace {

ty_status not_open(const undo *u, const char *call) {
    if (u == nullptr)
        return failure(TY_E_ARGUMENT, "%s: the heap has no undo", call).remedy("call ty_undo_attach first");
    if (u->is(undo_full))
        return failure(TY_E_SPACE, "%s: the transaction does not fit in the buffer", call)
            .remedy("ty_undo_cancel takes it back; ty_undo_end gives up the history");
    return failure(TY_E_ARGUMENT, "%s: no transaction is open", call).remedy("call ty_undo_begin first");
}

// U3: the bytes of a kept block are not touched.
ty_status check_recorded(const undo &u, uint64_t offset, uint64_t bytes) {
    uint64_t end = heap_used_bytes(u.heap);
    if (offset < u.first_offset || offset > end || bytes > end - offset)
        return failure(TY_E_ARGUMENT, "record %llu byte%s at %p: not in the heap's blocks",
                       static_cast<unsigned long long>(bytes), plural(bytes), static_cast<void *>(u.base + offset))
            .remedy("record bytes of live blocks");
    if (u.kept.may_touch(offset, bytes) && touches_kept(u, offset, bytes))
        return failure(TY_E_ARGUMENT, "record %llu byte%s at %p: in a block that was freed",
                       static_cast<unsigned long long>(bytes), plural(bytes), static_cast<void *>(u.base + offset))
            .remedy("record before the free");
    return TY_OK;
}

// Continues where the fast path cannot.
[[gnu::noinline]] ty_status record_slowly(undo *u, const void *address, size_t bytes) {
    undo_route route;
    if (ty_status status = find_route(u, "record for an undo", &route))
        return status;
    if (bytes == 0)
        return TY_OK;
    const uint64_t offset = u->offset_of(address);
    if (ty_status status = check_recorded(*u, offset, bytes))
        return status;
    if (route == undo_route::plain)
        u->unrecorded |= u->running == undo_run::undoing;
    if (route != undo_route::ring)
        return TY_OK;
    undo_ring &ring = *u->target;
    switch (make_room(*u, ring, 1, padded(bytes), false, 0)) {
    case undo_room::refused:
        return TY_E_SPACE;
    case undo_room::none:
        u->unrecorded = true;
        return TY_OK;
    case undo_room::there:
        ring.push_data(offset, address, bytes);
    }
    return TY_OK;
}

} // namespace

ty_status find_route(undo *u, const char *call, undo_route *route) {
    if (u == nullptr)
        return not_open(u, call);
    *route = undo_route::ring;
    if (u->target != nullptr)
        return TY_OK;
    *route = u->running == undo_run::redoing ? undo_route::nowhere : undo_route::plain;
    bool known = u->running != undo_run::none || (u->is(undo_off) && !u->is(undo_full));
    return known ? TY_OK : not_open(u, call);
}

ty_status undo_begin(ty_heap *heap, const char *label) {
    constexpr const char *call = "begin a transaction of undo";
    undo *u;
    if (ty_status status = find_undo(heap, call, &u))
        return status;
    if (u->is(undo_off))
        return TY_OK;
    if (u->is(undo_open))
        return failure(TY_E_ARGUMENT, "%s: one is open already, and they do not nest", call)
            .remedy("call ty_undo_end or ty_undo_cancel first");
    undo_control &c = *u->control;
    if (u->back().empty()) {
        u->back().restart();
        c.cursor = 0;
    }
    c.open_begin = u->back().positions->entries_end;
    c.open_payload = u->back().positions->payload_end;
    memset(c.label, 0, sizeof c.label);
    if (label != nullptr)
        memcpy(c.label, label, strnlen(label, sizeof c.label - 1));
    u->set(undo_open, true);
    u->target = &u->back();
    return TY_OK;
}

ty_status undo_record(ty_heap *heap, const void *address, size_t bytes) {
    undo *u = undo_of(heap);
    if (u == nullptr || u->target == nullptr || bytes == 0) [[unlikely]]
        return record_slowly(u, address, bytes);
    undo_ring &ring = *u->target;
    const uint64_t offset = u->offset_of(address);
    const uint64_t end = heap_used_bytes(heap);
    bool fast = offset >= u->first_offset && offset <= end && bytes <= end - offset &&
                ring.has_room(1, padded(bytes)) && !u->kept.may_touch(offset, bytes);
    if (!fast) [[unlikely]]
        return record_slowly(u, address, bytes);
    ring.push_data(offset, address, bytes);
    return TY_OK;
}

ty_status undo_record_procedure(ty_heap *heap, uint64_t id, const void *arguments, size_t bytes, ty_status expected) {
    constexpr const char *call = "record a procedure for an undo";
    undo *u = undo_of(heap);
    undo_route route;
    if (ty_status status = find_route(u, call, &route))
        return status;
    if (id == 0)
        return failure(TY_E_ARGUMENT, "%s: its id is 0", call).remedy("use the id that it is registered with");
    if (!procedure_known(id))
        return failure(TY_E_NOT_FOUND, "%s: no procedure %llu is registered", call, static_cast<unsigned long long>(id))
            .remedy("call ty_register_procedure first");
    if (route == undo_route::plain)
        u->unrecorded |= u->running == undo_run::undoing;
    if (route != undo_route::ring)
        return TY_OK;
    undo_ring &ring = *u->target;
    if (bytes > ring.payload_bytes) // so that the sums below stay small
        bytes = ring.payload_bytes;
    switch (make_room(*u, ring, 1, sizeof(undo_call) + padded(bytes), true, 0)) {
    case undo_room::refused:
        return TY_E_SPACE;
    case undo_room::none:
        u->unrecorded = true;
        return TY_OK;
    case undo_room::there:
        ring.push_procedure(id, arguments, bytes, expected);
    }
    return TY_OK;
}

ty_status undo_end(ty_heap *heap) {
    constexpr const char *call = "end a transaction of undo";
    undo *u;
    if (ty_status status = find_undo(heap, call, &u))
        return status;
    if (!u->is(undo_open))
        return u->is(undo_off) ? TY_OK
                               : failure(TY_E_ARGUMENT, "%s: none is open", call).remedy("call ty_undo_begin first");
    undo_control &c = *u->control;
    if (u->is(undo_full)) {
        forget_all(*u);
        u->set(undo_off, u->fixed());
        return failure(TY_E_SPACE, "%s: it did not fit in the buffer, and the history is forgotten", call)
            .remedy(u->fixed() ? "undo is off now; ty_undo_clear switches it on again" : "use a larger buffer");
    }
    if (u->back().positions->entries_end != c.open_begin) {
        if (u->is(undo_cycle)) // U8: now redo is dropped
            end_cycle(*u);
        undo_mark mark{};
        mark.time_unix_ns = os::unix_time_ns();
        memcpy(mark.label, c.label, sizeof mark.label);
        u->back().close(c.open_begin, c.open_payload, mark);
        c.cursor = u->back().positions->entries_end;
        u->undoable++; // U7: counted along
    }
    u->set(undo_open, false);
    u->target = nullptr;
    return TY_OK;
}

} // namespace taiyen
