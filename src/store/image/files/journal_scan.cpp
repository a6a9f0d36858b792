// Finding the batches of a journal: what a reader accepts, and what it refuses.
#include "checksum.hpp"
#include "journal.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

// What a reader expects of a batch.
struct expectation {
    const uint8_t *identity;
    uint64_t epoch;
    uint64_t previous_nonce;
    uint64_t page_limit;
};

struct candidate {
    batch *found = nullptr; // complete
    bool started = false;   // its first chunk's header was found
    uint64_t attempt = 0;
    uint64_t nonce = 0;
    uint64_t end = 0;
    uint64_t damage_offset = 0; // of the first thing that is wrong
};

bool header_is_whole(const chunk_header &header) {
    return header.magic == chunk_magic && header.checksum == header_checksum(header);
}

bool header_is_sound(const chunk_header &header) {
    return header_is_whole(header) && header.version == format_version &&
           header.count <= (header.flags & chunk_has_streams ? chunk_pages_max_with_streams : chunk_pages_max);
}

chunk_streams redo_points_in(const chunk_header &header) {
    chunk_streams redo_points{};
    if (header.flags & chunk_has_streams)
        memcpy(&redo_points, &header.entries[chunk_pages_max_with_streams], sizeof redo_points);
    return redo_points;
}

log_positions redo_point_of(const chunk_header &header) {
    const chunk_streams redo_points = redo_points_in(header);
    log_positions redo_point = positions_at_begin(header.log_lsn, redo_points.streams);
    redo_point.at[0].offset = header.log_position;
    redo_point.at[0].generation = header.log_generation;
    if (redo_point.count > 1)
        redo_point.at[0].lsn = redo_points.first_lsn;
    for (uint64_t p = 1; p < redo_point.count; ++p)
        redo_point.at[p] = redo_points.more[p - 1];
    return redo_point;
}

bool redo_points_possible(const chunk_streams &redo_points) {
    uint64_t highest = redo_points.first_lsn;
    for (const stream_position &place : redo_points.more)
        highest = std::max({highest, place.offset, place.lsn});
    return redo_points.streams <= log_streams_max && highest <= counter_max;
}

// A chunk that counts, or would if this library knew its version: the chain must not seem to end there.
bool is_other_version(const chunk_header &header, const expectation &expected) {
    return header.version != format_version && header.epoch >= expected.epoch &&
           !memcmp(header.identity, expected.identity, sizeof header.identity) && header_is_whole(header);
}

ty_status refuse_version(const storage_file &journal, const chunk_header &header, uint64_t offset) {
    return failure(TY_E_FORMAT, "read a snapshot of format version %u from the journal", header.version)
        .at(journal.path, offset)
        .remedy("open the heap with the version of the library that wrote it, and close it");
}

// A valid checksum only says that the bytes are as written. The epoch is the expected one.
ty_status check_counters(const storage_file &journal, const chunk_header &header, uint64_t offset) {
    if (header.epoch <= counter_max && header.attempt <= counter_max && header.log_position <= counter_max &&
        header.log_lsn <= counter_max && redo_points_possible(redo_points_in(header)))
        return TY_OK;
    return failure(TY_E_DAMAGED, "restore epoch %llu: its numbers in the journal are impossible",
                   (unsigned long long)header.epoch)
        .at(journal.path, offset)
        .remedy("restore image and journal from a copy");
}

// Whether a chunk's header continues the batch that started with `first`.
bool continues(const chunk_header &header, const chunk_header &first, uint32_t index) {
    return header_is_sound(header) && header.nonce == first.nonce && header.epoch == first.epoch &&
           header.index == index && !memcmp(header.identity, first.identity, sizeof header.identity);
}

bool begins(const chunk_header &header, const expectation &expected) {
    return header_is_sound(header) && header.index == 0 && header.epoch == expected.epoch &&
           (header.previous_nonce == expected.previous_nonce || fault("batch_of_another_history_accepted")) &&
           !memcmp(header.identity, expected.identity, sizeof header.identity);
}

// Adds a chunk's pages; false: a page does not match its entry, or the entry is impossible.
bool add_pages(const chunk_header &header, const char *pages, uint64_t offset, uint64_t page_limit, batch *b,
               uint64_t *damage_offset) {
    for (uint32_t i = 0; i < header.count; ++i) {
        const chunk_entry &entry = header.entries[i];
        if (entry.page >= page_limit ||
            (checksum(pages + i * page_bytes, page_bytes) != entry.sum && !fault("page_checksum_not_checked"))) {
            *damage_offset = offset + i * page_bytes;
            return false;
        }
        b->copies.push_in_room({entry.page, entry.sum, offset + i * page_bytes});
    }
    return true;
}

