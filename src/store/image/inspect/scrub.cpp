// Checking everything that the files hold against its checksums.
#include "../files/files.hpp"
#include "../image.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace taiyen {
namespace {

class scrubber {
public:
    scrubber(const storage_file &image, const image_header &header, ty_progress_callback *progress,
             ty_problem_callback *problem, void *context)
        : image_(image), header_(header), progress_(progress), problem_(problem), context_(context) {}
    ~scrubber() { pending_.destroy(); }

    uint64_t problems() const { return problems_; }

    // Pages of batches that are not checkpointed may be half-written in the image: the journal, just checked, is what
    // counts.
    ty_status start(const journal_scan &scan) {
        if (ty_status status = pending_.create(header_.limit_bytes / page_bytes))
            return status;
        for (const batch *b = scan.batches.first; b; b = b->next)
            for (size_t i = 0; i < b->copies.count(); ++i)
                pending_.insert(b->copies[i].page);
        if (ty_status status = sums_.start(image_, header_.sums_offset))
            return status;
        return buffer_.create(piece_pages * page_bytes);
    }

    // All ranges of the image: those that hold data, and the holes between them.
    ty_status run() {
        uint64_t total = 0;
        if (ty_status status = each_piece(&total, nullptr))
            return status;
        if (ty_status status = each_piece(nullptr, &total))
            return status;
        return header_.state == uint32_t(image_state::closed) ? check_sums() : TY_OK;
    }

    void report(const char *text) {
        ++problems_;
        if (problem_)
            problem_(text, context_);
    }

private:
    uint64_t end_of_pages() const { return image_pages_offset + header_.limit_bytes; }

    // Either adds up the bytes, or checks them.
    ty_status each_piece(uint64_t *sum, const uint64_t *total) {
        uint64_t done = 0, start = 0, end = 0;
        for (uint64_t at = image_pages_offset; at < end_of_pages();) {
            ty_status status = image_.next_data(at, &start, &end);
            if (status && status != TY_E_NOT_FOUND)
                return status;
            start = status ? end_of_pages() : std::min(start / page_bytes * page_bytes, end_of_pages());
            if (total && start > at && (status = check_hole(page_at(at), page_at(start))))
                return status;
            at = std::max(start, at);
            end = std::min((end + page_bytes - 1) / page_bytes * page_bytes, end_of_pages());
            if (sum)
                *sum += end > at ? end - at : 0;
            while (total && at < end) {
                uint64_t bytes = std::min(end - at, piece_pages * page_bytes);
                if ((status = check_piece(at, bytes)))
                    return status;
                at += bytes;
                done += bytes;
                if (progress_ && !progress_(done, *total, context_))
                    return failure(TY_E_BUSY, "scrub: stopped by the caller").at(image_.path);
            }
            at = std::max(end, at);
        }
        return TY_OK;
    }

    static uint64_t page_at(uint64_t offset) { return (offset - image_pages_offset) / page_bytes; }
    static uint64_t offset_of(uint64_t page) { return image_pages_offset + page * page_bytes; }

    // Pages [first, end) have no data: all that was ever written to them must be zeros.
    ty_status check_hole(uint64_t first, uint64_t end) {
        static constexpr char zeros[page_bytes] = {};
        const uint64_t zero_sum = checksum(zeros, page_bytes);
        uint64_t missing = first; // from there to `page`
        for (uint64_t page = first; page < end; ++page) {
            uint64_t expected = 0;
            if (page == first || page % sums_per_block == 0) { // pages never written have no checksums either
                uint64_t block = 0;
                if (ty_status status = sums_.next_block(page / sums_per_block, &block))
                    return status;
                if (block > page / sums_per_block) {
                    report_missing(missing, page);
                    missing = page = block < end / sums_per_block + 1 ? std::min(block * sums_per_block, end) : end;
                    if (page == end)
                        return TY_OK;
                }
            }
            if (ty_status status = sums_.get(page, &expected))
                return status;
            if (expected && expected != zero_sum && !pending_.contains(page))
                continue;
            report_missing(missing, page);
            missing = page + 1;
        }
        report_missing(missing, end);
        return TY_OK;
    }

    // The checksums themselves. Where a process died, those that it was writing may be torn: the close after the next
    // open writes them again.
    ty_status check_sums() {
        const uint64_t pages = header_.limit_bytes / page_bytes;
        const uint64_t blocks = (pages + sums_per_block - 1) / sums_per_block;
        for (uint64_t block = 0; block < blocks; ++block) {
            ty_status status = sums_.next_block(block, &block);
            if (status || block >= blocks)
                return status;
            const uint64_t first = block * sums_per_block, end = std::min(first + sums_per_block, pages);
            bool torn = false; // by a checkpoint that was interrupted, and continues at the next open
            for (uint64_t page = first; page < end; ++page)
                torn = torn || pending_.contains(page);
            for (uint64_t page = first; page < end && !torn; page += sums_per_sector)
                if ((status = check_sector(page, std::min(page + sums_per_sector, end))))
                    return status;
        }
        return TY_OK;
    }

    ty_status check_sector(uint64_t first, uint64_t end) {
        bool damaged = false;
        ty_status status = sums_.is_damaged(first, &damaged);
        if (status || !damaged)
            return status;
        report_finding(
            "%s: the checksums of pages %llu to %llu, at offset %llu, are damaged: what these pages hold cannot be "
            "checked",
            image_.path, (unsigned long long)first, (unsigned long long)(end - 1),
            (unsigned long long)(header_.sums_offset + first / sums_per_sector * sums_sector_bytes));
        return TY_OK;
    }

