#include "../files/files.hpp"
#include "image_runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint32_t prefetch_pages = 2; // how far ahead
constexpr size_t prefetch_bytes = 256; // and how much: measured, 150 to 115 ms for 100,000 scattered pages
constexpr size_t slots_min = 2;        // one is filled while the other is written
constexpr size_t staging_step_bytes = size_t{15} << 20; // beyond what is needed at once
// Disk blocks are allocated in steps, each a fraction of the current size: each step writes the journal's header (I9).
constexpr uint64_t journal_step_bytes = uint64_t{1} << 20;
constexpr uint64_t journal_step_part = 8;

// The most bytes that a batch of so many pages in so many rows takes: each row may end with a chunk that is not full,
// the last row with an empty one.
uint64_t batch_bytes(const image &im, uint64_t pages, uint32_t rows) {
    uint64_t chunks = (pages + im.chunk_pages - 1) / im.chunk_pages;
    return (pages + (chunks ? chunks : 1) + rows - 1) * page_bytes;
}

// Allocates disk blocks up to `end`, so that a full disk is detected before anything is written.
ty_status allocate_journal(image &im, uint64_t end) {
    batch_writer &writer = im.writer;
    if (end <= writer.allocated_end)
        return TY_OK;
    uint64_t wanted =
        (end + end / journal_step_part + journal_step_bytes - 1) / journal_step_bytes * journal_step_bytes;
    ty_status status = im.journal.allocate(writer.allocated_end, wanted - writer.allocated_end);
    if (status == TY_E_SPACE) {
        wanted = end;
        status = im.journal.allocate(writer.allocated_end, wanted - writer.allocated_end);
    }
    if (status == TY_E_UNSUPPORTED) // the storage cannot allocate: writes will fail instead
        status = im.journal.set_size(wanted);
    if (status == TY_OK)
        writer.allocated_end = wanted;
    return status;
}

// Finds where a batch of so many bytes (0: unknown) may be written; false: nowhere before the journal is checkpointed
// (I1: no waiting batch is overwritten). Under work.
bool find_room(const image &im, uint64_t bytes, uint64_t *position) {
    const batch *oldest = im.waiting.first;
    if (!oldest) {
        *position = journal_front;
        return true;
    }
    *position = im.journal_end;
    if (im.journal_end <= oldest->start) // the newest batch is in front of the oldest: the free space lies between them
        return bytes && *position + bytes <= oldest->start;
    if (bytes && (journal_front + bytes <= oldest->start || fault("batch_written_over_waiting_ones")))
        *position = journal_front;
    return true;
}

void reset_writer(batch_writer &writer, batch_outcome outcome) {
    staging &ring = writer.ring;
    uint32_t faded = ring.wanted - (ring.wanted + 7) / 8;
    ring.wanted = ring.most_in_use > faded ? ring.most_in_use : faded;
    ring.clear(ring.touched);
    writer.open = writer.sealed = writer.finishing = writer.failing = false;
    writer.target = nullptr;
    writer.filled = writer.written = 0;
    writer.outcome = outcome;
}

// Under work.
void batch_failed(image &im) {
    batch_writer &writer = im.writer;
    writer.failed_epoch = writer.target->epoch;
    writer.failed_error = writer.error;
    batch_destroy(writer.target);
    reset_writer(writer, batch_outcome::failed);
}

// Under work.
void batch_durable(image &im) {
    batch_writer &writer = im.writer;
    batch *b = writer.target;
    b->end = writer.position;
    b->redo_point = im.durable_redo_point = writer.redo_point;
    im.waiting.append(b);
    im.durable_epoch = b->epoch;
    im.durable_nonce = b->nonce;
    im.journal_end = b->end;
    im.checkpoint_wanted = true;
    im.stats.snapshots += 1;
    im.stats.pages += b->copies.count();
    im.stats.last_bytes = writer.bytes;
    im.stats.last_durable_ns = os::now_ns() - writer.started_ns;
    im.lines[im.line_count++ % snapshot_lines_max] = {
        b->epoch,          os::unix_time_ns(), im.pause.epoch == b->epoch ? im.pause.ns : 0, im.stats.last_durable_ns,
        b->copies.count(), writer.bytes};
    reset_writer(writer, batch_outcome::durable);
}

