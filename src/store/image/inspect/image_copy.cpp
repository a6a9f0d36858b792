// Copies of image, journal and durable marks, taken while another process may write to them. docs/design/image.md,
// "Copies of files in use", explains why they belong together.
#include "../files/files.hpp"
#include "../image.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {
namespace {

constexpr uint64_t slots_bytes = 2 * page_bytes; // of the image's headers

} // namespace

struct image_copy {
    storage_file image, image_to;
    char *journal_path = nullptr;
    storage_file journal, journal_to;
    bool journal_copied = false; // the copies have a file for it
    bool current = false;        // except for new batches, if the headers are still the same
    char *marks_path = nullptr;  // of an open at a mark
    storage_file marks, marks_to;

    image_header header{};
    io_buffer slots;       // the header slots as they were copied, and room to compare
    io_buffer marks_slots; // likewise
    io_buffer buffer;
    journal_position newest{}; // batch that was copied
    image_log log{};           // as of that batch
};

namespace {

// Copies the pages that the image holds now, but did not hold when they were last read. The copy's table of page
// checksums shows what the copy holds (I21: the copies belong together).
class changed_pages {
public:
    explicit changed_pages(image_copy &copy) : copy_(copy) {}

    ty_status run() {
        if (ty_status status = begin())
            return status;
        const uint64_t end_of_pages = image_pages_offset + copy_.header.limit_bytes;
        for (uint64_t at = image_pages_offset; at < end_of_pages;) {
            uint64_t start = 0, end = 0;
            ty_status status = copy_.image.next_data(at, &start, &end);
            if (status == TY_E_NOT_FOUND)
                break;
            if (status)
                return status;
            at = std::max(at, start / page_bytes * page_bytes);
            end = std::min((end + page_bytes - 1) / page_bytes * page_bytes, end_of_pages);
            for (uint64_t bytes; at < end; at += bytes) {
                bytes = std::min(end - at, piece_pages * page_bytes);
                if ((status = bring(at, bytes / page_bytes)))
                    return status;
            }
        }
        return held_.write();
    }

private:
    // A copy of the same layout keeps its content.
    ty_status begin() {
        const uint64_t bytes = image_file_bytes(copy_.header.limit_bytes);
        uint64_t size = 0;
        if (ty_status status = copy_.image_to.get_size(&size))
            return status;
        if (size != bytes && size) // a limit was grown: the table lies elsewhere
            if (ty_status status = copy_.image_to.set_size(0))
                return status;
        if (size != bytes)
            if (ty_status status = copy_.image_to.set_size(bytes))
                return status;
        if (ty_status status = live_.start(copy_.image, copy_.header.sums_offset))
            return status;
        return held_.start(copy_.image_to, copy_.header.sums_offset);
    }

    ty_status bring(uint64_t offset, uint64_t count) {
        const uint64_t first = (offset - image_pages_offset) / page_bytes;
        bool differs = false;
        for (uint64_t page = first; page < first + count && !differs; ++page) {
            uint64_t live = 0, held = 0;
            if (ty_status status = live_.get(page, &live))
                return status;
            if (ty_status status = held_.get(page, &held))
                return status;
            differs = live == 0 || live != held;
        }
        if (!differs)
            return TY_OK;
        if (ty_status status = copy_.image.read(offset, copy_.buffer.data(), count * page_bytes))
            return status;
        if (ty_status status = copy_.image_to.write(offset, copy_.buffer.data(), count * page_bytes))
            return status;
        for (uint64_t i = 0; i < count; ++i)
            if (ty_status status = held_.set(first + i, checksum(copy_.buffer.data() + i * page_bytes, page_bytes)))
                return status;
        return TY_OK;
    }

