// A new image from a damaged one and its journal: the last good epoch, and what is wrong with it.
//
// Nothing in the files is believed unless its checksum confirms it, or it cannot be checked at all: bytes of a damaged
// page are taken as they are, and reported.
#include "../files/files.hpp"
#include "../image.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

// The damaged files, read as far as they make sense.
struct damaged_files {
    storage_file image;
    storage_file journal;
    char *journal_path = nullptr;
    image_header header{};
    bool uncertain = false;
    uint64_t image_bytes = 0;
    journal_scan scan;          // batches up to the last good epoch
    bool journal_whole = false; // it is the image's, and as far as can be seen lacks no batch that it held

    explicit damaged_files(const ty_storage &storage) : image{&storage}, journal{&storage} {}
    damaged_files(const damaged_files &) = delete;
    damaged_files &operator=(const damaged_files &) = delete;
    ~damaged_files() {
        scan.batches.clear();
        journal.close();
        image.close();
        free(journal_path);
    }
};

struct problem_reporter {
    const salvage_sinks &sinks;
    uint64_t count = 0;

    void report(const char *text) {
        ++count;
        if (sinks.problem)
            sinks.problem(text, sinks.context);
    }
    static void report(void *self, const char *text) { static_cast<problem_reporter *>(self)->report(text); }
};

// Whether the image is the heap, whatever its journal holds.
bool needs_no_journal(const damaged_files &files) {
    return !files.uncertain && is_clean(files.header);
}

// Anything wrong with the journal ends the chain of batches, and is reported.
void read_uncertain_journal(damaged_files &files, problem_reporter &problems) {
    const image_header &header = files.header;
    if (files.journal.open(files.journal_path, 0)) {
        if (!needs_no_journal(files))
            problems.report(ty_error_text());
        return;
    }
    journal_head head;
    journal_fit fit = journal_fit::fits;
    files.journal_whole = true;
    if (read_journal_head(files.journal, header, &head, &fit)) {
        problems.report(ty_error_text());
        files.journal_whole = false;
    }
    if (scan_journal(files.journal, header.identity, {header.epoch, header.nonce, header.journal_next},
                     header.durable_epoch, header.limit_bytes / page_bytes, &files.scan)) {
        problems.report(ty_error_text());
        files.journal_whole = false;
    }
}

// I22: a page not reported is what its checksum says. While batches are checkpointed, the image has pages of newer
//      epochs than its headers say; it is of one moment only with all of these batches.
bool may_be_mixed(const damaged_files &files) {
    if (!has_journal(ty_kind(files.header.kind)))
        return files.uncertain || files.header.state != uint32_t(image_state::closed);
    return !needs_no_journal(files) &&
           (files.uncertain || (!files.journal_whole && !fault("mixture_of_snapshots_not_reported")));
}

// A number that changes with anything that decides which epoch is the last good one.
uint64_t state_of(const damaged_files &files) {
    uint64_t state = checksum(&files.header, sizeof files.header);
    for (const batch *b = files.scan.batches.first; b; b = b->next)
        state = checksum(&b->nonce, sizeof b->nonce, state);
    return state;
}

ty_status read_files(const char *path, const ty_open_options &options, damaged_files &files,
                     problem_reporter &problems) {
    if (ty_status status = files.image.open(path, 0))
        return status;
    if (ty_status status = resolve_journal(*files.image.storage, path, options.journal_path, &files.journal_path))
        return status;
    if (ty_status status = files.image.lock(false))
        return status;
    if (ty_status status = files.image.get_size(&files.image_bytes))
        return status;
    if (ty_status status = read_uncertain_header(files.image, &files.header, &files.uncertain))
        return status;
    if (files.uncertain)
        problems.report("both headers of the image are damaged; one that makes sense is taken");
    else if (ty_status status = scrub_headers(files.image, problem_reporter::report, &problems))
        return status;
    if (files.image_bytes < files.header.sums_offset + sums_table_bytes(files.header.limit_bytes))
        problems.report("the image is cut short: what stood after its end is missing");
    if (has_journal(ty_kind(files.header.kind)))
        read_uncertain_journal(files, problems);
    return TY_OK;
}