    // A path may be long, and the text about its pages follows it.
    [[gnu::format(printf, 2, 3)]] void report_finding(const char *format, ...) {
        char text[TY_STORAGE_PATH_MAX + 256];
        va_list arguments;
        va_start(arguments, format);
        write_text_of(text, sizeof text, format, arguments);
        va_end(arguments);
        report(text);
    }

    void report_missing(uint64_t first, uint64_t end) {
        if (first == end)
            return;
        const bool one = end - first == 1;
        char last[32] = "";
        if (!one)
            snprintf(last, sizeof last, " to %llu", (unsigned long long)(end - 1));
        report_finding(
            "%s: page%s %llu%s at offset %llu %s missing: the file has a hole where %s written (addresses %#llx to "
            "%#llx of the heap)",
            image_.path, one ? "" : "s", (unsigned long long)first, last, (unsigned long long)offset_of(first),
            one ? "is" : "are", one ? "it was" : "they were", (unsigned long long)(header_.base + first * page_bytes),
            (unsigned long long)(header_.base + end * page_bytes));
    }

    ty_status check_piece(uint64_t offset, uint64_t bytes) {
        uint64_t first = page_at(offset);
        if (image_.read(offset, buffer_.data(), bytes)) {
            report(ty_error_text()); // an unreadable part is a finding like any other
            return TY_OK;
        }
        for (uint64_t i = 0; i < bytes / page_bytes; ++i) {
            uint64_t expected = 0;
            if (ty_status status = sums_.get(first + i, &expected))
                return status;
            if (!expected || pending_.contains(first + i) ||
                checksum(buffer_.data() + i * page_bytes, page_bytes) == expected)
                continue;
            uint64_t address = header_.base + (first + i) * page_bytes;
            report_finding(
                "%s: page %llu at offset %llu is not what was written (addresses %#llx to %#llx of the heap)",
                image_.path, (unsigned long long)(first + i), (unsigned long long)(offset + i * page_bytes),
                (unsigned long long)address, (unsigned long long)(address + page_bytes));
        }
        return TY_OK;
    }

    const storage_file &image_;
    const image_header &header_;
    ty_progress_callback *progress_;
    ty_problem_callback *problem_;
    void *context_;
    uint64_t problems_ = 0;
    os::page_set pending_;
    page_sums sums_;
    io_buffer buffer_;
};

ty_status scan_for_scrub(storage_file &journal, const char *journal_path, const image_header &header,
                         journal_contents *contents, scrubber &scrub) {
    ty_status status = read_journal(journal, journal_path, journal_use::look, header, contents);
    if (status == TY_E_MEMORY)
        return status;
    if (status)
        scrub.report(ty_error_text());
    else if (!contents->missing && contents->head.other_slot_damaged)
        scrub.report("one of the journal's two headers is damaged; the other one serves, and the next open repairs it");
    return TY_OK;
}

ty_status scrub_marks(const storage_file &image, const image_header &header, scrubber &scrub) {
    char *path = path_with(image.path, marks_suffix);
    if (path == nullptr)
        return TY_E_MEMORY;
    const auto problem = [](void *self, const char *text) { static_cast<scrubber *>(self)->report(text); };
    page_copies nothing;
    mark_tree tree;
    marks_file file;
    ty_status status = tree.create(header.limit_bytes / page_bytes, nothing);
    if (!status) {
        status = file.open(*image.storage, path, header, false);
        if (!status)
            status = file.load(tree);
        if (!status && file.is_slot_damaged())
            scrub.report(
                "one of the two headers of the file of durable marks is damaged; the other one serves, and the "
                "next open for writing repairs it");
        if (!status)
            status = file.check_copies(tree, problem, &scrub);
        else if (status == TY_E_NOT_FOUND)
            status = TY_OK;
        else if (status != TY_E_MEMORY) {
            scrub.report(ty_error_text());
            status = TY_OK;
        }
    }
    tree.destroy();
    free(path);
    return status;
}

ty_status scrub_files(storage_file &image, storage_file &journal, const char *journal_path,
                      ty_progress_callback *progress, ty_problem_callback *problem, void *context) {
    if (ty_status status = image.lock(false))
        return status;
    image_header header;
    bool repaired = false;
    if (ty_status status = read_header(image, &header, &repaired))
        return status;
    scrubber scrub(image, header, progress, problem, context);
    if (ty_status status = scrub_headers(
            image, [](void *self, const char *text) { static_cast<scrubber *>(self)->report(text); }, &scrub))
        return status;
    journal_contents contents;
    ty_status status = TY_OK;
    if (has_journal(ty_kind(header.kind)))
        status = scan_for_scrub(journal, journal_path, header, &contents, scrub);
    if (!status && !(status = scrub.start(contents.scan)))
        status = scrub.run();
    contents.scan.batches.clear();
    if (!status && has_journal(ty_kind(header.kind)))
        status = scrub_marks(image, header, scrub);
    if (status)
        return status;
    if (scrub.problems())
        return failure(TY_E_DAMAGED, "find the files sound: %llu problem%s", (unsigned long long)scrub.problems(),
                       plural(scrub.problems()))
            .at(image.path)
            .remedy("restore image and journal from a copy");
    return TY_OK;
}

} // namespace

ty_status image_scrub(const char *path, const ty_storage &storage, ty_progress_callback *progress,
                      ty_problem_callback *problem, void *context, const char *given_journal_path) {
    storage_file image{&storage}, journal{&storage};
    char *journal_path = nullptr;
    ty_status status = image.open(path, 0);
    if (!status)
        status = resolve_journal(storage, path, given_journal_path, &journal_path);
    if (!status)
        status = scrub_files(image, journal, journal_path, progress, problem, context);
    journal.close();
    image.close();
    free(journal_path);
    return status;
}

} // namespace taiyen
