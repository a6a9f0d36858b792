// Notes of others in the image's file (docs/design/image.md). They are written beside the process that has the
// heap open: nothing else is ever written where they are.
#include "../files/files.hpp"
#include "../image.hpp"

#include <cstring>

namespace taiyen {
namespace {

static_assert(sizeof note_slot_2{}.content == image_note_bytes_max);

uint64_t checksum_of(const note_slot_2 &slot) {
    return checksum(&slot, offsetof(note_slot_2, checksum), slot.number);
}

ty_status open_image(const char *path, const ty_storage &storage, image_note_slots &slots, bool writes) {
    uint64_t process = 0;
    if (slots.image.is_open())
        return TY_OK;
    if (ty_status status = image_read_owner(path, storage, slots.heap, &process))
        return status;
    slots.image.storage = &storage;
    return slots.image.open(path, writes ? TY_OPEN_WRITE : 0);
}

// The newest one that is whole; number 0: there is none.
ty_status read_slots(const image_note_slots &slots, uint32_t note, note_slot_2 *newest) {
    *newest = {};
    for (uint64_t n = 0; n < note_slot_count_2; ++n) {
        io_page page;
        note_slot_2 slot;
        if (ty_status status = slots.image.read(note_offset_2(note, n), page.bytes, sizeof page))
            return status;
        memcpy(&slot, page.bytes, sizeof slot);
        const bool whole = slot.magic == note_magic_2 && slot.checksum == checksum_of(slot) && slot.note == note &&
                           slot.bytes <= sizeof slot.content && slot.number % note_slot_count_2 == n &&
                           slot.number <= counter_max_2 && !memcmp(slot.heap_identity, slots.heap, sizeof slots.heap);
        if (whole && slot.number > newest->number)
            *newest = slot;
    }
    return TY_OK;
}

} // namespace

ty_status image_note_read(const char *path, const ty_storage &storage, image_note_slots &slots, uint32_t note,
                          void *bytes, size_t capacity, size_t *size) {
    const bool was_open = slots.image.is_open();
    note_slot_2 newest;
    *size = 0;
    if (ty_status status = open_image(path, storage, slots, false))
        return status;
    const ty_status status = read_slots(slots, note, &newest);
    if (!was_open)
        slots.image.close();
    if (status)
        return status;
    if (newest.number && newest.bytes > capacity)
        return failure(TY_E_FORMAT, "read a note of a heap: it is longer than any that is known here")
            .at(path)
            .remedy("use a newer version of the library");
    slots.notes[note].known = false; // its slot may be another process's by now
    *size = newest.number ? newest.bytes : 0;
    memcpy(bytes, newest.content, *size);
    return TY_OK;
}

// I25: what is in doubt is written over where it is, and the other slot is durable meanwhile.
ty_status image_note_write(const char *path, const ty_storage &storage, image_note_slots &slots, uint32_t note,
                           const void *bytes, size_t size, bool durable) {
    image_note_slots::state &state = slots.notes[note];
    note_slot_2 next{};
    io_page page;
    if (ty_status status = open_image(path, storage, slots, true))
        return status;
    if (!state.known) {
        if (ty_status status = slots.image.flush())
            return status;
        if (ty_status status = read_slots(slots, note, &next))
            return status;
        state = {true, false, next.number};
    }
    next = {};
    next.magic = note_magic_2;
    next.note = note;
    next.bytes = uint32_t(size);
    memcpy(next.heap_identity, slots.heap, sizeof next.heap_identity);
    next.number = state.number + (state.in_doubt && !fault("both_slots_of_a_note_in_doubt") ? note_slot_count_2 : 1);
    memcpy(next.content, bytes, size);
    next.checksum = checksum_of(next);
    memcpy(page.bytes, &next, sizeof next);
    if (ty_status status =
            slots.image.write(note_offset_2(note, next.number % note_slot_count_2), page.bytes, sizeof page)) {
        state.known = false;
        return status;
    }
    state.number = next.number;
    state.in_doubt = true;
    if (!durable)
        return TY_OK;
    if (ty_status status = slots.image.flush()) {
        state.known = false;
        return status;
    }
    state.in_doubt = false;
    return TY_OK;
}

} // namespace taiyen
