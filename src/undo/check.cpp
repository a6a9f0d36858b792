// The checks before bytes of the buffers are believed, and before anything is reversed.
#include "undo_runtime.hpp"

#include <algorithm>

namespace taiyen {
namespace {

constexpr uint64_t position_max = uint64_t{1} << 62;
constexpr uint32_t states_known = undo_open | undo_full | undo_cycle | undo_off | undo_redo_lost | undo_applying;

ty_status damaged(const undo &u, const char *what) {
    return failure(TY_E_DAMAGED, "attach undo to the heap at %p: %s", static_cast<void *>(u.base), what)
        .remedy("ty_undo_detach with keep_history false removes the buffers; the heap's content stays as it is");
}

bool positions_are_sound(const undo_ring &ring) {
    const undo_ring_positions &p = *ring.positions;
    return p.entries_begin <= p.entries_end && p.entries_end < position_max &&
           ring.used_entries() <= ring.entry_count && p.payload_begin <= p.payload_end &&
           p.payload_end < position_max && ring.used_bytes() <= ring.payload_bytes;
}

bool state_is_sound(undo &u) {
    const undo_control &c = *u.control;
    const undo_ring_positions &back = *u.back().positions;
    if ((c.state & ~states_known) != 0 || u.is(undo_applying) || c.cursor < back.entries_begin ||
        c.cursor > back.entries_end || c.label[sizeof c.label - 1] != 0)
        return false;
    if (u.is(undo_open)) {
        bool mark_fits = back.entries_end == c.open_begin || u.back().has_room(0, 0); // U4: ending it must write a mark
        if (!mark_fits || c.open_begin < c.cursor || c.open_begin > back.entries_end)
            return false;
        return u.is(undo_cycle) || (c.open_begin == c.cursor && u.forth().empty());
    }
    if (u.is(undo_full))
        return false;
    return u.is(undo_cycle) || (c.cursor == back.entries_end && u.forth().empty());
}

// Walks a ring's entries in the order of writing: where the payload of each must stand follows from those before it.
class chain_walk {
public:
    chain_walk(const undo &u, const undo_ring &ring)
        : u_(u), ring_(ring), position_(ring.positions->entries_begin), first_(position_),
          payload_(ring.positions->payload_begin), first_payload_(payload_) {}

    uint64_t position() const { return position_; }
    uint64_t payload() const { return payload_; }
    bool at_boundary() const { return position_ == first_; }
    uint64_t marks() const { return marks_; }

    bool next() {
        const undo_entry &entry = ring_.at(position_);
        if (!entry_is_sound(u_, ring_, entry))
            return false;
        uint64_t bytes = payload_of(entry);
        if (bytes != 0) {
            uint64_t offset = payload_ % ring_.payload_bytes;
            if (in_one_piece(kind_of(entry)) && offset + bytes > ring_.payload_bytes)
                payload_ += ring_.payload_bytes - offset;
            if (position_of(entry) != payload_ % ring_.payload_bytes)
                return false;
            payload_ += bytes;
        }
        return (kind_of(entry) != undo_kind::mark || close(entry)) && ++position_ != 0;
    }

private:
    bool close(const undo_entry &entry) {
        const undo_mark &mark = ring_.mark_at(position_);
        bool sound = entry.address == position_ - first_ && mark.payload_begin == first_payload_ &&
                     mark.payload_end == payload_ && mark.label[sizeof mark.label - 1] == 0;
        first_ = position_ + 1;
        first_payload_ = payload_;
        marks_++;
        return sound;
    }