// Reads chunks into the batch; result->found: it is whole.
ty_status read_chunks(const storage_file &journal, uint64_t size, const expectation &expected, io_buffer &buffer,
                      batch *b, candidate *result) {
    bool pages_whole = true;
    chunk_header first{};
    uint64_t offset = b->start;
    for (uint32_t index = 0;; ++index) {
        result->damage_offset = pages_whole ? offset : result->damage_offset;
        uint64_t readable = offset < size ? (size - offset) / page_bytes * page_bytes : 0;
        if (readable > buffer.bytes())
            readable = buffer.bytes();
        if (readable < page_bytes)
            break;
        // Read the header alone first: usually there is no chunk, and the rest of the buffer stays untouched.
        if (ty_status status = journal.read(offset, buffer.data(), page_bytes))
            return status;
        chunk_header header;
        memcpy(&header, buffer.data(), sizeof header);
        if (is_other_version(header, expected))
            return refuse_version(journal, header, offset);
        if (index == 0 ? !begins(header, expected) : !continues(header, first, index))
            break;
        if (ty_status status = check_counters(journal, header, offset))
            return status;
        if (index == 0) {
            first = header;
            result->started = true;
            result->attempt = header.attempt;
            result->nonce = b->nonce = header.nonce;
        }
        if (readable < chunk_bytes(header.count))
            break; // cut off
        ty_status status = b->copies.reserve(header.count);
        if (!status)
            status = journal.read(offset + page_bytes, buffer.data() + page_bytes, header.count * page_bytes);
        if (status)
            return status;
        pages_whole = pages_whole && add_pages(header, buffer.data() + page_bytes, offset + page_bytes,
                                               expected.page_limit, b, &result->damage_offset);
        offset += chunk_bytes(header.count);
        if (header.flags & chunk_last) {
            result->end = b->end = offset;
            b->redo_point = redo_point_of(header);
            if (pages_whole && header.batch_pages == b->copies.count()) {
                result->found = b;
                return TY_OK;
            }
            break;
        }
    }
    return TY_OK;
}

// Reads the batch that may stand at `position`.
ty_status read_candidate(const storage_file &journal, uint64_t position, uint64_t size, const expectation &expected,
                         io_buffer &buffer, candidate *result) {
    batch *b = batch_create();
    if (!b)
        return TY_E_MEMORY;
    b->epoch = expected.epoch;
    b->start = position;
    ty_status status = read_chunks(journal, size, expected, buffer, b, result);
    if (!result->found)
        batch_destroy(b);
    return status;
}

// A chunk that contradicts the end of the chain: of a later epoch, or of another history of snapshots.
struct contradiction {
    uint64_t epoch = 0; // 0: none
    uint64_t offset = 0;
};

// A batch is begun only when the one before it is durable. So if a chunk of a later epoch stands after the place of
// the expected batch, that batch was acknowledged, and what is wrong with it is damage. Its own first header may be
// lost: then the next valid header, of the same batch or of the next, is at most one chunk away.
ty_status find_contradiction(const storage_file &journal, uint64_t place, uint64_t size, const expectation &expected,
                             io_buffer &buffer, contradiction *found) {
    constexpr uint64_t scan_bytes = uint64_t{256} << 10;
    const uint64_t reach = chunk_bytes(chunk_pages_max) + page_bytes; // a chunk, and the header after it
    uint64_t end = place + reach;
    for (uint64_t at = place; at < end && at + page_bytes <= size;) {
        uint64_t readable = std::min<uint64_t>((std::min(end, size) - at) / page_bytes * page_bytes, scan_bytes);
        if (ty_status status = journal.read(at, buffer.data(), readable))
            return status;
        uint64_t next = at + readable;
        for (uint64_t i = 0; i < readable; i += page_bytes) {
            chunk_header header;
            memcpy(&header, buffer.data() + i, sizeof header);
            if (is_other_version(header, expected))
                return refuse_version(journal, header, at + i);
            if (!header_is_sound(header) || memcmp(header.identity, expected.identity, sizeof header.identity))
                continue;
            bool other_history = header.epoch == expected.epoch && header.previous_nonce != expected.previous_nonce;
            if ((header.epoch > expected.epoch && !fault("damaged_batch_taken_for_the_end")) || other_history) {
                *found = {header.epoch, at + i};
                return TY_OK;
            }
            if (header.epoch == expected.epoch) { // continue after it
                next = at + i + chunk_bytes(header.count);
                end = next + reach;
                break;
            }
        }
        at = next;
    }
    return TY_OK;
}

failure damaged_batch(const storage_file &journal, uint64_t epoch, uint64_t offset) {
    return failure(TY_E_DAMAGED, "restore epoch %llu, which was acknowledged: its batch in the journal is damaged",
                   (unsigned long long)epoch)
        .at(journal.path, offset)
        .remedy("restore image and journal from a copy");
}

} // namespace