class salvager {
public:
    salvager(damaged_files &files, storage_file &out, problem_reporter &problems, ty_salvage_report &report)
        : files_(files), out_(out), problems_(problems), report_(report) {}
    salvager(const salvager &) = delete;
    salvager &operator=(const salvager &) = delete;
    ~salvager() {
        renewed_.destroy();
        later_.destroy();
        read_.destroy();
    }

    ty_status run() {
        const uint64_t pages = files_.header.limit_bytes / page_bytes;
        if (ty_status status = renewed_.create(pages))
            return status;
        if (ty_status status = later_.create(pages))
            return status;
        if (ty_status status = read_.create(pages))
            return status;
        if (ty_status status = buffer_.create(piece_pages * page_bytes))
            return status;
        if (ty_status status = sums_.start(files_.image, files_.header.sums_offset))
            return status;
        for (const batch *b = files_.scan.batches.first; b; b = b->next)
            for (size_t i = 0; i < b->copies.count(); ++i)
                renewed_.insert(b->copies[i].page);
        if (ty_status status = find_later_pages())
            return status;
        if (ty_status status = copy_pages())
            return status;
        report_holes();
        if (ty_status status = copy_batches())
            return status;
        return repair_header();
    }

private:
    static bool is_zero(const char *content) {
        static constexpr char zeros[page_bytes] = {};
        return memcmp(content, zeros, page_bytes) == 0;
    }
    static uint64_t offset_of(uint64_t page) { return image_pages_offset + page * page_bytes; }

    // 0: unknown.
    uint64_t sum_of(uint64_t page) {
        const uint64_t block = page / sums_per_block;
        uint64_t sum = 0;
        if (files_.header.sums_offset + (block + 1) * page_bytes > files_.image_bytes || sums_.get(page, &sum))
            return 0;
        return sum;
    }
    bool is_to_be_cleared(uint64_t page) const { // by an unfinished growth
        const uint64_t offset = offset_of(page);
        return offset >= files_.header.clear_offset && offset - files_.header.clear_offset < files_.header.clear_bytes;
    }
    void report_page(uint64_t page, bool missing) {
        if (renewed_.contains(page))
            return; // a batch has it
        header_reported_ |= page == 0;
        ++(missing ? report_.missing_pages : report_.damaged_pages);
        if (problems_.sinks.page)
            problems_.sinks.page(page, missing, problems_.sinks.context);
    }