void fill_chunk(const image &im, char *memory, const uint64_t *pages, uint32_t count, const char *copies) {
    auto *header = reinterpret_cast<chunk_header *>(memory);
    memset(header, 0, sizeof *header);
    header->count = count;
    for (uint32_t i = 0; i < count; ++i)
        header->entries[i].page = pages[i];
    if (copies) {
        memcpy(memory + chunk_bytes(0), copies, count * page_bytes);
        return;
    }
    for (uint32_t i = 0; i < count; ++i) {
        // Dirty pages are scattered: prefetching overlaps their page-table walks with the copy before.
        if (i + prefetch_pages < count)
            for (size_t byte = 0; byte < prefetch_bytes; byte += 64)
                __builtin_prefetch(im.base + pages[i + prefetch_pages] * page_bytes + byte);
        copy_page(memory + chunk_bytes(i), im.base + pages[i] * page_bytes);
    }
}

// Waits for an empty slot and writes chunks meanwhile. Fails when the batch does.
ty_status take_slot(image &im, uint32_t *slot) {
    for (;;) {
        {
            os::lock_guard guard(im.work);
            if (im.writer.failing)
                return report_again(im.writer.error);
            *slot = im.writer.ring.take_empty();
            if (*slot != staging::none)
                return TY_OK;
            if (!im.writer.has_work()) {
                im.changed.wait(im.work);
                continue;
            }
        }
        writer_help(im);
    }
}

// I20: the redo points of several log streams are durable with their epoch.
void put_redo_point(chunk_header &header, const log_positions &redo_point) {
    header.log_position = redo_point.at[0].offset;
    header.log_generation = redo_point.at[0].generation;
    header.log_lsn = redo_point.lsn;
    if (redo_point.count == 1)
        return;
    header.flags |= chunk_has_streams;
    chunk_streams redo_points{redo_point.count, redo_point.at[0].lsn, {}, 0};
    for (uint64_t p = 1; p < redo_point.count; ++p)
        redo_points.more[p - 1] = redo_point.at[p];
    memcpy(&header.entries[chunk_pages_max_with_streams], &redo_points, sizeof redo_points);
}

// Passes a filled chunk on.
ty_status publish_chunk(image &im, uint32_t slot, uint32_t count, bool last) {
    batch_writer &writer = im.writer;
    auto *header = reinterpret_cast<chunk_header *>(writer.ring.slot_memory(slot));
    if (ty_status status = allocate_journal(im, writer.position + chunk_bytes(count)))
        return status;
    os::lock_guard guard(im.work);
    batch &b = *writer.target;
    if (ty_status status = b.copies.reserve(count))
        return status;
    header->magic = chunk_magic;
    header->version = format_version;
    memcpy(header->identity, im.identity, sizeof header->identity);
    header->epoch = b.epoch;
    header->nonce = b.nonce;
    header->previous_nonce = writer.previous_nonce;
    header->attempt = writer.attempt;
    header->index = writer.filled;
    header->flags = last ? chunk_last : 0;
    header->batch_pages = last ? b.copies.count() + count : 0;
    if (last)
        put_redo_point(*header, writer.redo_point);
    writer.ring.slots[slot] = {writer.position, b.copies.count(), count, staging::none};
    writer.ring.put(writer.ring.filled, slot);
    for (uint32_t i = 0; i < count; ++i)
        b.copies.push_in_room({header->entries[i].page, 0, writer.position + chunk_bytes(i)});
    writer.position += chunk_bytes(count);
    writer.filled += 1;
    writer.sealed = last;
    im.changed.notify_all();
    return TY_OK;
}

} // namespace

// Other threads may write to the page meanwhile (early write-back, fuzzy snapshots): a torn copy is then superseded
// by a later one, since the page was protected before it was copied, or by a log record of the store (I17: it is in the
// batch, or dirty again). So ThreadSanitizer ignores this function.
[[gnu::no_sanitize_thread]] void copy_page(char *to, const char *from) {
#if defined(__SANITIZE_THREAD__)
    for (size_t i = 0; i < page_bytes; i += sizeof(uint64_t))
        *reinterpret_cast<volatile uint64_t *>(to + i) = *reinterpret_cast<const volatile uint64_t *>(from + i);
#else
    memcpy(to, from, page_bytes);
#endif
}

ty_status staging::create(size_t bytes) {
    size_t count = bytes / staging_slot_bytes;
    count = count < slots_min ? slots_min : count;
    count = count < none ? count : none - 1;
    slot_count = static_cast<uint32_t>(count);
    slots = static_cast<staging_slot *>(os::internal_calloc(count, sizeof *slots));
    if (!slots)
        return failure(TY_E_MEMORY, "make a table of %zu staging slot%s", count, plural(count))
            .remedy("free memory, or raise the process's limits");
    if (ty_status status = memory.create_claimed(count * staging_slot_bytes, os::huge_page_bytes))
        return status;
    return memory.provide(slots_min * staging_slot_bytes);
}

void staging::destroy() {
    memory.destroy();
    free(slots);
    *this = {};
}

