// What a program can query: the list of transactions, and the statistics.
#include "undo_runtime.hpp"

namespace taiyen {
namespace {

// Walks undo's closed transactions from the newest on. On damage next() fails, and the detail says so.
class step_walk {
public:
    explicit step_walk(undo &u)
        : u_(u), end_(u.is(undo_open) ? u.control->open_begin : u.back().positions->entries_end) {}

    bool more() const { return end_ > u_.back().positions->entries_begin; }
    ty_status next(const undo_mark **mark, bool *undone) {
        const undo_ring &back = u_.back();
        const undo_entry &last = back.at(end_ - 1);
        if (kind_of(last) != undo_kind::mark || !entry_is_sound(u_, back, last) ||
            last.address >= end_ - back.positions->entries_begin)
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

// The undo to query: the attached one; for a heap that is open for reading only, its buffers.
class asked_undo {
public:
    asked_undo() = default;
    ~asked_undo() { undo_destroy(detached_); }
    asked_undo(const asked_undo &) = delete;

    ty_status find(ty_heap *heap, const char *call, undo **found) {
        if (undo_of(heap) != nullptr || image_check_writer(heap, call) != TY_E_PERMISSION)
            return find_undo(heap, call, found);
        if (ty_status status = read_detached(heap, &detached_))
            return status;
        if (detached_ == nullptr)
            return failure(TY_E_NOT_FOUND, "%s: the heap has none", call);
        *found = detached_;
        return TY_OK;
    }

    // What was recorded outside the heap belongs to another process.
    bool is_out_of_reach() const { return detached_ != nullptr && detached_->control->flags & undo_volatile; }

private:
    undo *detached_ = nullptr;
};

// U7: counted along, so nothing is counted here.
void fill_recorded(undo &u, ty_undo_stats *s) {
    s->undoable = u.undoable;
    s->redoable = u.redoable;
    s->undo_entries = u.back().used_entries() - s->undoable - s->redoable; // without marks
    s->redo_entries = u.forth().used_entries() - s->redoable;
    s->undo_bytes = u.back().recorded;
    s->redo_bytes = u.forth().recorded;
}

} // namespace

ty_status undo_history(ty_heap *heap, ty_undo_step_callback *callback, void *context) {
    undo *u;
    asked_undo asked;
    if (ty_status status = asked.find(heap, "list the history of undo", &u))
        return status;
    if (asked.is_out_of_reach())
        return TY_OK;
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
    asked_undo asked;
    if (ty_status status = asked.find(heap, "get the figures of undo", &u))
        return status;
    ty_undo_stats s{};
    s.struct_size = sizeof s;
    if (!asked.is_out_of_reach())
        fill_recorded(*u, &s);
    s.undo_size = u->control->payload_bytes[0] - undo_ring::mark_room;
    s.redo_size = u->control->payload_bytes[1] - undo_ring::mark_room;
    s.size_entries = u->control->entry_count - 1;
    s.kept_blocks = u->kept.count();
    s.kept_bytes = u->kept.bytes();
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

void undo_publish(ty_heap *heap) {
    undo *u = undo_of(heap);
    undo_metrics_of metrics{};
    if (u != nullptr && u->running != undo_run::none) // called by a procedure: the undo that runs it publishes
        return;
    if (u != nullptr)
        metrics = {1,
                   u->undoable,
                   u->redoable,
                   u->kept.count(),
                   u->kept.bytes(),
                   u->back().used_bytes(),
                   u->control->payload_bytes[0]};
    image_publish_undo(heap, metrics);
}

} // namespace taiyen
