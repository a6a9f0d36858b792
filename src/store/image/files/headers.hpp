// The image's two header slots.
//
// I2: a slot is overwritten only while the other one is durable.
// I16: before a page of an archive heap may be changed, both headers durably say that the heap is open, until it is
//      closed: whichever of them a power cut destroys, the other one shows that the content may be a mixture.
#pragma once

#include "../image.hpp"
#include "image_layout.hpp"
#include "src/heap/heap.hpp"

namespace taiyen {

struct header_state {
    image_header current{};    // as last written or read
    code_places places{};      // as last written or read
    bool unflushed = false;    // written, and the image not flushed since
    bool flush_failed = false; // since the open: the file's other content is unflushed, too
};

// Whether heaps of this kind have a journal.
inline bool has_journal(ty_kind kind) {
    return kind == TY_SNAPSHOT || kind == TY_TRANSACTIONAL;
}

log_positions redo_point_of(const image_header &header);
void set_redo_point(image_header &header, const log_positions &redo_point);

// Closed cleanly with everything checkpointed: the image is the heap, and needs no journal.
inline bool is_clean(const image_header &header) {
    return header.state == uint32_t(image_state::closed) && header.epoch == header.durable_epoch;
}

// Reads both slots and takes the newer valid one; checks all its fields against their bounds and the file's size.
// *repaired: one slot was unreadable. *other_log (may be NULL): the log that the older one names. Errors: TY_E_FORMAT,
// TY_E_DAMAGED, TY_E_IO.
ty_status read_header(const storage_file &image, image_header *header, bool *repaired, uint64_t *other_log = nullptr);

// Reads where code was, from the slots; empty where nothing is known. Errors: TY_E_IO.
ty_status read_code_places(const storage_file &image, code_places *places);
// Adds the newest one; it replaces the oldest where there are too many.
void add_code_place(code_places &places, const os::code_zones &zones);

// For a damaged image, which may be cut short: reads the newest valid slot; else one with a wrong checksum whose fields
// are possible (*uncertain). Errors: TY_E_FORMAT, TY_E_DAMAGED, TY_E_IO.
ty_status read_uncertain_header(const storage_file &image, image_header *header, bool *uncertain);

// The first of the header's counters that is above `most`; NULL if none is.
const char *counter_above(const image_header &header, uint64_t most);

// Reports each slot that is damaged or has an impossible field, and the fields in which they contradict each other.
ty_status scrub_headers(const storage_file &image, void (*problem)(void *context, const char *text), void *context);

// Flushes the image. After a failure, a header that was unflushed counts as not written.
ty_status flush_image(const storage_file &image, header_state &state);

// Writes the header as it stands, with the next number, to the other slot; first flushes the image if the last write is
// still unflushed (I2). Leaves the new one unflushed.
ty_status write_header(const storage_file &image, header_state &state);

// Writes and flushes it to both slots, so that either one suffices.
ty_status write_header_twice(const storage_file &image, header_state &state);

} // namespace taiyen