// In large steps, so that it is rare; in smaller ones where memory is short.
bool staging::has_memory(uint32_t slot) {
    size_t needed = (size_t{slot} + 1) * staging_slot_bytes;
    size_t before = memory.provided();
    if (needed <= before)
        return true;
    size_t roomy = std::min(needed + staging_step_bytes, size_t{slot_count} * staging_slot_bytes);
    if (memory.provide(roomy) != TY_OK && memory.provide(needed) != TY_OK)
        return false;
    os::advise_huge(memory.as<char>() + before, memory.provided() - before);
    return true;
}

uint32_t staging::take_empty() {
    uint32_t slot = empty;
    if (slot != none)
        empty = slots[slot].next;
    else if (touched < slot_count && has_memory(touched))
        slot = touched++;
    else
        return none;
    in_use += 1;
    most_in_use = in_use > most_in_use ? in_use : most_in_use;
    return slot;
}

void staging::put_empty(uint32_t slot) {
    slots[slot].next = empty;
    empty = slot;
    in_use -= 1;
}

void staging::put(line &to, uint32_t slot) {
    slots[slot].next = none;
    (to.first == none ? to.first : slots[to.last].next) = slot;
    to.last = slot;
}

uint32_t staging::take(line &from) {
    uint32_t slot = from.first;
    from.first = slots[slot].next;
    return slot;
}

void staging::clear(uint32_t keep) {
    touched = keep;
    empty = filled.first = summed.first = none;
    for (uint32_t slot = keep; slot-- > 0;) {
        slots[slot].next = empty;
        empty = slot;
    }
    in_use = most_in_use = 0;
}

ty_status writer_open(image &im, uint64_t pages, uint32_t rows) {
    uint64_t bytes = pages ? batch_bytes(im, pages, rows) : 0;
    uint64_t position = 0;
    for (;;) {
        {
            os::lock_guard guard(im.work);
            if (find_room(im, bytes, &position))
                break;
        }
        if (ty_status status = checkpoint_batches(im))
            return status;
    }
    if (ty_status status = allocate_journal(im, position + bytes))
        return status;
    batch *b = batch_create();
    if (!b)
        return TY_E_MEMORY;
    os::random_bytes(&b->nonce, sizeof b->nonce);
    os::lock_guard guard(im.work);
    while (im.writer.trimming)
        im.changed.wait(im.work);
    b->epoch = im.durable_epoch + 1;
    b->start = position;
    batch_writer &writer = im.writer;
    writer.open = true;
    writer.target = b;
    writer.previous_nonce = im.durable_nonce;
    writer.attempt += 1;
    writer.position = position;
    writer.bytes = 0;
    return TY_OK;
}

ty_status writer_add(image &im, const uint64_t *pages, uint64_t count, bool last, const char *copies) {
    batch_writer &writer = im.writer;
    uint64_t done = 0;
    do {
        uint32_t slot;
        if (ty_status status = take_slot(im, &slot))
            return status;
        auto n = uint32_t(std::min<uint64_t>(count - done, im.chunk_pages));
        fill_chunk(im, writer.ring.slot_memory(slot), pages + done, n, copies ? copies + done * page_bytes : nullptr);
        done += n;
        if (ty_status status = publish_chunk(im, slot, n, last && done == count))
            return status;
    } while (done < count); // once the last chunk is passed on, the batch is no longer this thread's
    return TY_OK;
}

namespace {

// Without a lock; this thread owns the slot.
void sum_chunk(const staging &ring, uint32_t slot) {
    char *memory = ring.slot_memory(slot);
    auto *header = reinterpret_cast<chunk_header *>(memory);
    for (uint32_t i = 0; i < ring.slots[slot].page_count; ++i)
        header->entries[i].sum = checksum(memory + chunk_bytes(i), page_bytes);
    header->checksum = header_checksum(*header);
}

// Writes a summed chunk and empties its slot. Under work, which is released meanwhile.
void write_chunk(image &im, uint32_t number) {
    batch_writer &writer = im.writer;
    const staging_slot *slot = &writer.ring.slots[number];
    const char *memory = writer.ring.slot_memory(number);
    const auto *header = reinterpret_cast<const chunk_header *>(memory);
    uint64_t bytes = chunk_bytes(slot->page_count);
    writer.writing += 1;
    im.work.unlock();
    ty_status status = im.journal.write(slot->offset, memory, bytes);
    im.work.lock();
    writer.writing -= 1;
    if (status && !writer.failing) {
        writer.failing = true;
        writer.error = keep_error();
    }
    if (!status) {
        for (uint32_t i = 0; i < slot->page_count; ++i)
            writer.target->copies[slot->first_copy + i].sum = header->entries[i].sum;
        writer.written += 1;
        writer.bytes += bytes;
        im.stats.journal_bytes += bytes;
    }
    writer.ring.put_empty(number);
}

} // namespace

