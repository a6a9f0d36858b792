// What the files say, without opening the heap.
#include "../files/files.hpp"
#include "../image.hpp"
#include "../snapshots/snapshots.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

void take_header(const image_header &header, ty_info *info) {
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

// What an open would do, as far as image and journal show.
void predict_open(const journal_contents &contents, bool receives, ty_info *info) {
    const journal_scan &scan = contents.scan;
    const char *text = "opens at once";
    if (info->in_use) {
        text = "is open now; another open would be refused, but for one of a copy";
    } else if (scan.batches.count) {
        info->found = info->closed     ? TY_RECOVERY_CLOSED_BATCHES
                      : scan.discarded ? TY_RECOVERY_CRASHED_WRITING
                                       : TY_RECOVERY_CRASHED_BATCHES;
        text = "reads the snapshots that the image does not hold yet from the journal, and opens";
    } else if (scan.discarded && !info->closed) { // after the end of one that was closed, nothing counts
        info->found = TY_RECOVERY_CRASHED_WRITING;
        text = "opens with the last complete snapshot; an incomplete one never counted";
    } else if (!info->closed) {
        text = info->kind == TY_ARCHIVE ? "opens, but its process died: the content may be a mixture"
                                        : "opens with the last snapshot; its process died without closing it";
    }
    snprintf(info->open_text, sizeof info->open_text, "%s%s%s", text,
             contents.missing ? "; its journal is missing or old, and not needed" : "",
             receives ? "; it receives the transactions of another heap, and nobody else writes to it" : "");
}

// Reads the journal; a failure is what an open would be refused for.
ty_status read_journal_state(storage_file &journal, const char *path, const image_header &header,
                             journal_contents *contents, ty_info *info) {
    if (!has_journal(info->kind))
        return check_no_journal(*journal.storage, path, header);
    ty_status status = read_journal(journal, path, journal_use::look, header, contents);
    if (journal.is_open())
        (void)journal.get_size(&info->journal_bytes); // a failure is reported already
    return status;
}

ty_status read_marks(const storage_file &image, ty_info *info) {
    return durable_look(image, {info, [](void *context, const mark_tree &tree, uint64_t bytes) {
                                    auto &to = *static_cast<ty_info *>(context);
                                    to.marks = tree.count();
                                    to.marks_bytes = bytes;
                                }});
}

// *mixed: the files changed while they were read: what was read is not of one moment.
ty_status read_info(const char *path, const ty_storage &storage, ty_info *info, image_log *log,
                    const char *given_journal_path, ty_error *refusal, bool *mixed) {
    size_t struct_size = info->struct_size;
    *info = {};
    info->struct_size = struct_size;
    storage_file image{&storage}, journal{&storage};
    if (ty_status status = image.open(path, 0))
        return status;
    image_header header;
    bool repaired = false;
    ty_status status = read_header(image, &header, &repaired);
    if (status) {
        image.close();
        return status;
    }
    take_header(header, info);
    info->image_bytes = image.allocated_bytes();
    info->in_use = image.check_lock() == TY_E_BUSY;
    info->found = info->in_use ? TY_RECOVERY_IN_USE : info->closed ? TY_RECOVERY_CLOSED : TY_RECOVERY_CRASHED;
    journal_contents contents;
    const journal_scan &scan = contents.scan;
    char *journal_path = nullptr;
    status = resolve_journal(storage, path, given_journal_path, &journal_path);
    if (!status)
        status = read_journal_state(journal, journal_path, header, &contents, info);
    if (!status && has_journal(info->kind))
        status = read_marks(image, info);
    image_header now;
    bool unused;
    ty_error refused = status ? keep_error() : ty_error{};
    *mixed = read_header(image, &now, &unused) || memcmp(&now, &header, sizeof now) ||
             (image.check_lock() == TY_E_BUSY) != info->in_use;
    if (info->in_use && journal.is_open()) {
        *mixed = *mixed || status;
        status = TY_OK;
        refused = {};
    }
    predict_open(contents, header.source.state == uint64_t(source_state::receives), info);
    if (status && !info->in_use)
        image_note_refusal(refused, info);
    info->batches = scan.batches.count;
    info->batch_pages = scan.batches.pages();
    if (scan.batches.last)
        info->epoch = scan.batches.last->epoch;
    image_log restored = log_of(header, scan.batches);
    info->log_position = restored.redo_point.at[0].offset;
    info->log_lsn = restored.redo_point.lsn;
    if (log)
        *log = restored;
    if (refusal)
        *refusal = refused;
    contents.scan.batches.clear();
    free(journal_path);
    journal.close();
    image.close();
    return TY_OK;
}

} // namespace

// Nothing is locked, so that no open fails because of a reader: files that changed meanwhile are read again. If the
// last attempt is still mixed, it is reported as it was read.
ty_status image_read_info(const char *path, const ty_storage &storage, ty_info *info, image_log *log,
                          const char *journal_path, ty_error *refusal) {
    constexpr int readings_max = 50;
    for (int n = 1;; ++n) {
        bool mixed = false;
        ty_status status = read_info(path, storage, info, log, journal_path, refusal, &mixed);
        if (status || !mixed || n == readings_max)
            return status;
    }
}

void image_note_refusal(const ty_error &refusal, ty_info *info) {
    constexpr const char *before = "would be refused: ";
    constexpr size_t most = sizeof info->open_text - 1;
    (void)report_again(refusal); // its fields as one line
    const size_t length = strlen(before) + strlen(ty_error_text());
    const char *name = strrchr(refusal.path, '/');
    if (length > most && name) { // the remedy matters more than the file's place
        constexpr size_t kept_min = 24;
        const size_t droppable = strlen(refusal.path) - std::min(strlen(name), kept_min);
        const size_t dropped = std::min(length - most + 3, droppable);
        ty_error shorter = refusal;
        snprintf(shorter.path, sizeof shorter.path, "...%s", refusal.path + dropped);
        if (dropped > 3)
            (void)report_again(shorter);
    }
    write_text(info->open_text, sizeof info->open_text, "%s%s", before, ty_error_text());
}

ty_status image_read_owner(const char *path, const ty_storage &storage, uint8_t (&identity)[16], uint64_t *process) {
    storage_file found{&storage};
    if (ty_status status = found.open(path, 0))
        return status;
    image_header header;
    bool repaired = false;
    ty_status status = read_header(found, &header, &repaired);
    found.close();
    if (status)
        return status;
    memcpy(identity, header.identity, sizeof header.identity);
    *process = header.state == uint32_t(image_state::open) ? header.owner_process : 0;
    return TY_OK;
}

} // namespace taiyen