    // I22: finds the pages that the image has of batches after the last good epoch, as far as the journal still shows.
    ty_status find_later_pages() {
        if (!files_.journal.is_open() || needs_no_journal(files_))
            return TY_OK;
        const entry_sink sink{this, [](void *self, const chunk_entry &entry) {
                                  static_cast<salvager *>(self)->check_if_checkpointed(entry);
                                  return TY_OK;
                              }};
        return find_later_entries(files_.journal, report_.epoch, files_.header.limit_bytes / page_bytes, sink);
    }
    void check_if_checkpointed(const chunk_entry &entry) {
        if (renewed_.contains(entry.page) || later_.contains(entry.page) ||
            files_.image.read(offset_of(entry.page), buffer_.data(), page_bytes))
            return;
        if (checksum(buffer_.data(), page_bytes) == entry.sum)
            later_.insert(entry.page);
    }
    // The ranges of the image that hold data, as far as the file goes.
    ty_status copy_pages() {
        const uint64_t end_of_file = files_.image_bytes / page_bytes * page_bytes;
        const uint64_t end_of_pages = std::min(image_pages_offset + files_.header.limit_bytes, end_of_file);
        uint64_t start = 0, end = 0;
        for (uint64_t at = image_pages_offset; at < end_of_pages; at = end) {
            ty_status status = files_.image.next_data(at, &start, &end);
            if (status == TY_E_NOT_FOUND)
                break;
            if (status)
                return status;
            at = std::max(at, start / page_bytes * page_bytes);
            end = std::max(at + page_bytes, (end + page_bytes - 1) / page_bytes * page_bytes);
            for (; at < std::min(end, end_of_pages); at += piece_pages * page_bytes)
                if ((status = copy_piece(at, std::min({end, end_of_pages, at + piece_pages * page_bytes}) - at)))
                    return status;
        }
        return TY_OK;
    }
    // I22: a page whose content differs from its checksum is reported.
    ty_status copy_piece(uint64_t offset, uint64_t bytes) {
        const bool whole = files_.image.read(offset, buffer_.data(), bytes) == TY_OK;
        for (uint64_t i = 0; i < bytes; i += page_bytes) {
            const uint64_t page = (offset + i - image_pages_offset) / page_bytes;
            char *content = buffer_.data() + i;
            read_.insert(page);
            bool there = whole || files_.image.read(offset + i, content, page_bytes) == TY_OK;
            if (!there || is_to_be_cleared(page))
                memset(content, 0, page_bytes);
            const uint64_t expected = sum_of(page);
            if (!expected && !renewed_.contains(page) && !is_zero(content))
                ++report_.unchecked_pages;
            const bool is_later = there && later_.contains(page) && !is_to_be_cleared(page);
            report_.later_pages += is_later;
            if (!there || (is_later && !fault("page_of_a_later_snapshot_not_reported")) ||
                (expected && !is_to_be_cleared(page) && checksum(content, page_bytes) != expected &&
                 !fault("damaged_page_not_reported")))
                report_page(page, !there);
        }
        report_.pages += bytes / page_bytes;
        return out_.write(offset, buffer_.data(), bytes);
    }

    // I22: reports pages that were written according to the table, and are missing.
    void report_holes() {
        static constexpr char zeros[page_bytes] = {};
        const uint64_t zero_sum = checksum(zeros, page_bytes), pages = files_.header.limit_bytes / page_bytes;
        for (uint64_t page = 0; page < pages; ++page) {
            if (page % sums_per_block == 0) {
                uint64_t block = 0;
                if (sums_.next_block(page / sums_per_block, &block) || block > pages / sums_per_block)
                    return;
                page = block * sums_per_block;
            }
            if (page % sums_per_sector == 0 && page < pages)
                report_damaged_sums(page);
            const uint64_t expected = page < pages ? sum_of(page) : 0;
            if (expected && expected != zero_sum && !read_.contains(page) && !is_to_be_cleared(page) &&
                !fault("missing_page_not_reported"))
                report_page(page, true);
        }
    }

    void report_damaged_sums(uint64_t page) {
        bool damaged = false;
        if (sums_.is_damaged(page, &damaged) || !damaged)
            return;
        char text[128];
        snprintf(text, sizeof text, "the checksums of pages %llu to %llu are damaged: damage there cannot be detected",
                 (unsigned long long)page, (unsigned long long)(page + sums_per_sector - 1));
        problems_.report(text);
    }