bool writer_help(image &im) {
    os::lock_guard guard(im.work);
    batch_writer &writer = im.writer;
    if (!writer.has_work())
        return false;
    staging &ring = writer.ring;
    bool summed = ring.summed.first != staging::none && writer.may_write();
    uint32_t slot = ring.take(summed ? ring.summed : ring.filled);
    writer.active += 1;
    if (!summed) {
        im.work.unlock();
        sum_chunk(ring, slot);
        im.work.lock();
    }
    if (summed || (writer.may_write() && !writer.failing))
        write_chunk(im, slot);
    else
        ring.put(ring.summed, slot); // the thread that ends a write takes it
    writer.active -= 1;
    im.changed.notify_all();
    return true;
}

bool writer_ready(const batch_writer &writer) {
    return writer.open && writer.sealed && !writer.finishing && writer.active == 0 &&
           (writer.failing || writer.written == writer.filled);
}

namespace {

// I3, I9: makes the current batch durable, and first the journal's header that covers it.
ty_status flush_batch(image &im) {
    const uint64_t end = im.writer.allocated_end;
    journal_header next = im.head.header;
    if (end <= next.size_bytes && next.previous.number == 0 &&
        (!im.head.write_failed || fault("unflushed_journal_header_stays")))
        return im.journal.flush();
    if (end > im.head.sized_bytes) { // I9: a header that survives a power cut must not cover bytes that do not
        if (ty_status status = im.journal.flush())
            return status;
        im.head.sized_bytes = end;
    }
    next.previous = {};
    next.size_bytes = std::max(end, next.size_bytes);
    return write_journal_header(im.journal, im.head, next);
}

// A failed batch may stand complete in the journal. It was never acknowledged; but a process that reads it back could
// build on it, although no later flush makes durable what a failed one covered. So its first header is erased.
void invalidate_batch(const image &im) {
    io_buffer zeros;
    if (!zeros.create(page_bytes))
        (void)im.journal.write(im.writer.target->start, zeros.data(), page_bytes); // the first failure is reported
}

} // namespace

void writer_finish(image &im) {
    batch_writer &writer = im.writer;
    writer.finishing = true;
    bool failed = writer.failing;
    while (!failed && !im.open_named && im.checkpointing)
        im.changed.wait(im.work);
    bool names = !failed && !im.open_named &&
                 !(fault("first_batch_of_an_open_that_no_file_names") && im.head.header.number == 1);
    if (names)
        im.checkpointing = true; // this thread owns the image's header
    im.work.unlock();
    ty_status status = names ? name_open(im, nullptr) : TY_OK; // I8: named before anything is acknowledged
    if (!status && !failed)
        status = fault("journal_flush_left_out") ? TY_OK : flush_batch(im); // I3: acknowledged only after the flush
    if (!failed && !status)
        status = im.backing.check(); // without the image the journal is useless
    ty_error error = status ? keep_error() : ty_error{};
    failed = failed || status;
    if (failed && !fault("failed_batch_stays_whole"))
        invalidate_batch(im);
    im.work.lock();
    if (names)
        im.checkpointing = false;
    if (status) {
        writer.failing = true;
        writer.error = error;
        writer.allocated_end = im.head.sized_bytes; // allocate again what a failed flush covered
    }
    if (failed)
        batch_failed(im);
    else
        batch_durable(im);
    im.changed.notify_all();
}

void writer_trim(image &im) {
    batch_writer &writer = im.writer;
    constexpr uint32_t least = staging_keep_min_bytes / staging_slot_bytes;
    constexpr uint32_t most = staging_keep_max_bytes / staging_slot_bytes;
    uint32_t keep = writer.ring.wanted < least ? least : writer.ring.wanted > most ? most : writer.ring.wanted;
    uint32_t touched = writer.ring.touched;
    if (writer.open || writer.trimming || touched <= keep)
        return;
    writer.ring.clear(keep);
    writer.trimming = true;
    im.work.unlock();
    // A failure only leaves memory in use.
    (void)os::decommit(writer.ring.slot_memory(keep), size_t{touched - keep} * staging_slot_bytes);
    im.work.lock();
    writer.trimming = false;
    im.changed.notify_all();
}

void writer_abandon(image &im) {
    os::lock_guard guard(im.work);
    batch_writer &writer = im.writer;
    if (!writer.open)
        return;
    if (!writer.failing) {
        writer.failing = true;
        writer.error = keep_error();
    }
    while (writer.active || writer.finishing)
        im.changed.wait(im.work);
    if (writer.open)
        batch_failed(im);
    im.changed.notify_all();
}

} // namespace taiyen
