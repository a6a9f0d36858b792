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

// Entries and payload lie in one piece each, or in two where they go round the end.
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
    uint64_t count = places->entries_end - first;
    mark.bytes = 0;
    for (uint64_t place = first; place < places->entries_end; place++)
        if (payload_of(at(place)) != 0)
            mark.bytes += at(place).bytes;
    take_bytes(skip_for(sizeof mark));
    mark.payload_begin = payload_begin;
    mark.payload_end = places->payload_end + sizeof mark;
    mark.checksum = checksum_of(first, count, mark);
    uint64_t at = end_offset;
    memcpy(payload + at, &mark, sizeof mark);
    take_bytes(sizeof mark);
    push(count, sizeof mark, what_of(undo_kind::mark, at));
}

void undo_ring::cut(uint64_t entries_end, uint64_t payload_end) {
    places->entries_end = entries_end;
    places->payload_end = payload_end;
    refresh();
}

} // namespace taiyen
