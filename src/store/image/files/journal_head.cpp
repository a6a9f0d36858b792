// The journal's header: which image, and which open of it, the journal belongs to.
#include "checksum.hpp"
#include "headers.hpp"
#include "journal.hpp"

#include <cstring>

namespace taiyen {
namespace {

enum class journal_slot_content { nothing, foreign, other_version, damaged, valid };

struct slot {
    journal_slot_content content = journal_slot_content::nothing;
    journal_header header{};
};

slot classify_slot(const char *page) {
    slot result;
    memcpy(&result.header, page, sizeof result.header);
    const journal_header &header = result.header;
    static constexpr journal_header zeros{};
    if (header.magic != journal_magic)
        result.content =
            memcmp(&header, &zeros, sizeof zeros) ? journal_slot_content::foreign : journal_slot_content::nothing;
    else if (header.version != format_version)
        result.content = journal_slot_content::other_version;
    else
        result.content =
            header.checksum == header_checksum(header) ? journal_slot_content::valid : journal_slot_content::damaged;
    return result;
}

// Reads as much of the slots as the file has.
ty_status read_slots(const storage_file &journal, uint64_t file_bytes, slot slots[header_slots]) {
    io_buffer buffer;
    if (ty_status status = buffer.create(journal_front))
        return status;
    uint64_t bytes = file_bytes < journal_front ? file_bytes / page_bytes * page_bytes : journal_front;
    if (bytes)
        if (ty_status status = journal.read(0, buffer.data(), bytes))
            return status;
    for (uint32_t i = 0; (i + 1) * journal_slot_bytes <= bytes; ++i)
        slots[i] = classify_slot(buffer.data() + i * journal_slot_bytes);
    return TY_OK;
}

// header_slots if no slot is valid.
uint32_t newest_valid(const slot slots[header_slots]) {
    return newest_slot(
        [slots](uint32_t n) { return slots[n].content == journal_slot_content::valid ? slots[n].header.number : 0; });
}

const char *remedy_for(const image_header &image, const char *otherwise) {
    return is_clean(image) ? "the heap was closed in order and does not need it: move it away, and open again"
                           : otherwise;
}
constexpr const char *restore_both = "put the journal of the heap's last open back, name it with journal_path, or "
                                     "restore all files of the heap from copies made together";

// Returns the reason why no slot is valid.
ty_status refuse_unreadable(const storage_file &journal, const image_header &image, const slot slots[header_slots]) {
    for (uint32_t i = 0; i < header_slots; ++i)
        if (slots[i].content == journal_slot_content::other_version)
            return failure(TY_E_FORMAT, "use a journal of format version %u, which this library does not know",
                           slots[i].header.version)
                .at(journal.path, 0)
                .remedy("use another version of the library");
    if (slots[0].content == journal_slot_content::foreign && slots[1].content != journal_slot_content::damaged)
        return failure(TY_E_FORMAT, "use a file that is not a Taiyen journal")
            .at(journal.path, 0)
            .remedy("check the path");
    return failure(TY_E_DAMAGED, "use a journal with a damaged header")
        .at(journal.path, 0)
        .remedy("%s", remedy_for(image, restore_both));
}

ty_status refuse_other_heap(const storage_file &journal) {
    return failure(TY_E_MISMATCH, "use the journal of another heap")
        .at(journal.path, 0)
        .remedy("put the journal that belongs to the image in its place");
}

ty_status refuse_older(const storage_file &journal) {
    return failure(TY_E_MISMATCH, "use a journal that is older than its image")
        .at(journal.path, 0)
        .remedy("%s", restore_both);
}

// I8: the files name the open that wrote them. The image is not what the journal's last open left.
ty_status refuse_other_open(const storage_file &journal, const image_header &image, const journal_header &header) {
    if (header.open.number < image.open.number)
        return refuse_older(journal);
    if (header.open.number > image.open.number)
        return failure(TY_E_MISMATCH, "use an image that is older than its journal")
            .at(journal.path, 0)
            .remedy("put the newest image back, or restore all files of the heap from copies made together");
    return failure(TY_E_MISMATCH, "use the journal of another copy of this heap")
        .at(journal.path, 0)
        .remedy("%s", restore_both);
}

ty_status refuse_cut(const storage_file &journal, const image_header &image, uint64_t bytes, uint64_t wanted) {
    return failure(TY_E_DAMAGED, "use a journal that was cut short: it has %llu byte%s of %llu",
                   (unsigned long long)bytes, plural(bytes), (unsigned long long)wanted)
        .at(journal.path, bytes)
        .remedy("%s", remedy_for(image, restore_both));
}

ty_status check_numbers(const storage_file &journal, const journal_header &header) {
    if (header.number <= counter_max && header.open.number <= counter_max && header.size_bytes <= INT64_MAX)
        return TY_OK;
    return failure(TY_E_DAMAGED, "use the journal's header: its numbers are impossible")
        .at(journal.path, 0)
        .remedy("%s", restore_both);
}

// Checks a valid header of this version.
ty_status check_header(const storage_file &journal, const image_header &image, const journal_header &header,
                       uint64_t file_bytes, journal_fit *fit) {
    if (memcmp(header.identity, image.identity, sizeof header.identity))
        return refuse_other_heap(journal);
    if (ty_status status = check_numbers(journal, header))
        return status;
    if (!names_open(header, image.open)) {
        *fit = journal_fit::superseded;
        return is_clean(image) && header.open.number < image.open.number ? TY_OK
                                                                         : refuse_other_open(journal, image, header);
    }
    uint64_t wanted = header.size_bytes > journal_front && !fault("journal_that_was_cut_passes_for_a_crash")
                          ? header.size_bytes
                          : journal_front; // I9: acknowledged batches lie before it
    if (file_bytes >= wanted)
        return TY_OK;
    *fit = journal_fit::superseded;
    return is_clean(image) ? TY_OK : refuse_cut(journal, image, file_bytes, wanted);
}

} // namespace

ty_status write_first_header(const storage_file &journal, const image_header &image, journal_head *head) {
    io_buffer buffer;
    if (ty_status status = buffer.create(journal_front))
        return status;
    journal_header header{};
    header.magic = journal_magic;
    header.version = format_version;
    memcpy(header.identity, image.identity, sizeof header.identity);
    header.number = 1;
    header.open = image.open;
    header.size_bytes = journal_front;
    header.checksum = header_checksum(header);
    for (uint32_t i = 0; i < header_slots; ++i)
        memcpy(buffer.data() + i * journal_slot_bytes, &header, sizeof header);
    *head = {header, 0, journal_front, false};
    return journal.write(0, buffer.data(), buffer.bytes());
}

ty_status write_journal_header(const storage_file &journal, journal_head &head, const journal_header &next) {
    journal_header header = next;
    header.number = head.header.number + 1;
    header.checksum = header_checksum(header);
    io_page page;
    static_assert(sizeof page == journal_slot_bytes);
    memcpy(page.bytes, &header, sizeof header);
    head.write_failed = true;
    if (ty_status status = journal.write(head.next_slot * journal_slot_bytes, page.bytes, sizeof page))
        return status;
    if (ty_status status = journal.flush())
        return status;
    head.header = header;
    head.next_slot = 1 - head.next_slot;
    head.write_failed = false;
    return TY_OK;
}

// I10: the slot to overwrite next is one without which the journal can be read.
ty_status read_journal_head(const storage_file &journal, const image_header &image, journal_head *head,
                            journal_fit *fit) {
    *fit = journal_fit::fits;
    uint64_t file_bytes = 0;
    if (ty_status status = journal.get_size(&file_bytes))
        return status;
    if (file_bytes == 0 && is_clean(image)) {
        *fit = journal_fit::superseded;
        return TY_OK;
    }
    if (file_bytes < page_bytes)
        return refuse_cut(journal, image, file_bytes, journal_front);
    slot slots[header_slots];
    if (ty_status status = read_slots(journal, file_bytes, slots))
        return status;
    uint32_t best = newest_valid(slots);
    if (best == header_slots)
        return refuse_unreadable(journal, image, slots);
    // The header that was read may be unflushed: it can be overwritten if the other one suffices. If the other one
    // would not, this one is durable: the image was written, or the file cut, after its flush.
    const slot &other = slots[1 - best];
    bool other_would_do = other.content == journal_slot_content::valid && names_open(other.header, image.open) &&
                          other.header.size_bytes <= file_bytes;
    head->header = slots[best].header;
    head->next_slot = slot_to_write(best, other_would_do || fault("newest_journal_header_overwritten"));
    head->sized_bytes = head->header.size_bytes;
    head->other_slot_damaged = other.content != journal_slot_content::valid;
    return check_header(journal, image, head->header, file_bytes, fit);
}

ty_status read_journal_trace(const storage_file &journal, bool log_is_empty, journal_trace *trace) {
    *trace = {};
    uint64_t file_bytes = 0;
    if (ty_status status = journal.get_size(&file_bytes); status || file_bytes == 0)
        return status;
    slot slots[header_slots];
    if (ty_status status = read_slots(journal, file_bytes, slots))
        return status;
    uint32_t best = newest_valid(slots);
    if (best == header_slots) {
        if (slots[0].content == journal_slot_content::nothing && fault("short_file_of_somebody_replaced"))
            return TY_OK;
        if (slots[0].content == journal_slot_content::nothing) // whatever created it, it was not this library
            slots[0].content = journal_slot_content::foreign;
        return refuse_unreadable(journal, image_header{}, slots);
    }
    const journal_header &header = slots[best].header;
    // The first batch changes the header, as closing does. A header that names an open and took no batch may be of a
    // heap all of whose changes are in its log; without a log, a failed creation left it, and the heap had nothing.
    uint64_t writes_before = log_is_empty && header.previous.number ? 2 : 1;
    trace->found = true;
    trace->used = header.number > writes_before;
    memcpy(trace->heap_identity, header.identity, sizeof trace->heap_identity);
    return TY_OK;
}

ty_status check_no_journal(const ty_storage &storage, const char *path, const image_header &image) {
    storage_file journal{&storage};
    if (ty_status status = journal.open(path, 0))
        return status == TY_E_NOT_FOUND ? TY_OK : status;
    journal_trace trace;
    ty_status status = read_journal_trace(journal, false, &trace);
    journal.close();
    if (status || !trace.used || memcmp(trace.heap_identity, image.identity, sizeof trace.heap_identity))
        return status == TY_E_FORMAT || status == TY_E_DAMAGED ? TY_OK : status; // nothing of this heap
    return failure(TY_E_MISMATCH, "open an image that is older than its journal")
        .at(path)
        .remedy("put the newest image back, or move the journal away");
}

ty_status read_journal(storage_file &journal, const char *path, journal_use use, const image_header &image,
                       journal_contents *contents) {
    ty_status status = journal.open(path, use == journal_use::write ? TY_FILE_WRITE : 0);
    if (status == TY_E_NOT_FOUND && is_clean(image)) {
        contents->missing = true;
        return TY_OK;
    }
    if (status == TY_E_NOT_FOUND)
        return failure(TY_E_MISMATCH, "open a heap without its journal: it may hold snapshots that the image does not")
            .at(path)
            .remedy("put the journal back, or name it with journal_path");
    if (!status && use != journal_use::look)
        status = journal.lock(use == journal_use::write);
    if (status)
        return status;
    journal_fit fit = journal_fit::fits;
    if ((status = read_journal_head(journal, image, &contents->head, &fit)))
        return status;
    if (fit == journal_fit::superseded) {
        contents->missing = true;
        journal.close();
        return TY_OK;
    }
    return scan_journal(journal, image.identity, {image.epoch, image.nonce, image.journal_next}, image.durable_epoch,
                        image.limit_bytes / page_bytes, &contents->scan);
}

} // namespace taiyen
