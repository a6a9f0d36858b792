// Reading a log without opening its heap.
#include "open_steps.hpp"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

// Passes the parts of records on as entries, and counts them.
struct entry_reporter {
    ty_log_info *info;
    const char *name;
    uint64_t base;
    record_scope scope;
    ty_log_entry_callback *callback;
    void *context;
    ty_log_entry entry{}; // of the record that is being read
    bool stopped = false;

    ty_status report(ty_log_entry_kind kind, uint64_t address, uint64_t size_bytes, const void *bytes) {
        entry.kind = kind;
        entry.address = address;
        entry.size_bytes = size_bytes;
        entry.bytes = bytes;
        stopped = callback && !callback(&entry, context);
        entry.procedure = 0;
        return stopped ? TY_E_BUSY : TY_OK; // ends the reading
    }
    ty_status report_data(uint64_t address, uint64_t size_bytes, const void *bytes) {
        info->data_entries += 1;
        info->changed_bytes += size_bytes;
        return report(TY_LOG_DATA, address, size_bytes, bytes);
    }

    // The bytes of a word that changed, adjacent ones together.
    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        char bytes[sizeof value];
        memcpy(bytes, &value, sizeof bytes);
        while (mask) {
            unsigned first = static_cast<unsigned>(std::countr_zero(mask)) / 8;
            unsigned count = static_cast<unsigned>(std::countr_one(mask >> (8 * first))) / 8;
            if (ty_status status = report_data(base + word * 8 + first, count, bytes + first))
                return status;
            mask = first + count < 8 ? mask & (UINT64_MAX << (8 * (first + count))) : 0;
        }
        return TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *bytes) {
        return report_data(base + first * 8, count * 8, bytes);
    }
    ty_status zeros(uint64_t first, uint64_t count) {
        static constexpr char zero_bytes[4096] = {};
        for (uint64_t at = first * 8, end = (first + count) * 8; at < end;) {
            uint64_t bytes = end - at < sizeof zero_bytes ? end - at : sizeof zero_bytes;
            if (ty_status status = report_data(base + at, bytes, zero_bytes))
                return status;
            at += bytes;
        }
        return TY_OK;
    }
    ty_status operation(const record_operation &operation) {
        uint64_t address = operation.null_address ? 0 : base + operation.word * 8;
        (operation.kind == operation_kind::procedure ? info->procedures : info->operations) += 1;
        switch (operation.kind) {
        case operation_kind::alloc:
            return report(TY_LOG_ALLOC, address, operation.size, nullptr);
        case operation_kind::free:
            return report(TY_LOG_FREE, address, 0, nullptr);
        case operation_kind::resize:
            return report(TY_LOG_RESIZE, address, operation.size, nullptr);
        case operation_kind::root:
            return report(TY_LOG_ROOT, address, operation.byte_count, operation.bytes);
        case operation_kind::procedure:
            entry.procedure = operation.procedure;
            return report(TY_LOG_PROCEDURE, 0, operation.byte_count, operation.bytes);
        }
        return TY_E_DAMAGED;
    }

    ty_status parts(uint64_t lsn, const record_view &view) {
        ty_status status = TY_OK;
        info->in_doubt = view.role == record_role::prepared ? lsn : 0;
        if (view.role == record_role::pending)
            status = report(TY_LOG_PENDING, 0, 0, nullptr);
        else if (view.role == record_role::prepared)
            status = report(TY_LOG_PREPARED, 0, view.description_bytes, view.description);
        else if (view.role == record_role::outcome)
            status = report(TY_LOG_OUTCOME, 0, view.outcome == record_outcome::committed, nullptr);
        return status ? status : record_decode(view.parts, view.size, scope, *this);
    }

    static ty_status record(void *context, const log_record &record) {
        auto &self = *static_cast<entry_reporter *>(context);
        self.entry.lsn = record.lsn;
        self.entry.position = record.position;
        self.entry.stream = static_cast<uint16_t>(record.stream);
        self.entry.independent = record.independent;
        self.info->in_stream[record.stream].transactions += 1;
        self.info->in_stream[record.stream].record_bytes += record.size;
        ty_status status = self.report(TY_LOG_TRANSACTION, 0, record.size, nullptr);
        record_view view;
        if (!status && !(status = record_inspect(record.bytes, record.size, &view)))
            status = self.parts(record.lsn, view);
        if (status == TY_E_DAMAGED)
            return failure(TY_E_DAMAGED, "read transaction %llu: its record makes no sense",
                           (unsigned long long)record.lsn)
                .at(self.name, record.position)
                .remedy("restore the heap's files from a backup");
        return status;
    }
};