    const undo &u_;
    const undo_ring &ring_;
    uint64_t position_;
    uint64_t first_;
    uint64_t payload_;
    uint64_t first_payload_;
    uint64_t marks_ = 0;
};

// The chain of undo: the cursor, and the open transaction, stand between transactions. *undone: transactions from the
// cursor on.
ty_status check_back(undo &u, uint64_t *undone) {
    const undo_ring_positions &positions = *u.back().positions;
    chain_walk walk(u, u.back());
    const undo_control &c = *u.control;
    uint64_t done = UINT64_MAX, closed = UINT64_MAX;
    for (;;) {
        if (walk.position() == c.cursor) {
            if (!walk.at_boundary())
                return damaged(u, "the cursor does not stand between transactions");
            done = walk.marks();
        }
        if (u.is(undo_open) && walk.position() == c.open_begin) {
            if (!walk.at_boundary() || c.open_payload != walk.payload())
                return damaged(u, "the open transaction does not begin between transactions");
            closed = walk.marks();
        }
        if (walk.position() == positions.entries_end)
            break;
        if (!walk.next())
            return damaged(u, "an entry of undo makes no sense");
    }
    bool ends = u.is(undo_open) ? walk.marks() == closed : walk.at_boundary();
    if (!ends || walk.payload() != positions.payload_end)
        return damaged(u, "the end of undo makes no sense");
    *undone = walk.marks() - done;
    u.undoable = done; // U7: counted here once
    u.redoable = *undone;
    return TY_OK;
}

// The chain of redo, whose transactions match those of undo from the last closed one back to the cursor (U1).
ty_status check_forth(undo &u, uint64_t undone) {
    const undo_ring_positions &positions = *u.forth().positions;
    chain_walk walk(u, u.forth());
    uint64_t peer = u.is(undo_open) ? u.control->open_begin : u.back().positions->entries_end;
    while (walk.position() != positions.entries_end) {
        uint64_t position = walk.position();
        if (!walk.next())
            return damaged(u, "an entry of redo makes no sense");
        if (!walk.at_boundary())
            continue;
        if (walk.marks() > undone || u.forth().mark_at(position).peer != peer)
            return damaged(u, "redo does not fit undo");
        peer -= u.back().at(peer - 1).address + 1;
    }
    if (!walk.at_boundary() || walk.payload() != positions.payload_end || walk.marks() != undone)
        return damaged(u, "the end of redo makes no sense");
    return TY_OK;
}

ty_status check_kept(undo &u, undo_ring &ring, uint64_t first, uint64_t end) {
    for (uint64_t position = first; position < end; position++) {
        const undo_entry &entry = ring.at(position);
        uint64_t offset = block_offset(entry);
        if (!entry_is_sound(u, ring, entry))
            return damaged(u, "an entry makes no sense");
        if (!holds(entry))
            continue;
        if (!block_is(u, offset, entry.bytes) || u.kept.contains(offset))
            return damaged(u, "a block that it holds is not there: somebody has freed or resized it");
        u.kept.insert(offset, entry.bytes);
    }
    return TY_OK;
}

// An entry must not name the block in which the entry itself lies: that would be kept, and freed.
bool spares_buffers(const undo &u, const undo_entry &entry) {
    const uint64_t buffers = u.offset_of(u.control);
    return entry.address != buffers && block_offset(entry) != buffers;
}

} // namespace

// U3: a kept block is live, with the size in its entry.
bool block_is(const undo &u, uint64_t offset, uint64_t bytes) {
    ty_block block;
    return heap_find_block(u.heap, u.base + offset, &block) && block.address == u.base + offset &&
           block.size_bytes == bytes;
}

bool touches_kept(const undo &u, uint64_t offset, uint64_t bytes) {
    const char *end = u.base + offset + bytes;
    for (const char *at = u.base + offset; at < end;) {
        ty_block block;
        bool live = heap_find_block(u.heap, at, &block);
        const char *start = static_cast<const char *>(block.address);
        if (live && (u.kept.contains(u.offset_of(start)) || start == reinterpret_cast<const char *>(u.control)))
            return true;
        at = start + block.size_bytes;
    }
    return false;
}

bool entry_is_sound(const undo &u, const undo_ring &ring, const undo_entry &entry) {
    const uint64_t position = position_of(entry), bytes = entry.bytes;
    switch (kind_of(entry)) {
    case undo_kind::data:
        return bytes != 0 && position % 8 == 0 && position < ring.payload_bytes && bytes <= ring.payload_bytes &&
               u.in_blocks(entry.address, bytes);
    case undo_kind::procedure:
    case undo_kind::mark:
        return position % 8 == 0 && position < ring.payload_bytes && bytes <= ring.payload_bytes &&
               payload_of(entry) <= ring.payload_bytes - position &&
               (kind_of(entry) == undo_kind::procedure ? entry.address != 0 : bytes == sizeof(undo_mark));
    case undo_kind::alloc:
    case undo_kind::free:
        return bytes != 0 && entry.address % 8 == 0 && u.in_blocks(entry.address, bytes) && spares_buffers(u, entry);
    case undo_kind::grow:
    case undo_kind::shrink:
        return bytes != 0 && position != 0 && (entry.address | bytes | position) % os::page_bytes == 0 &&
               bytes <= u.end_offset && u.in_blocks(entry.address, position + bytes) && spares_buffers(u, entry);
    }
    return false;
}

// U6: nothing read from the buffers is believed before it is checked.
ty_status check_control(const undo_control &control, uint64_t block_bytes) {
    if (block_bytes < sizeof control || control.magic != undo_magic)
        return failure(TY_E_DAMAGED, "attach undo: the heap's service block is none of it");
    if (control.version != undo_version)
        return failure(TY_E_FORMAT, "attach undo: the buffers have version %u", control.version)
            .remedy("use a newer library");
    uint64_t left = block_bytes - sizeof control;
    uint64_t entries = control.entry_count, back = control.payload_bytes[0], forth = control.payload_bytes[1];
    bool sound = entries >= 2 && entries <= left / (2 * sizeof(undo_entry)) && back % 8 == 0 && forth % 8 == 0 &&
                 back >= undo_ring::mark_room && forth >= undo_ring::mark_room && back <= heap_limit_max &&
                 forth <= heap_limit_max;
    if (sound && !(control.flags & undo_volatile)) {
        left -= 2 * entries * sizeof(undo_entry);
        sound = back <= left && forth <= left - back;
    }
    if (!sound || (control.flags & ~uint32_t{undo_fixed | undo_volatile}) != 0)
        return failure(TY_E_DAMAGED, "attach undo: the sizes of the buffers make no sense")
            .remedy("ty_undo_detach with keep_history false removes them");
    return TY_OK;
}

ty_status check_buffers(undo &u) {
    if (!positions_are_sound(u.back()) || !positions_are_sound(u.forth()) || !state_is_sound(u))
        return damaged(u, "the places in the buffers make no sense, or an undo was under way");
    for (undo_ring &ring : u.rings) // U7: the recorded bytes are counted
        ring.recorded = ring.count_recorded(ring.positions->entries_begin, ring.positions->entries_end);
    uint64_t undone = 0;
    if (!(u.control->flags & undo_volatile)) {
        if (ty_status status = check_back(u, &undone))
            return status;
        if (ty_status status = check_forth(u, undone))
            return status;
    }
    const undo_ring_positions &back = *u.back().positions, &forth = *u.forth().positions;
    if (ty_status status = check_kept(u, u.back(), back.entries_begin, u.control->cursor))
        return status;
    if (u.is(undo_open))
        if (ty_status status = check_kept(u, u.back(), u.control->open_begin, back.entries_end))
            return status;
    return check_kept(u, u.forth(), forth.entries_begin, forth.entries_end);
}

ty_status check_entries(undo &u, undo_ring &ring, uint64_t first, uint64_t end) {
    for (uint64_t position = first; position < end; position++) {
        const undo_entry &entry = ring.at(position);
        ty_block block;
        if (!entry_is_sound(u, ring, entry))
            return failure(TY_E_DAMAGED, "undo or redo: an entry makes no sense").remedy("ty_undo_clear");
        if (kind_of(entry) == undo_kind::procedure && !procedure_known(entry.address))
            return failure(TY_E_NOT_FOUND, "undo or redo: the procedure %llu is not registered",
                           static_cast<unsigned long long>(entry.address))
                .remedy("call ty_register_procedure first");
        if (kind_of(entry) != undo_kind::data)
            continue;
        for (uint64_t at = entry.address; at < entry.address + entry.bytes;) {
            bool live = heap_find_block(u.heap, u.base + at, &block);
            if (!live || block.address == u.control)
                return failure(TY_E_DAMAGED, "undo or redo: the bytes recorded at %p lie in no live block any more",
                               static_cast<void *>(u.base + entry.address))
                    .remedy("free blocks that were recorded by ty_undo_free; ty_undo_clear forgets the history");
            at = u.offset_of(block.address) + block.size_bytes;
        }
    }
    return TY_OK;
}

// U5: nothing changes before the whole transaction is validated.
ty_status check_step(undo &u, undo_ring &ring, uint64_t end, uint64_t *first) {
    const undo_entry &last = ring.at(end - 1);
    bool sound = kind_of(last) == undo_kind::mark && entry_is_sound(u, ring, last) &&
                 last.address < end - ring.positions->entries_begin;
    if (sound) {
        const undo_mark &mark = ring.mark_at(end - 1);
        *first = end - 1 - last.address;
        sound = mark.payload_begin >= ring.positions->payload_begin &&
                mark.payload_end <= ring.positions->payload_end && mark.payload_begin <= mark.payload_end &&
                mark.payload_end - mark.payload_begin >= sizeof mark &&
                (ring.checksum_of(*first, last.address, mark) == mark.checksum || fault("undo_checksum_not_checked"));
    }
    if (!sound)
        return failure(TY_E_DAMAGED, "undo or redo: the recorded bytes are not what was recorded")
            .remedy("something has written over them; ty_undo_clear forgets the history");
    return fault("undo_entries_not_checked") ? TY_OK : check_entries(u, ring, *first, end - 1);
}

} // namespace taiyen