    // I23: an open identifies the heap by page 0, which also says how much of it is used. What is known without it is
    //      put back.
    ty_status repair_header() {
        const void *base = reinterpret_cast<const void *>(files_.header.base);
        const uint64_t limit = files_.header.limit_bytes;
        io_buffer page;
        uint64_t end = 0;
        if (ty_status status = page.create(page_bytes))
            return status;
        if (ty_status status = out_.read(offset_of(0), page.data(), page_bytes))
            return status;
        if (ty_status status = find_described_end(heap_descriptor_pages(page.data(), limit), &end))
            return status;
        if (heap_repair_header(page.data(), base, limit, ty_class_table(files_.header.classes), header_reported_,
                               end)) {
            problems_.report("the heap's header is damaged: what is known without it was put back");
            if (ty_status status = out_.write(offset_of(0), page.data(), page_bytes))
                return status;
        }
        report_cut_pages(page.data());
        return TY_OK;
    }
    // Searches from the last piece backwards.
    ty_status find_described_end(const heap_page_range &descriptors, uint64_t *found) {
        const uint64_t first = offset_of(descriptors.first);
        *found = 0;
        for (uint64_t left = descriptors.count; left > 0 && *found == 0;) {
            const uint64_t count = std::min(left, piece_pages);
            left -= count;
            uint64_t start = 0, end = 0;
            const ty_status status = out_.next_data(first + left * page_bytes, &start, &end);
            if (status && status != TY_E_NOT_FOUND)
                return status;
            if (status || start >= first + (left + count) * page_bytes)
                continue;
            if (ty_status failed = out_.read(first + left * page_bytes, buffer_.data(), count * page_bytes))
                return failed;
            *found = heap_described_end(buffer_.data(), count * page_bytes, left * heap_pages_in_descriptors);
        }
        return TY_OK;
    }
    // I22: where the file was cut, checksums of the pages after its end are missing, too.
    void report_cut_pages(const void *header_page) {
        const uint64_t bytes = std::max(files_.image_bytes, image_pages_offset);
        const uint64_t there = (bytes - image_pages_offset) / page_bytes;
        heap_page_range used[heap_used_max];
        const size_t count = heap_used_pages_of(header_page, used);
        for (size_t i = 0; i < count && there < files_.header.limit_bytes / page_bytes; ++i)
            for (uint64_t page = std::max(used[i].first, there); page < used[i].first + used[i].count; ++page)
                if (!read_.contains(page))
                    report_page(page, true);
    }

    ty_status copy_batches() {
        const page_sink sink{this, [](void *self, const page_copy *copies, size_t count, const char *bytes) {
                                 return static_cast<salvager *>(self)->write_copies(copies, count, bytes);
                             }};
        for (const batch *b = files_.scan.batches.first; b; b = b->next) {
            if (ty_status status = read_batch(files_.journal, *b, sink))
                return status;
            ++report_.batches;
            report_.batch_pages += b->copies.count();
        }
        return TY_OK;
    }
    ty_status write_copies(const page_copy *copies, size_t count, const char *bytes) const {
        for (size_t i = 0; i < count; ++i) {
            memcpy(buffer_.data(), bytes + i * page_bytes, page_bytes);
            if (ty_status status = out_.write(offset_of(copies[i].page), buffer_.data(), page_bytes))
                return status;
        }
        return TY_OK;
    }

    damaged_files &files_;
    storage_file &out_;
    problem_reporter &problems_;
    ty_salvage_report &report_;
    os::page_set renewed_; // that a batch has
    os::page_set later_;   // of batches that are not in the new image
    os::page_set read_;
    bool header_reported_ = false;
    page_sums sums_;
    io_buffer buffer_;
};

// The header of an archive heap that was closed cleanly: it needs neither checksums nor other files.
image_header header_of_archive(const image_header &damaged, uint64_t epoch) {
    image_header header{};
    header.magic = image_magic;
    header.version = format_version;
    header.page_bytes = page_bytes;
    os::random_bytes(header.identity, sizeof header.identity);
    header.base = damaged.base;
    header.limit_bytes = damaged.limit_bytes;
    header.kind = uint32_t(TY_ARCHIVE);
    header.state = uint32_t(image_state::closed);
    header.classes = damaged.classes;
    header.created_unix_s = damaged.created_unix_s;
    header.epoch = header.durable_epoch = epoch;
    header.journal_next = journal_front;
    header.sums_offset = image_pages_offset + damaged.limit_bytes;
    header.open.number = 1;
    os::random_bytes(&header.open.random, sizeof header.open.random);
    return header;
}