    image_copy &copy_;
    page_sums live_, held_;
};

// The bytes [start, end) of the journal.
ty_status copy_journal_range(image_copy &copy, uint64_t start, uint64_t end) {
    for (uint64_t at = start, bytes; at < end; at += bytes) {
        bytes = std::min<uint64_t>(end - at, copy.buffer.bytes());
        if (ty_status status = copy.journal.read(at, copy.buffer.data(), bytes))
            return status;
        if (ty_status status = copy.journal_to.write(at, copy.buffer.data(), bytes))
            return status;
    }
    return TY_OK;
}

// The header's slots and these batches. The file is at least as long as a header that was read before says (I9).
ty_status copy_journal_parts(image_copy &copy, const batch_list &batches) {
    if (ty_status status = copy_journal_range(copy, 0, journal_front))
        return status;
    uint64_t size = 0;
    if (ty_status status = copy.journal.get_size(&size))
        return status;
    if (ty_status status = copy.journal_to.set_size(size))
        return status;
    for (const batch *b = batches.first; b; b = b->next)
        if (ty_status status = copy_journal_range(copy, b->start, b->end))
            return status;
    return TY_OK;
}

void note_newest(image_copy &copy, const batch_list &batches) {
    const batch *last = batches.last;
    copy.newest = last ? journal_position{last->epoch, last->nonce, last->end}
                       : journal_position{copy.header.epoch, copy.header.nonce, copy.header.journal_next};
    copy.log = log_of(copy.header, batches);
}

// The batches that the image may lack.
ty_status copy_journal(image_copy &copy, copied_files &copies) {
    journal_contents contents;
    ty_status status = read_journal(copy.journal, copy.journal_path, journal_use::look, copy.header, &contents);
    if (!status)
        note_newest(copy, contents.scan.batches);
    if (!status && !contents.missing && !copy.journal_copied) {
        status = copies.add(copy.journal_path, copy.journal.allocated_bytes(), &copy.journal_to);
        copy.journal_copied = !status;
    }
    if (!status && !contents.missing && !(status = copy.journal_to.set_size(0)))
        status = copy_journal_parts(copy, contents.scan.batches);
    contents.scan.batches.clear();
    copy.current = !status;
    return status;
}

ty_status find_new_batches(const image_copy &copy, journal_scan *scan) {
    return scan_journal(copy.journal, copy.header.identity, copy.newest, 0, copy.header.limit_bytes / page_bytes, scan);
}

// While the headers stay the same, only batches after those that were copied can be new.
ty_status copy_new_batches(image_copy &copy) {
    if (!copy.journal.is_open())
        return TY_OK;
    journal_scan scan;
    ty_status status = find_new_batches(copy, &scan);
    if (!status && scan.batches.last && !(status = copy_journal_parts(copy, scan.batches)))
        note_newest(copy, scan.batches);
    scan.batches.clear();
    return status;
}

// I21: they are read after the image, so that they have what each page was that a checkpoint has overwritten meanwhile.
ty_status copy_marks(image_copy &copy, copied_files &copies) {
    uint64_t size = 0;
    copy.marks.close();
    ty_status status = copy.marks.open(copy.marks_path, 0);
    if (status == TY_E_NOT_FOUND && !copy.marks_to.is_open())
        return TY_OK; // no marks
    if (!status)
        status = copy.marks.read(0, copy.marks_slots.data(), slots_bytes);
    if (!status)
        status = copy.marks.get_size(&size);
    if (!status && !copy.marks_to.is_open())
        status = copies.add(copy.marks_path, copy.marks.allocated_bytes(), &copy.marks_to);
    if (!status)
        status = copy.marks_to.set_size(size);
    for (uint64_t at = 0, bytes; at < size && !status; at += bytes) {
        bytes = std::min<uint64_t>(size - at, copy.buffer.bytes());
        if (!(status = copy.marks.read(at, copy.buffer.data(), bytes)))
            status = copy.marks_to.write(at, copy.buffer.data(), bytes);
    }
    return status;
}

ty_status refuse_archive(const image_copy &copy) {
    return failure(TY_E_BUSY, "copy the files of an archive heap that is open: its pages change at any moment")
        .at(copy.image.path)
        .remedy("close it there first (process %llu opened it)", (unsigned long long)copy.header.owner_process);
}

ty_status read_slots(const image_copy &copy, char *to) {
    return copy.image.read(0, to, slots_bytes);
}

// log_end is where the copy of the log ends. The log is overwritten only before the redo point of a durable batch (L1):
// so if the newest batch has its redo point after that end, the copy may lack frames.
ty_status log_may_be_cut(image_copy &copy, const log_positions &log_end, bool *cut) {
    journal_scan scan;
    ty_status status = find_new_batches(copy, &scan);
    *cut = false;
    if (const batch *newest = scan.batches.last)
        for (uint64_t p = 0; p < newest->redo_point.count; ++p)
            *cut = *cut ||
                   (newest->redo_point.at[p].offset > log_end.at[p].offset && !fault("copy_misses_an_overwritten_log"));
    scan.batches.clear();
    return status;
}

} // namespace