// I3: an incomplete batch is not believed, unless it is known to have been acknowledged: then it is damage.
ty_status scan_journal(const storage_file &journal, const uint8_t identity[16], journal_position from,
                       uint64_t durable_epoch, uint64_t page_limit, journal_scan *scan) {
    uint64_t size = 0;
    if (ty_status status = journal.get_size(&size))
        return status;
    io_buffer buffer;
    if (ty_status status = buffer.create(chunk_bytes(chunk_pages_max)))
        return status;
    for (journal_position at = from;;) {
        expectation expected{identity, at.epoch + 1, at.nonce, page_limit};
        uint64_t places[2] = {at.next, journal_front};
        int place_count = at.next == journal_front ? 1 : 2;
        candidate candidates[2];
        candidate *best = nullptr;
        ty_status status = TY_OK;
        for (int i = 0; i < place_count && !status; ++i) {
            candidate &c = candidates[i];
            status = read_candidate(journal, places[i], size, expected, buffer, &c);
            if (c.found && (!best || c.attempt > best->attempt))
                best = &c;
        }
        for (int i = 0; i < place_count; ++i)
            if (candidates[i].found && &candidates[i] != best)
                batch_destroy(candidates[i].found);
        if (status) {
            if (best)
                batch_destroy(best->found);
            return status;
        }
        if (best) {
            scan->batches.append(best->found);
            at = {expected.epoch, best->nonce, best->end};
            continue;
        }
        // The chain ends here. Is that its end, or damage?
        for (int i = 0; i < place_count; ++i) {
            const candidate &c = candidates[i];
            scan->discarded += c.started;
            if (c.started && expected.epoch <= durable_epoch)
                return damaged_batch(journal, expected.epoch, c.damage_offset);
            contradiction later;
            if ((status = find_contradiction(journal, places[i], size, expected, buffer, &later)))
                return status;
            if (later.epoch && !c.started && later.offset == places[i])
                return failure(TY_E_MISMATCH,
                               "continue the image from epoch %llu: the journal has %llu, of another history",
                               (unsigned long long)at.epoch, (unsigned long long)later.epoch)
                    .at(journal.path, later.offset)
                    .remedy("one of the two files is an older copy: restore both from copies made together");
            if (later.epoch)
                return damaged_batch(journal, expected.epoch, c.started ? c.damage_offset : places[i]);
        }
        if (at.epoch < durable_epoch)
            return damaged_batch(journal, expected.epoch, at.next);
        return TY_OK;
    }
}

ty_status journal_goes_on(const storage_file &journal, const uint8_t identity[16], journal_position from, bool *more) {
    const expectation expected{identity, from.epoch + 1, from.nonce, 0};
    uint64_t size = 0;
    *more = false;
    if (ty_status status = journal.get_size(&size))
        return status;
    for (const uint64_t place : {from.next, journal_front}) {
        io_page page;
        chunk_header header;
        if (place + sizeof page > size)
            continue;
        if (ty_status status = journal.read(place, page.bytes, sizeof page))
            return status;
        memcpy(&header, page.bytes, sizeof header);
        *more = *more || begins(header, expected) || is_other_version(header, expected);
    }
    return TY_OK;
}

namespace {

constexpr uint64_t scanned_pages = 256; // at once

// What cannot be read becomes zeros.
void read_what_can_be(const storage_file &journal, uint64_t offset, char *pages, uint64_t count) {
    if (!journal.read(offset, pages, count * page_bytes))
        return;
    for (uint64_t i = 0; i < count; ++i)
        if (journal.read(offset + i * page_bytes, pages + i * page_bytes, page_bytes))
            memset(pages + i * page_bytes, 0, page_bytes);
}

// sums: of the pages after it.
bool is_table(const chunk_header &header, const uint64_t *sums, uint64_t count) {
    for (uint64_t i = 0; i < std::min<uint64_t>(count, chunk_pages_max); ++i)
        if (header.entries[i].sum && header.entries[i].sum == sums[i])
            return true;
    return false;
}

} // namespace

ty_status find_later_entries(const storage_file &journal, uint64_t epoch, uint64_t page_limit, const entry_sink &sink) {
    uint64_t size = 0;
    if (ty_status status = journal.get_size(&size))
        return status;
    io_buffer buffer;
    if (ty_status status = buffer.create((scanned_pages + chunk_pages_max) * page_bytes))
        return status;
    uint64_t sums[scanned_pages + chunk_pages_max];
    for (uint64_t first = 0; first < size / page_bytes; first += scanned_pages) {
        const uint64_t count = std::min(size / page_bytes - first, scanned_pages + chunk_pages_max);
        read_what_can_be(journal, first * page_bytes, buffer.data(), count);
        for (uint64_t i = 0; i < count; ++i)
            sums[i] = checksum(buffer.data() + i * page_bytes, page_bytes);
        for (uint64_t i = 0; i < std::min(count, scanned_pages); ++i) {
            chunk_header header;
            memcpy(&header, buffer.data() + i * page_bytes, sizeof header);
            if (header_is_whole(header) ? header.epoch <= epoch : !is_table(header, sums + i + 1, count - i - 1))
                continue;
            for (const chunk_entry &entry : header.entries)
                if (entry.sum && entry.page < page_limit)
                    if (ty_status status = sink.entry(sink.context, entry))
                        return status;
        }
    }
    return TY_OK;
}

} // namespace taiyen