ty_status write_image(damaged_files &files, storage_file &out, problem_reporter &problems, ty_salvage_report &report) {
    if (ty_status status = out.set_size(image_file_bytes(files.header.limit_bytes)))
        return status;
    if (ty_status status = salvager(files, out, problems, report).run())
        return status;
    header_state state;
    state.current = header_of_archive(files.header, report.epoch);
    static_cast<void>(read_code_places(files.image, &state.places)); // a damaged image may have none: they are a hint
    return write_header_twice(out, state);
}

ty_status check_free(const ty_storage &storage, const char *path) {
    storage_file probe{&storage};
    ty_status status = probe.open(path, 0);
    probe.close();
    if (status == TY_E_NOT_FOUND)
        return TY_OK;
    return status
               ? status
               : failure(TY_E_EXISTS, "salvage a heap: there is a file of that name").at(path).remedy("give another");
}

ty_status name_image(const storage_file &out, const char *creation_path, const char *path) {
    const ty_storage &storage = *out.storage;
    if (ty_status status = os::call_whole(storage.rename, storage.context, creation_path, path))
        return status;
    return os::call_whole(storage.flush_directory, storage.context, path);
}

ty_status make_image(damaged_files &files, const char *out_path, problem_reporter &problems,
                     ty_salvage_report &report) {
    const ty_storage &storage = *files.image.storage;
    if (ty_status status = check_free(storage, out_path))
        return status;
    char *creation_path = path_with(out_path, creation_suffix);
    if (!creation_path)
        return TY_E_MEMORY;
    storage_file out{&storage};
    ty_status status = out.open_for_creation(creation_path, &files.image);
    if (!status) {
        if (!(status = write_image(files, out, problems, report)) && !(status = check_free(storage, out_path)))
            status = name_image(out, creation_path, out_path);
        if (status)
            out.remove_quietly(creation_path);
    }
    if (status)
        name_final_file(storage, creation_path, out_path);
    out.close();
    free(creation_path);
    return status;
}

} // namespace

ty_status image_salvage(const char *path, const ty_open_options &options, const char *out_path,
                        const salvage_sinks &sinks, ty_salvage_report *report) {
    damaged_files files(*options.storage);
    problem_reporter problems{sinks};
    if (ty_status status = read_files(path, options, files, problems))
        return status;
    const image_header &header = files.header;
    const batch *newest = files.scan.batches.last;
    report->kind = ty_kind(header.kind);
    report->base = reinterpret_cast<void *>(header.base);
    report->limit_bytes = header.limit_bytes;
    report->header_doubtful = files.uncertain;
    report->image_epoch = header.epoch;
    report->durable_epoch = header.durable_epoch;
    report->epoch = newest ? newest->epoch : header.epoch;
    report->closed = !files.uncertain && header.state == uint32_t(image_state::closed);
    report->state = state_of(files);
    ty_status status = make_image(files, out_path, problems, *report);
    report->several_moments = may_be_mixed(files) || report->later_pages != 0;
    report->problems = problems.count;
    return status;
}

// X30: the log is replayed in whole transactions, from the epoch that was salvaged, or not at all.
ty_status image_salvage_log(const char *path, const ty_open_options &options, uint64_t state, storage_file *image,
                            ty_info *info, image_log *log) {
    damaged_files files(*options.storage);
    const salvage_sinks nobody{};
    problem_reporter problems{nobody};
    if (ty_status status = read_files(path, options, files, problems))
        return status;
    if (state_of(files) != state && !fault("salvage_goes_on_from_another_epoch"))
        return failure(TY_E_BUSY, "go on with a damaged heap: its files are not as they were first read")
            .at(path)
            .remedy("let no program use them, and begin again");
    info->kind = ty_kind(files.header.kind);
    info->base = reinterpret_cast<void *>(files.header.base);
    info->limit_bytes = files.header.limit_bytes;
    *log = log_of(files.header, files.scan.batches);
    *image = files.image;
    files.image.file = nullptr;
    return TY_OK;
}

} // namespace taiyen
