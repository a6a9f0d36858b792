// What a program can ask: the list of transactions, and the figures.
#include "undo_runtime.hpp"

namespace taiyen {
namespace {

// Goes over undo's closed transactions from the newest on. False: damaged, and the detail says so.
class step_walk {
public:
    explicit step_walk(undo &u) : u_(u), end_(u.is(undo_open) ? u.control->open_begin : u.back().places->entries_end) {}

    bool more() const { return end_ > u_.back().places->entries_begin; }
    ty_status next(const undo_mark **mark, bool *undone) {
        const undo_ring &back = u_.back();
        const undo_entry &last = back.at(end_ - 1);
        if (kind_of(last) != undo_kind::mark || !entry_is_sound(u_, back, last) ||
            last.address >= end_ - back.places->entries_begin)
            return failure(TY_E_DAMAGED, "list the history of undo: it is not what was recorded")
                .remedy("something has written over it; ty_undo_clear forgets it");
        *mark = &back.mark_at(end_ - 1);
        *undone = end_ > u_.control->cursor;
        entries_ = last.address;
        end_ -= last.address + 1;
        return TY_OK;
    }
    uint64_t entries() const { return entries_; }

private:
    undo &u_;
    uint64_t end_;
    uint64_t entries_ = 0;
};

uint64_t recorded_bytes(const undo_ring &ring) {
    uint64_t bytes = 0;
    for (uint64_t place = ring.places->entries_begin; place < ring.places->entries_end; place++) {
        const undo_entry &entry = ring.at(place);
        if (payload_of(entry) != 0 && kind_of(entry) != undo_kind::mark)
            bytes += entry.bytes;
    }
    return bytes;
}

} // namespace

ty_status undo_history(ty_heap *heap, ty_undo_step_callback *callback, void *context) {
    undo *u;
    if (ty_status status = find_undo(heap, "list the history of undo", &u))
        return status;
    for (step_walk walk(*u); walk.more();) {
        const undo_mark *mark = nullptr;
        ty_undo_step step{};
        if (ty_status status = walk.next(&mark, &step.undone))
            return status;
        char label[sizeof mark->label];
        memcpy(label, mark->label, sizeof label);
        label[sizeof label - 1] = 0;
        step.label = label;
        step.time_unix_ns = mark->time_unix_ns;
        step.entries = walk.entries();
        step.bytes = mark->bytes;
        if (!callback(&step, context))
            break;
    }
    return TY_OK;
}

ty_status undo_get_stats(ty_heap *heap, ty_undo_stats *stats) {
    undo *u;
    if (ty_status status = find_undo(heap, "get the figures of undo", &u))
        return status;
    ty_undo_stats s{};
    s.struct_size = sizeof s;
    for (step_walk walk(*u); walk.more();) {
        const undo_mark *mark = nullptr;
        bool undone = false;
        if (ty_status status = walk.next(&mark, &undone))
            return status;
        ++(undone ? s.redoable : s.undoable);
    }
    s.undo_entries = u->back().used_entries() - s.undoable - s.redoable;
    s.redo_entries = u->forth().used_entries() - s.redoable;
    s.undo_bytes = recorded_bytes(u->back());
    s.redo_bytes = recorded_bytes(u->forth());
    s.undo_size = u->control->payload_bytes[0] - undo_ring::mark_room;
    s.redo_size = u->control->payload_bytes[1] - undo_ring::mark_room;
    s.size_entries = u->control->entry_count - 1;
    s.held_blocks = u->held.count();
    s.held_bytes = u->held.bytes();
    s.forgotten = u->forgotten;
    s.reattached = u->reattached;
    s.lost_volatile = u->lost_volatile;
    s.open = u->is(undo_open);
    s.full = u->is(undo_full);
    s.cycle = u->is(undo_cycle);
    s.off = u->is(undo_off);
    *stats = s;
    return TY_OK;
}

} // namespace taiyen
