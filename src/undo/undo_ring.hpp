// A ring of entries and the ring of bytes that belongs to it. Bytes of data may wrap round the end; those of procedures
// and marks are contiguous, and skip the end where they do not fit. Entries are walked both ways.
#pragma once

#include "undo.hpp"
#include "undo_layout.hpp"

#include <cstring>

namespace taiyen {

inline undo_kind kind_of(const undo_entry &entry) {
    return static_cast<undo_kind>(entry.what & 0xff);
}
inline uint64_t position_of(const undo_entry &entry) {
    return entry.what >> undo_position_shift;
}
inline uint64_t what_of(undo_kind kind, uint64_t position, uint64_t flags = 0) {
    return static_cast<uint64_t>(kind) | flags | position << undo_position_shift;
}
inline uint64_t padded(uint64_t bytes) {
    return (bytes + 7) & ~uint64_t{7};
}
// The bytes that an entry takes in the ring of bytes.
inline uint64_t payload_of(const undo_entry &entry) {
    switch (kind_of(entry)) {
    case undo_kind::data:
        return padded(entry.bytes);
    case undo_kind::procedure:
        return sizeof(undo_call) + padded(entry.bytes);
    case undo_kind::mark:
        return sizeof(undo_mark);
    default:
        return 0;
    }
}
inline bool in_one_piece(undo_kind kind) {
    return kind == undo_kind::procedure || kind == undo_kind::mark;
}
// Whether the block, or tail, that the entry names is kept because of it.
inline bool holds(const undo_entry &entry) {
    return kind_of(entry) == undo_kind::free || kind_of(entry) == undo_kind::shrink;
}
// The bytes that it has recorded, as the statistics count them.
inline uint64_t recorded_of(const undo_entry &entry) {
    return kind_of(entry) == undo_kind::data || kind_of(entry) == undo_kind::procedure ? entry.bytes : 0;
}
// Offset of that block.
inline uint64_t block_offset(const undo_entry &entry) {
    bool tail = kind_of(entry) == undo_kind::shrink || kind_of(entry) == undo_kind::grow;
    return entry.address + (tail ? position_of(entry) : 0);
}

struct undo_ring {
    undo_entry *entries;
    char *payload;
    uint64_t entry_count;
    uint64_t payload_bytes;
    undo_ring_positions *positions;
    uint64_t end_slot;   // of places->entries_end
    uint64_t end_offset; // of places->payload_end
    uint64_t recorded;   // U7: bytes that the entries have recorded

    // Room reserved for the mark: it may have to skip nearly its own size.
    static constexpr uint64_t mark_room = 2 * sizeof(undo_mark);

    undo_entry &at(uint64_t position) const { return entries[position % entry_count]; }
    uint64_t used_entries() const { return positions->entries_end - positions->entries_begin; }
    uint64_t used_bytes() const { return positions->payload_end - positions->payload_begin; }
    bool empty() const { return used_entries() == 0; }

    // Whether so many entries and bytes fit, and a mark after them. (U4)
    bool has_room(uint64_t count, uint64_t bytes) const {
        const uint64_t mark = fault("records_take_the_room_of_the_mark") ? 0 : mark_room;
        return used_entries() + count < entry_count + (mark == 0) && used_bytes() + bytes + mark <= payload_bytes;
    }
    // The bytes that skipping the end takes, for contiguous bytes.
    uint64_t skip_for(uint64_t bytes) const {
        return end_offset + bytes > payload_bytes ? payload_bytes - end_offset : 0;
    }

    void push(uint64_t address, uint64_t bytes, uint64_t what) {
        entries[end_slot] = {address, bytes, what};
        recorded += recorded_of(entries[end_slot]);
        end_slot = end_slot + 1 == entry_count ? 0 : end_slot + 1;
        positions->entries_end++;
    }
    void take_bytes(uint64_t bytes) {
        positions->payload_end += bytes;
        end_offset += bytes;
        if (end_offset >= payload_bytes)
            end_offset -= payload_bytes;
    }
    // The caller has made room.
    void push_data(uint64_t address, const void *data, uint64_t bytes) {
        uint64_t at = end_offset;
        if (bytes <= payload_bytes - at) [[likely]]
            memcpy(payload + at, data, bytes);
        else
            copy_in(at, data, bytes);
        take_bytes(padded(bytes));
        push(address, bytes, what_of(undo_kind::data, at));
    }
    void push_procedure(uint64_t id, const void *arguments, uint64_t bytes, ty_status expected);
    // Moves an entry that was pushed before, and lies after the end with its bytes, to the end.
    void pull(undo_entry entry);

    // Bytes from an offset on, which may wrap round the end.
    void copy_in(uint64_t offset, const void *from, uint64_t bytes);
    void copy_out(uint64_t offset, void *to, uint64_t bytes) const;
    void swap(uint64_t offset, char *memory, uint64_t bytes);

    // Closes the entries from `first` on, whose payload starts at a position: mark's label, time and peer are set.
    void close(uint64_t first, uint64_t payload_begin, undo_mark &mark);
    // The mark at a position, whose entry is sound.
    const undo_mark &mark_at(uint64_t position) const {
        return *reinterpret_cast<const undo_mark *>(payload + position_of(at(position)));
    }
    uint64_t checksum_of(uint64_t first, uint64_t count, const undo_mark &mark) const;

    // The ring ends, or begins, at these places from now on.
    void cut(uint64_t entries_end, uint64_t payload_end);
    void drop(uint64_t entries_begin, uint64_t payload_begin);
    // Back to the first place, for an empty ring: then contiguous bytes need not skip anything.
    void restart() { *positions = {}, recorded = 0, refresh(); }
    // For entries that were not pushed here.
    uint64_t count_recorded(uint64_t first, uint64_t end) const;
    void refresh() {
        end_slot = positions->entries_end % entry_count;
        end_offset = positions->payload_end % payload_bytes;
    }
};

} // namespace taiyen
