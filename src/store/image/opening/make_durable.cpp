// What an open finds in the files may not be durable: the process that wrote it died before its flush. What is built on
// it would be lost with it in a power cut. So a writing open flushes what it believes before it continues, and rewrites
// what a flush alone may not make durable.
#include "open_steps.hpp"

#include <algorithm>

namespace taiyen {

namespace {

// All batches before the newest one were flushed before it was begun.
bool known_durable(const image &im, const batch_list &batches) {
    return !batches.last || batches.last->epoch <= im.header.current.durable_epoch;
}

// Finds a place that no batch uses: in front of all, if there is room, else after. But not where a scan looks for the
// first batch before it looks at the front: a scan after a power cut would take the copy of the first, and miss the
// copy of the next.
uint64_t place_beside(const batch_list &batches, uint64_t journal_next) {
    uint64_t lowest = UINT64_MAX, highest = journal_front;
    for (const batch *b = batches.first; b; b = b->next) {
        lowest = std::min(lowest, b->start);
        highest = std::max(highest, b->end);
    }
    if (batches.bytes() <= lowest - journal_front)
        return journal_front;
    if (fault("batches_renewed_over_the_only_copy"))
        return journal_front;
    return highest == journal_next && !fault("renewed_batches_where_the_scan_begins") ? highest + page_bytes : highest;
}

ty_status copy_in_journal(const storage_file &journal, uint64_t from, uint64_t to, uint64_t bytes, io_buffer &buffer) {
    for (uint64_t done = 0; done < bytes;) {
        uint64_t piece = std::min<uint64_t>(bytes - done, buffer.bytes());
        if (ty_status status = journal.read(from + done, buffer.data(), piece))
            return status;
        if (ty_status status = journal.write(to + done, buffer.data(), piece))
            return status;
        done += piece;
    }
    return TY_OK;
}

// What the previous process wrote may not be durable, and what it erased may come back: a batch of which no chunk is
// left here, but which the disk still has.
bool journal_unflushed(const image &im, const batch_list &batches) {
    return !known_durable(im, batches) ||
           (im.header.current.state != uint32_t(image_state::closed) && !fault("removed_batch_not_made_durable"));
}

} // namespace

// A journal that was never used may be from an open that died before the journal's name was durable.
ty_status make_name_durable(const image &im) {
    if (im.head.header.number != 1 || fault("journal_name_not_durable"))
        return TY_OK;
    return os::call_whole(im.journal.storage->flush_directory, im.journal.storage->context, im.journal.path);
}

// I3 for the newest epoch: it is durable before anything is built on it. A header that a power cut tore is rewritten:
// the other one was durable then.
ty_status make_journal_durable(image &im, const batch_list &batches) {
    if (im.journal.is_open() && journal_unflushed(im, batches) &&
        !(fault("open_does_not_flush_the_journal") && batches.first))
        if (ty_status status = im.journal.flush())
            return status;
    if (!im.head.other_slot_damaged)
        return TY_OK;
    im.head.other_slot_damaged = false;
    return write_journal_header(im.journal, im.head, im.head.header);
}

// I1: a batch is dropped only while another copy is durable.
ty_status renew_batches(image &im, batch_list &batches) {
    if (known_durable(im, batches) || fault("believed_batches_not_renewed"))
        return TY_OK;
    const uint64_t place = place_beside(batches, im.header.current.journal_next), bytes = batches.bytes();
    io_buffer buffer;
    if (ty_status status = buffer.create(chunk_bytes(chunk_pages_max)))
        return status;
    ty_status status = im.journal.allocate(place, bytes);
    if (status == TY_E_SPACE)
        return TY_OK; // only the flush is possible
    if (status && status != TY_E_UNSUPPORTED)
        return status;
    if ((status = flush_image(im.backing, im.header))) // the other header may still need what is beside the batches
        return status;
    uint64_t to = place;
    for (const batch *b = batches.first; b && !status; to += b->end - b->start, b = b->next)
        status = copy_in_journal(im.journal, b->start, to, b->end - b->start, buffer);
    if (!status && !fault("renewed_batches_not_flushed"))
        status = im.journal.flush(); // some file systems detect only then that they are full
    if (status)
        return status == TY_E_SPACE ? TY_OK : status;
    if (to > im.head.header.size_bytes) { // I9: batches lie before this size
        journal_header next = im.head.header;
        next.size_bytes = im.head.sized_bytes = to;
        if ((status = write_journal_header(im.journal, im.head, next)))
            return status;
    }
    to = place;
    for (batch *b = batches.first; b; b = b->next) {
        for (size_t i = 0; i < b->copies.count(); ++i)
            b->copies[i].offset += to - b->start;
        b->end += to - b->start;
        b->start = to;
        to = b->end;
    }
    im.header.current.journal_next = place;
    im.header.current.durable_epoch = batches.last->epoch;
    return write_header_twice(im.backing, im.header);
}

// I2 for the header (it is durable before the other one is overwritten); and I6 for a creation whose end no process
// saw. A header whose flush failed, in a process that then died, stays unflushed whatever is flushed: so it is
// rewritten, to its own slot, while the other one is still as it was.
ty_status make_image_durable(image &im, bool other_slot_damaged) {
    image_header &header = im.header.current;
    bool opened_before = header.number > header_slots;
    if (other_slot_damaged) {
        im.header.unflushed = true; // the only valid one: the next write, to the other slot, flushes first
    } else {
        header.number -= 1;
        // Both headers of a closed archive heap say the same: the other one is durable and suffices, and the slot of
        // this one is rewritten when the heap is marked as open (I16).
        if (im.kind != TY_ARCHIVE || header.state != uint32_t(image_state::closed))
            if (ty_status status = write_header(im.backing, im.header))
                return status;
    }
    if (opened_before && header.state == uint32_t(image_state::closed))
        return TY_OK;
    if (ty_status status = flush_image(im.backing, im.header))
        return status;
    return os::call_whole(im.backing.storage->flush_directory, im.backing.storage->context, im.image_path);
}

} // namespace taiyen