void take_header(const log_header &header, ty_log_info *info) {
    info->format_version = header.version;
    memcpy(info->heap_identity, header.heap_identity, sizeof info->heap_identity);
    info->log_identity = header.log_identity;
    info->size_bytes = header.ring_bytes;
    info->block_bytes = header.block_bytes;
    info->streams = header.streams;
}

// For all log streams, and for each.
void take_contents(const log_contents &contents, ty_log_info *info) {
    info->end_position = contents.end.at[0].offset;
    for (uint32_t p = 0; p < contents.end.count; ++p)
        info->in_stream[p].end_position = contents.end.at[p].offset;
    info->transactions = contents.records;
    info->frames = contents.frames;
    info->record_bytes = contents.record_bytes;
    info->left_out = contents.left_out;
}

// Reads everything after a known position. info is filled up to where the reading ended.
ty_status read_after(const log_location &location, const ty_info &heap, const image_log &known, ty_log_info *info,
                     ty_log_entry_callback *callback, void *context) {
    info->of_heap = true;
    info->start_position = info->end_position = known.redo_point.at[0].offset;
    for (uint64_t p = 0; p < known.redo_point.count; ++p)
        info->in_stream[p].start_position = info->in_stream[p].end_position = known.redo_point.at[p].offset;
    info->first_lsn = known.redo_point.lsn + 1;
    constexpr uint64_t words_per_page = os::page_bytes / 8;
    entry_reporter reporter{info,
                            location.path,
                            reinterpret_cast<uint64_t>(heap.base),
                            {heap_header_pages * words_per_page, heap.limit_bytes / 8},
                            callback,
                            context};
    log_contents contents{};
    log_reader reader{&reporter, entry_reporter::record};
    reader.in_use = heap.in_use;
    ty_status status = log_scan(*location.sink, location.path, identity_of(known), known.redo_point, reader, &contents);
    if (contents.end.count != 0)
        take_contents(contents, info);
    return reporter.stopped ? TY_OK : status;
}

// Reads what an open would replay.
ty_status read_after_snapshot(const log_location &location, const ty_info &heap, const image_log &known,
                              ty_log_info *info, ty_log_entry_callback *callback, void *context) {
    log_identity identity = identity_of(known);
    log_header header;
    if (ty_status status = log_check(*location.sink, location.path, &identity, &header))
        return status;
    bool older = false; // does not matter
    if (ty_status status = heap.in_use ? TY_OK : log_location_check_open(location, header, known, &older);
        status || older)
        return status;
    return read_after(location, heap, known, info, callback, context);
}

// Only image and journal together determine where the last snapshot stands in the log.
ty_status read_heap(const char *path, const ty_open_options &options, ty_info *heap, image_log *known) {
    ty_error refusal{};
    if (ty_status status = image_read_info(path, *options.storage, heap, known, options.journal_path, &refusal))
        return status;
    if (!known->log_identity)
        return failure(TY_E_UNSUPPORTED, "read the log of a heap that has none")
            .at(path)
            .remedy("only transactional heaps have one");
    return refusal.status ? report_again(refusal) : TY_OK;
}

bool has_content(const ty_log_info &info) {
    uint64_t records = 0;
    for (const ty_log_stream &one : info.in_stream)
        records += one.transactions;
    return records > 0;
}

// While this reads, a writer may overwrite what a newer snapshot holds. Then this reads again, from that snapshot's
// place.
ty_status read_heap_s_log(const char *path, const log_location &location, ty_info &heap, image_log &known,
                          ty_log_info *info, ty_log_entry_callback *callback, void *context) {
    const ty_log_info empty = *info;
    for (;;) {
        const ty_status status = read_after_snapshot(location, heap, known, info, callback, context);
        if (!heap.in_use || (status != TY_E_BUSY && status != TY_E_DAMAGED))
            return status;
        const ty_error why = keep_error();
        const uint64_t epoch = heap.epoch;
        if (ty_status again = read_heap(path, *location.options, &heap, &known))
            return again;
        if (heap.epoch == epoch)
            return report_again(why);
        if (callback && has_content(*info))
            return failure(TY_E_BUSY, "read the log: its writer overwrote what was not read yet")
                .at(location.path)
                .remedy("read it again, from the newest snapshot");
        *info = empty;
    }
}

void add_to_text(ty_info *info, const char *text) {
    size_t length = strlen(info->open_text);
    snprintf(info->open_text + length, sizeof info->open_text - length, "%s", text);
}

