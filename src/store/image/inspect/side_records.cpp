// Side records of other programs in the image's file (docs/design/image.md). They are written while another process may
// have the heap open: that process never writes where they are.
#include "../files/files.hpp"
#include "../image.hpp"

#include <cstring>

namespace taiyen {
namespace {

static_assert(sizeof side_record_slot{}.content == image_side_record_bytes_max);

uint64_t checksum_of(const side_record_slot &slot) {
    return checksum(&slot, offsetof(side_record_slot, checksum), slot.number);
}

ty_status open_image(const char *path, const ty_storage &storage, image_side_record_slots &slots, bool writes) {
    uint64_t process = 0;
    if (slots.image.is_open())
        return TY_OK;
    if (ty_status status = image_read_owner(path, storage, slots.heap, &process))
        return status;
    slots.image.storage = &storage;
    return slots.image.open(path, writes ? TY_FILE_WRITE : 0);
}

constexpr int readings_max = 3; // a slot that is read while it is written is not valid either

bool is_whole(const side_record_slot &slot, uint32_t side_record, uint64_t n) {
    return slot.magic == side_record_magic && slot.checksum == checksum_of(slot) && slot.side_record == side_record &&
           slot.bytes <= sizeof slot.content && slot.number % header_slots == n && slot.number <= counter_max;
}

// Finds the newest valid side record; number 0: no side record. *damaged: both slots were written, and neither is
// valid.
ty_status look_at_slots(const image_side_record_slots &slots, uint32_t side_record, side_record_slot *newest,
                        bool *damaged) {
    uint64_t written = 0, whole = 0;
    *newest = {};
    for (uint64_t n = 0; n < header_slots; ++n) {
        io_page page;
        const io_page zeros;
        side_record_slot slot;
        if (ty_status status = slots.image.read(side_record_offset(side_record, n), page.bytes, sizeof page))
            return status;
        memcpy(&slot, page.bytes, sizeof slot);
        written += memcmp(&page, &zeros, sizeof page) != 0;
        if (!is_whole(slot, side_record, n))
            continue;
        ++whole; // a valid side record of another heap does not count for this one
        if (slot.number > newest->number && !memcmp(slot.heap_identity, slots.heap, sizeof slots.heap))
            *newest = slot;
    }
    *damaged = written == header_slots && whole == 0; // I25: damaged, not missing
    return TY_OK;
}

ty_status read_slots(const image_side_record_slots &slots, uint32_t side_record, side_record_slot *newest) {
    bool damaged = true;
    for (int n = 0; damaged && n < readings_max; ++n)
        if (ty_status status = look_at_slots(slots, side_record, newest, &damaged))
            return status;
    if (!damaged)
        return TY_OK;
    return failure(TY_E_DAMAGED, "read a side record of a heap: both places of side record %u are damaged", side_record)
        .at(slots.image.path)
        .remedy("what the heap remembers of its publishing is lost: keep the file, and make a new heap of its content "
                "(taiyen repair), which is published under another name");
}

// The caller has the file's turn. I25: an unflushed side record is overwritten in place, and the other slot is durable
// meanwhile.
ty_status write_slot(image_side_record_slots &slots, uint32_t side_record, const void *bytes, size_t size) {
    image_side_record_slots::state &state = slots.side_records[side_record];
    side_record_slot next{};
    io_page page;
    if (ty_status status = read_slots(slots, side_record, &next))
        return status;
    if (state.seen && state.number != next.number) // I25: only a writer that has read the current side record
        return failure(TY_E_BUSY, "write a side record of a heap: another one has written it meanwhile")
            .at(slots.image.path)
            .remedy("read it, and decide again");
    if (!state.seen || !state.durability_known) {
        if (ty_status status = slots.image.flush())
            return status;
        state = {true, true, false, next.number};
    }
    next = {};
    next.magic = side_record_magic;
    next.side_record = side_record;
    next.bytes = uint32_t(size);
    memcpy(next.heap_identity, slots.heap, sizeof next.heap_identity);
    next.number =
        state.number + (state.unflushed && !fault("both_slots_of_a_side_record_unflushed") ? header_slots : 1);
    memcpy(next.content, bytes, size);
    next.checksum = checksum_of(next);
    memcpy(page.bytes, &next, sizeof next);
    state.durability_known = false;
    if (ty_status status =
            slots.image.write(side_record_offset(side_record, next.number % header_slots), page.bytes, sizeof page))
        return status;
    state = {true, true, true, next.number};
    return TY_OK;
}

ty_status flush_side_records(image_side_record_slots &slots, image_side_record_slots::state &state) {
    state.durability_known = false;
    if (ty_status status = slots.image.flush())
        return status;
    state.durability_known = true;
    state.unflushed = false;
    return TY_OK;
}

// I25: the first write of a side record goes to both slots, one after the other.
ty_status write_slots(image_side_record_slots &slots, uint32_t side_record, const void *bytes, size_t size) {
    ty_status status = write_slot(slots, side_record, bytes, size);
    if (!status && slots.side_records[side_record].number == 1 &&
        !(status = flush_side_records(slots, slots.side_records[side_record])))
        status = write_slot(slots, side_record, bytes, size);
    return status;
}

ty_status write_in_turn(image_side_record_slots &slots, uint32_t side_record, const void *bytes, size_t size) {
    if (ty_status status = slots.image.turn(true))
        return status;
    const ty_status status = write_slots(slots, side_record, bytes, size);
    const ty_status ended = slots.image.turn(false);
    return status ? status : ended;
}

} // namespace

ty_status image_side_record_read(const char *path, const ty_storage &storage, image_side_record_slots &slots,
                                 uint32_t side_record, void *bytes, size_t capacity, size_t *size) {
    const bool was_open = slots.image.is_open();
    side_record_slot newest;
    *size = 0;
    if (ty_status status = open_image(path, storage, slots, false))
        return status;
    const ty_status status = read_slots(slots, side_record, &newest);
    if (!was_open)
        slots.image.close();
    if (status)
        return status;
    if (newest.number && newest.bytes > capacity)
        return failure(TY_E_FORMAT, "read a side record of a heap: it is longer than any that is known here")
            .at(path)
            .remedy("use a newer version of the library");
    slots.side_records[side_record] = {true, false, false,
                                       newest.number}; // another process may have written it, and not flushed it
    *size = newest.number ? newest.bytes : 0;
    memcpy(bytes, newest.content, *size);
    return TY_OK;
}

ty_status image_side_record_write(const char *path, const ty_storage &storage, image_side_record_slots &slots,
                                  uint32_t side_record, const void *bytes, size_t size, bool durable) {
    if (ty_status status = open_image(path, storage, slots, true))
        return status;
    if (ty_status status = write_in_turn(slots, side_record, bytes, size))
        return status;
    return durable ? flush_side_records(slots, slots.side_records[side_record]) : TY_OK;
}

} // namespace taiyen
