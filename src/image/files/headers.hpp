// The image's two header slots.
//
// I2: a slot is overwritten only while the other one is durable.
// I16: before a page of an archive heap may be changed, both headers durably say that the heap is open, until it is
//      closed: whichever of them a power cut takes, the other one tells that the content may be a mixture.
#pragma once

#include "../../heap/heap.hpp"
#include "../image.hpp"
#include "image_layout.hpp"

namespace taiyen {

struct header_state {
    image_header_2 current{};  // as last written or read
    code_places_2 places{};    // likewise
    bool in_doubt = false;     // written, and the image not flushed since
    bool flush_failed = false; // since the open: what the file holds besides the header is in doubt, too
};

// Which kinds have a journal.
inline bool has_journal(ty_kind kind) {
    return kind == TY_SNAPSHOT || kind == TY_TRANSACTIONAL;
}

image_mark mark_of(const image_header_2 &header);
void set_mark(image_header_2 &header, const image_mark &mark);

// Closed in order with everything checkpointed: the image is the heap, and needs no journal.
inline bool is_clean(const image_header_2 &header) {
    return header.state == uint32_t(image_state::closed) && header.epoch == header.durable_epoch;
}

// Reads both slots and takes the newer valid one; checks everything in it against its bounds and the file's size. Of
// version 1 (then header->version says so): only what was closed in order; its open is one that follows from its
// identity, so that what an upgrade leaves half-done is known again.
// *repaired: one slot was unreadable. *other_log (may be NULL): the log that the older one names. Errors: TY_E_FORMAT,
// TY_E_DAMAGED, TY_E_IO.
ty_status read_header(const storage_file &image, image_header_2 *header, bool *repaired, uint64_t *other_log = nullptr);

// What stands in the slots of where code was; empty where nothing is known. Errors: TY_E_IO.
ty_status read_code_places(const storage_file &image, code_places_2 *places);
// One more, the newest: it takes the place of the oldest where there are too many.
void add_code_place(code_places_2 &places, const code_zones_2 &zones);

// Of a damaged image, which may be cut short: the newest valid slot; else one with a wrong checksum whose fields are
// possible (*doubtful). Errors: TY_E_FORMAT, TY_E_DAMAGED, TY_E_IO.
ty_status read_doubtful_header(const storage_file &image, image_header_2 *header, bool *doubtful);

// The first of the header's counters that is above `most`; NULL: none is.
const char *counter_above(const image_header_2 &header, uint64_t most);

// Tells of each slot that is damaged or says what cannot be, and of what they contradict each other in.
ty_status scrub_headers(const storage_file &image, void (*problem)(void *context, const char *text), void *context);

// Flushes the image. After a failure, a header that was in doubt counts as not written.
ty_status flush_image(const storage_file &image, header_state &state);

// Writes the header as it stands, with the next number, to the other slot; flushes the image first if the last write is
// still in doubt (I2). Leaves the new one in doubt.
ty_status write_header(const storage_file &image, header_state &state);

// Writes and flushes it to both slots, so that either alone would do.
ty_status write_header_twice(const storage_file &image, header_state &state);

} // namespace taiyen