// What an open would do with the log, or the refusal.
ty_status predict_log(log_location &location, const image_log &recorded, ty_info *info) {
    if (!recorded.log_identity)
        return log_location_check_not_newer(location, recorded);
    log_identity identity = identity_of(recorded);
    log_header header;
    log_fit fit = log_fit::fits;
    uint64_t other = 0;
    if (ty_status status = log_location_find(location, identity, recorded, false, &header, &fit, &other))
        return status;
    if (fit != log_fit::fits) {
        add_to_text(info, "; its log is missing or old, and not needed");
        return TY_OK;
    }
    ty_log_info log{};
    if (ty_status status = read_after_snapshot(location, *info, recorded, &log, nullptr, nullptr))
        return status;
    char text[80];
    snprintf(text, sizeof text, "; replays %llu transaction%s from the log", (unsigned long long)log.transactions,
             plural(log.transactions));
    if (log.transactions)
        add_to_text(info, text);
    if (log.in_doubt)
        add_to_text(info, "; one is in doubt");
    return TY_OK;
}

// The problems that a scrub of all files of a heap finds.
struct findings {
    ty_progress_callback *progress;
    ty_problem_callback *problem;
    void *context;
    uint64_t count = 0;

    static void note(const char *text, void *self) {
        auto &found = *static_cast<findings *>(self);
        found.count += 1;
        if (found.problem)
            found.problem(text, found.context);
    }
    static bool show(uint64_t done_bytes, uint64_t total_bytes, void *self) {
        auto &found = *static_cast<findings *>(self);
        return !found.progress || found.progress(done_bytes, total_bytes, found.context);
    }
};

// Reports what an open would say of the log, and what an open does not check.
void scrub_log(const ty_info &heap, const image_log &recorded, log_location &location, findings &found) {
    log_header header;
    log_fit fit = log_fit::fits;
    uint64_t other = 0;
    ty_log_info info{};
    ty_status status = log_location_find(location, identity_of(recorded), recorded, false, &header, &fit, &other);
    if (!status && fit != log_fit::fits)
        return; // the next open creates one
    if (!status)
        status = read_after_snapshot(location, heap, recorded, &info, nullptr, nullptr);
    if (status)
        findings::note(ty_error_text(), &found);
    else if (log_half_damaged(*location.sink))
        findings::note("one of the log's two headers is damaged; the other one serves, and the next open repairs it",
                       &found);
}

} // namespace

ty_status txn_log_read(const char *heap_path, const ty_open_options &options, ty_log_info *info,
                       ty_log_entry_callback *callback, void *context) {
    ty_info heap{};
    image_log known{};
    if (heap_path)
        if (ty_status status = read_heap(heap_path, options, &heap, &known))
            return status;
    log_location location{};
    if (ty_status status = log_location_of(location, heap_path, options))
        return status;
    log_header header;
    ty_status status = log_location_open(location, false);
    if (status == TY_E_NOT_FOUND && heap_path)
        status = log_location_refuse_missing(location, "read the log");
    if (!status && !(status = log_check(*location.sink, location.path, nullptr, &header))) {
        take_header(header, info);
        if (heap_path)
            status = read_heap_s_log(heap_path, location, heap, known, info, callback, context);
    }
    log_location_destroy(location);
    return status;
}

ty_status txn_read_info(const char *path, const ty_open_options &options, ty_info *info) {
    image_log recorded{};
    ty_error refusal{};
    ty_status status = image_read_info(path, *options.storage, info, &recorded, options.journal_path, &refusal);
    if (status || info->in_use || refusal.status)
        return status;
    log_location location{};
    status = log_location_of(location, path, options);
    if (!status)
        status = predict_log(location, recorded, info);
    if (status) {
        ty_error_detail(&refusal);
        image_note_refusal(refusal, info);
    }
    log_location_destroy(location);
    return TY_OK;
}

ty_status txn_scrub(const char *path, const ty_open_options &options, ty_progress_callback *progress,
                    ty_problem_callback *problem, void *context) {
    findings found{progress, problem, context};
    ty_status status =
        image_scrub(path, *options.storage, findings::show, findings::note, &found, options.journal_path);
    if (status && !(status == TY_E_DAMAGED && found.count))
        return status;
    ty_info heap{};
    image_log recorded{};
    ty_error refusal{};
    if ((status = image_read_info(path, *options.storage, &heap, &recorded, options.journal_path, &refusal)))
        return status;
    if (refusal.status && !found.count) // for what the image's scrub does not check
        findings::note(heap.open_text, &found);
    log_location location{};
    if ((status = log_location_of(location, path, options)))
        return status;
    if (recorded.log_identity)
        scrub_log(heap, recorded, location, found);
    else if (log_location_check_not_newer(location, recorded))
        findings::note(ty_error_text(), &found);
    log_location_destroy(location);
    if (found.count)
        return failure(TY_E_DAMAGED, "find the files sound: %llu problem%s", (unsigned long long)found.count,
                       plural(found.count))
            .at(path)
            .remedy("restore the heap's files from copies made together");
    return TY_OK;
}

} // namespace taiyen
