// What the files say, without opening the heap.
#include "headers.hpp"
#include "image.hpp"
#include "journal.hpp"
#include "paths.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

uint64_t allocated_bytes(const storage_file &file) {
    uint64_t sum = 0, start = 0, end = 0;
    for (uint64_t offset = 0; file.next_data(offset, &start, &end) == TY_OK && end > offset; offset = end)
        sum += end - start;
    return sum;
}

void take_header(const image_header_2 &header, ty_info *info) {
    info->kind = ty_kind(header.kind);
    info->format_version = header.version;
    memcpy(info->identity, header.identity, sizeof info->identity);
    info->base = reinterpret_cast<void *>(header.base);
    info->limit_bytes = header.limit_bytes;
    info->page_bytes = header.page_bytes;
    info->classes = ty_class_table(header.classes);
    info->image_epoch = info->epoch = header.epoch;
    info->closed = header.state == uint32_t(image_state::closed);
    info->created_unix_s = header.created_unix_s;
    info->log_identity = header.log_identity;
}

// What an open would do. Problems of the journal are told, not returned: the image's parameters are still of use.
void foretell(ty_status journal_status, const journal_scan &scan, ty_info *info) {
    const char *text = "opens at once";
    info->found = info->closed ? TY_FOUND_CLOSED : TY_FOUND_DIED;
    if (journal_status) {
        snprintf(info->open_text, sizeof info->open_text, "would be refused: %s", ty_error_text());
        return;
    }
    if (info->in_use) {
        text = "is open now; another open would be refused";
    } else if (scan.batches.count) {
        info->found = info->closed     ? TY_FOUND_CLOSED_BATCHES
                      : scan.discarded ? TY_FOUND_DIED_WRITING
                                       : TY_FOUND_DIED_APPLYING;
        text = "reads the snapshots that the image does not hold yet from the journal, and opens";
    } else if (scan.discarded) {
        info->found = TY_FOUND_DIED_WRITING;
        text = "opens with the last complete snapshot; an incomplete one never counted";
    } else if (!info->closed) {
        text = info->kind == TY_ARCHIVE ? "opens, but its process died: the content may be a mixture"
                                        : "opens with the last snapshot; its process died without closing it";
    }
    snprintf(info->open_text, sizeof info->open_text, "%s", text);
}

} // namespace

ty_status image_read_info(const char *path, const ty_storage &storage, ty_info *info, image_log *log,
                          const char *given_journal_path) {
    size_t struct_size = info->struct_size;
    *info = {};
    info->struct_size = struct_size;
    storage_file image{&storage}, journal{&storage};
    if (ty_status status = image.open(path, 0))
        return status;
    image_header_2 header;
    bool repaired = false;
    ty_status status = read_header(image, &header, &repaired);
    if (status) {
        image.close();
        return status;
    }
    take_header(header, info);
    info->image_bytes = allocated_bytes(image);
    info->in_use = image.lock(false) == TY_E_BUSY;
    journal_contents contents;
    const journal_scan &scan = contents.scan;
    char *journal_path = nullptr;
    status = resolve_beside(storage, path, journal_suffix, given_journal_path, &journal_path);
    if (!status && has_journal(info->kind)) {
        status = read_journal(journal, journal_path, journal_use::look, header, &contents);
        if (journal.is_open())
            (void)journal.get_size(&info->journal_bytes); // what fails is told already
    }
    info->batches = scan.batches.count;
    info->batch_pages = scan.batches.pages();
    if (scan.batches.last)
        info->epoch = scan.batches.last->epoch;
    image_log restored = log_of(header, scan.batches);
    info->log_position = restored.mark.position;
    info->log_sequence = restored.mark.sequence;
    if (log)
        *log = restored;
    foretell(info->in_use ? TY_OK : status, scan, info);
    contents.scan.batches.clear();
    free(journal_path);
    journal.close();
    image.close();
    return TY_OK;
}

} // namespace taiyen
