#include "undo_ring.hpp"

#include <algorithm>

namespace taiyen {

void undo_ring::push_procedure(uint64_t id, const void *arguments, uint64_t bytes, ty_status expected) {
    uint64_t whole = sizeof(undo_call) + padded(bytes);
    take_bytes(skip_for(whole));
    undo_call call{static_cast<uint64_t>(expected)};
    uint64_t at = end_offset;
    memcpy(payload + at, &call, sizeof call);
    if (bytes != 0)
        memcpy(payload + at + sizeof call, arguments, bytes);
    take_bytes(whole);
    push(id, bytes, what_of(undo_kind::procedure, at));
}

// The end is never after the bytes, and everything between is unused: so copying the first bytes first is safe.
void undo_ring::pull(undo_entry entry) {
    constexpr uint64_t low = (uint64_t{1} << undo_position_shift) - 1;
    const uint64_t bytes = payload_of(entry);
    if (bytes != 0) {
        if (in_one_piece(kind_of(entry)))
            take_bytes(skip_for(bytes));
        const uint64_t to = end_offset;
        char piece[512];
        for (uint64_t done = 0; done < bytes; done += sizeof piece) {
            const uint64_t size = std::min<uint64_t>(sizeof piece, bytes - done);
            copy_out((position_of(entry) + done) % payload_bytes, piece, size);
            copy_in((to + done) % payload_bytes, piece, size);
        }
        take_bytes(bytes);
        entry.what = (entry.what & low) | to << undo_position_shift;
    }
    push(entry.address, entry.bytes, entry.what);
}

void undo_ring::copy_in(uint64_t offset, const void *from, uint64_t bytes) {
    uint64_t first = std::min(bytes, payload_bytes - offset);
    memcpy(payload + offset, from, first);
    memcpy(payload, static_cast<const char *>(from) + first, bytes - first);
}

void undo_ring::copy_out(uint64_t offset, void *to, uint64_t bytes) const {
    uint64_t first = std::min(bytes, payload_bytes - offset);
    memcpy(to, payload + offset, first);
    memcpy(static_cast<char *>(to) + first, payload, bytes - first);
}

void undo_ring::swap(uint64_t offset, char *memory, uint64_t bytes) {
    uint64_t first = std::min(bytes, payload_bytes - offset);
    std::swap_ranges(memory, memory + first, payload + offset);
    std::swap_ranges(memory + first, memory + bytes, payload);
}

// Entries and payload are contiguous, or in two pieces where they wrap round the end.
uint64_t undo_ring::checksum_of(uint64_t first, uint64_t count, const undo_mark &mark) const {
    uint64_t sum = checksum(&mark, offsetof(undo_mark, checksum));
    uint64_t slot = first % entry_count;
    uint64_t before = std::min(count, entry_count - slot);
    sum = checksum(entries + slot, before * sizeof(undo_entry), sum);
    sum = checksum(entries, (count - before) * sizeof(undo_entry), sum);
    uint64_t bytes = mark.payload_end - mark.payload_begin - sizeof(undo_mark);
    uint64_t offset = mark.payload_begin % payload_bytes;
    before = std::min(bytes, payload_bytes - offset);
    sum = checksum(payload + offset, before, sum);
    return checksum(payload, bytes - before, sum);
}

void undo_ring::close(uint64_t first, uint64_t payload_begin, undo_mark &mark) {
    uint64_t count = positions->entries_end - first;
    mark.bytes = 0;
    for (uint64_t position = first; position < positions->entries_end; position++)
        if (payload_of(at(position)) != 0)
            mark.bytes += at(position).bytes;
    take_bytes(skip_for(sizeof mark));
    mark.payload_begin = payload_begin;
    mark.payload_end = positions->payload_end + sizeof mark;
    mark.checksum = checksum_of(first, count, mark);
    uint64_t at = end_offset;
    memcpy(payload + at, &mark, sizeof mark);
    take_bytes(sizeof mark);
    push(count, sizeof mark, what_of(undo_kind::mark, at));
}

// U7: what the entries have recorded.
uint64_t undo_ring::count_recorded(uint64_t first, uint64_t end) const {
    uint64_t bytes = 0;
    for (uint64_t position = first; position < end; position++)
        bytes += recorded_of(at(position));
    return bytes;
}

void undo_ring::drop(uint64_t entries_begin, uint64_t payload_begin) {
    recorded -= count_recorded(positions->entries_begin, entries_begin);
    positions->entries_begin = entries_begin;
    positions->payload_begin = payload_begin;
}

void undo_ring::cut(uint64_t entries_end, uint64_t payload_end) {
    if (!fault("cut_off_records_still_counted"))
        recorded -= count_recorded(entries_end, positions->entries_end);
    positions->entries_end = entries_end;
    positions->payload_end = payload_end;
    refresh();
}

} // namespace taiyen