ty_status image_copy_begin(const char *path, const ty_open_options &options, copied_files &copies, image_copy **begun) {
    void *memory = os::internal_malloc(sizeof(image_copy));
    if (!memory)
        return failure(TY_E_MEMORY, "copy the files of a heap")
            .at(path)
            .remedy("free memory, or raise the process's limits");
    auto *copy = new (memory) image_copy{};
    *begun = copy;
    copy->image.storage = copy->journal.storage = copy->marks.storage = options.storage;
    if (ty_status status = resolve_journal(*options.storage, path, options.journal_path, &copy->journal_path))
        return status;
    if (ty_status status = copy->slots.create(2 * slots_bytes))
        return status;
    if (ty_status status = copy->buffer.create(piece_pages * page_bytes))
        return status;
    if (options.mark != nullptr) {
        if (ty_status status = copy->marks_slots.create(2 * slots_bytes))
            return status;
        if (!(copy->marks_path = path_with(path, marks_suffix)))
            return TY_E_MEMORY;
    }
    if (ty_status status = copy->image.open(path, 0))
        return status;
    ask_to_put_off(copy->image); // without it the copy may take more rounds
    return copies.add(path, copy->image.allocated_bytes(), &copy->image_to);
}

namespace {

ty_status take_all(image_copy &copy, copied_files &copies) {
    copy.current = false;
    copy.journal.close();
    if (ty_status status = read_slots(copy, copy.slots.data()))
        return status;
    bool repaired = false;
    if (ty_status status = read_header(copy.image, &copy.header, &repaired))
        return status;
    if (!has_journal(ty_kind(copy.header.kind)))
        return refuse_archive(copy);
    if (ty_status status = changed_pages(copy).run())
        return status;
    if (ty_status status = copy.image_to.write(0, copy.slots.data(), slots_bytes))
        return status;
    return copy_journal(copy, copies);
}

ty_status slots_unchanged(const storage_file &file, io_buffer &slots, bool *same) {
    char *now = slots.data() + slots_bytes;
    if (ty_status status = file.read(0, now, slots_bytes))
        return status;
    *same = !memcmp(now, slots.data(), slots_bytes);
    return TY_OK;
}

ty_status marks_unchanged(image_copy &copy, bool *same) {
    *same = true;
    return copy.marks.is_open() && !fault("copied_marks_not_looked_at_again")
               ? slots_unchanged(copy.marks, copy.marks_slots, same)
               : TY_OK;
}

} // namespace

ty_status image_copy_take(image_copy &copy, copied_files &copies, image_log *log) {
    bool same = false;
    if (ty_status status = copy.current ? image_copy_unchanged(copy, &same) : TY_OK)
        return status;
    ty_status status = same ? copy_new_batches(copy) : take_all(copy, copies);
    if (!status && copy.marks_path)
        status = copy_marks(copy, copies);
    *log = copy.log;
    return status;
}

ty_status image_copy_check(image_copy &copy, const log_positions *log_end, bool *whole) {
    *whole = false;
    bool cut = false;
    if (copy.journal.is_open() && log_end)
        if (ty_status status = log_may_be_cut(copy, *log_end, &cut); status || cut)
            return status;
    if (ty_status status = image_copy_unchanged(copy, whole); status || !*whole)
        return status;
    return marks_unchanged(copy, whole);
}

ty_status image_copy_unchanged(image_copy &copy, bool *same) {
    if (ty_status status = slots_unchanged(copy.image, copy.slots, same))
        return status;
    *same = *same || fault("copy_misses_a_checkpoint");
    return TY_OK;
}

ty_status image_copy_make_durable(image_copy &copy) {
    ty_status status = copy.journal.is_open() ? copy.journal.flush() : TY_OK;
    return !status && copy.marks.is_open() ? copy.marks.flush() : status;
}

void image_copy_end(image_copy *copy) {
    if (!copy)
        return;
    copy->marks.close();
    copy->journal.close();
    copy->image.close();
    free(copy->marks_path);
    free(copy->journal_path);
    copy->~image_copy();
    free(copy);
}

} // namespace taiyen
