// Reading a log without opening its heap.
#include "open_steps.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

// Hands the parts of records on as entries, and counts them.
struct entry_teller {
    ty_log_info *info;
    const char *name;
    uint64_t base;
    record_scope scope;
    ty_log_entry_callback *callback;
    void *context;
    ty_log_entry entry{}; // of the record that is being read
    bool stopped = false;

    ty_status tell(ty_log_entry_kind kind, uint64_t address, uint64_t size_bytes, const void *bytes) {
        entry.kind = kind;
        entry.address = address;
        entry.size_bytes = size_bytes;
        entry.bytes = bytes;
        stopped = callback && !callback(&entry, context);
        entry.procedure = 0;
        return stopped ? TY_E_BUSY : TY_OK; // ends the reading
    }
    ty_status tell_data(uint64_t address, uint64_t size_bytes, const void *bytes) {
        info->data_entries += 1;
        info->changed_bytes += size_bytes;
        return tell(TY_LOG_DATA, address, size_bytes, bytes);
    }

    // The bytes of a word that changed, neighbours together.
    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        char bytes[sizeof value];
        memcpy(bytes, &value, sizeof bytes);
        while (mask) {
            unsigned first = static_cast<unsigned>(std::countr_zero(mask)) / 8;
            unsigned count = static_cast<unsigned>(std::countr_one(mask >> (8 * first))) / 8;
            if (ty_status status = tell_data(base + word * 8 + first, count, bytes + first))
                return status;
            mask = first + count < 8 ? mask & (UINT64_MAX << (8 * (first + count))) : 0;
        }
        return TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *bytes) {
        return tell_data(base + first * 8, count * 8, bytes);
    }
    ty_status zeros(uint64_t first, uint64_t count) {
        static constexpr char zero_bytes[4096] = {};
        for (uint64_t at = first * 8, end = (first + count) * 8; at < end;) {
            uint64_t bytes = end - at < sizeof zero_bytes ? end - at : sizeof zero_bytes;
            if (ty_status status = tell_data(base + at, bytes, zero_bytes))
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
            return tell(TY_LOG_ALLOC, address, operation.size, nullptr);
        case operation_kind::free:
            return tell(TY_LOG_FREE, address, 0, nullptr);
        case operation_kind::resize:
            return tell(TY_LOG_RESIZE, address, operation.size, nullptr);
        case operation_kind::root:
            return tell(TY_LOG_ROOT, address, operation.byte_count, operation.bytes);
        case operation_kind::procedure:
            entry.procedure = operation.procedure;
            return tell(TY_LOG_PROCEDURE, 0, operation.byte_count, operation.bytes);
        }
        return TY_E_DAMAGED;
    }

    static ty_status record(void *context, uint64_t sequence, uint64_t position, const uint8_t *bytes, size_t size) {
        auto &self = *static_cast<entry_teller *>(context);
        self.entry.sequence = sequence;
        self.entry.position = position;
        ty_status status = self.tell(TY_LOG_TRANSACTION, 0, size, nullptr);
        if (!status)
            status = record_decode(bytes, size, self.scope, self);
        if (status == TY_E_DAMAGED)
            return failure(TY_E_DAMAGED, "read transaction %llu: its record makes no sense",
                           (unsigned long long)sequence)
                .at(self.name, position)
                .remedy("restore the heap's files from a backup");
        return status;
    }
};

void take_header(const log_header_2 &header, ty_log_info *info) {
    info->format_version = header.version;
    memcpy(info->heap_identity, header.heap_identity, sizeof info->heap_identity);
    info->log_identity = header.log_identity;
    info->size_bytes = header.ring_bytes;
    info->block_bytes = header.block_bytes;
}

// What an open would replay.
ty_status read_behind_snapshot(const char *heap_path, const log_place &place, ty_log_info *info,
                               ty_log_entry_callback *callback, void *context) {
    ty_info heap{};
    image_log known{};
    const ty_open_options &options = *place.options;
    if (ty_status status = image_read_info(heap_path, *options.storage, &heap, &known, options.journal_path))
        return status;
    if (!known.log_identity)
        return failure(TY_E_MISMATCH, "read the log of a heap that has none").at(heap_path).remedy("check the path");
    log_identity identity{};
    memcpy(identity.heap, known.heap_identity, sizeof identity.heap);
    identity.log = known.log_identity;
    log_header_2 header;
    if (ty_status status = log_check(*place.sink, place.path, &identity, &header))
        return status;
    info->of_heap = true;
    info->start_position = info->end_position = known.mark.position;
    info->first_sequence = known.mark.sequence + 1;
    bool older = false; // of no consequence
    if (ty_status status = heap.in_use ? TY_OK : place_check_open(place, header, known, &older); status || older)
        return status;
    constexpr uint64_t words_per_page = os::page_bytes / 8;
    entry_teller teller{info,
                        place.path,
                        reinterpret_cast<uint64_t>(heap.base),
                        {heap_header_pages * words_per_page, heap.limit_bytes / 8},
                        callback,
                        context};
    log_contents contents{};
    ty_status status =
        log_scan(*place.sink, place.path, identity, mark_of(known.mark), {&teller, entry_teller::record}, &contents);
    info->end_position = contents.end.position;
    info->transactions = contents.records;
    info->frames = contents.frames;
    info->record_bytes = contents.record_bytes;
    return teller.stopped ? TY_OK : status;
}

// There is no log where it should be: should there be one?
ty_status tell_missing(const char *heap_path, const log_place &place) {
    ty_info heap{};
    if (ty_status status =
            image_read_info(heap_path, *place.options->storage, &heap, nullptr, place.options->journal_path))
        return status;
    if (!heap.log_identity)
        return failure(TY_E_MISMATCH, "read the log of a heap that has none").at(heap_path).remedy("check the path");
    return failure(TY_E_NOT_FOUND, "read the log: there is none")
        .at(place.path)
        .remedy("put the log back, or name it with log_path");
}

// What the scrub of all files of a heap finds.
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

// What an open would say of the log, and what it does not look at.
void scrub_log(const char *path, const image_log &told, log_place &place, findings &found) {
    ty_status status = place_open(place, false);
    if (status == TY_E_NOT_FOUND && told.closed)
        return; // of no consequence
    if (status == TY_E_NOT_FOUND)
        status = refuse_missing_log(place);
    ty_log_info info{};
    if (!status)
        status = read_behind_snapshot(path, place, &info, nullptr, nullptr);
    log_identity identity{};
    memcpy(identity.heap, told.heap_identity, sizeof identity.heap);
    uint64_t other = 0;
    log_header_2 header{};
    if (status == TY_E_MISMATCH && place.sink && told.closed &&
        (place_is_unused(place, identity, &other) ||
         (!log_check(*place.sink, place.path, nullptr, &header) && is_earlier_log(header, told))))
        return; // the next open makes one
    if (status)
        findings::note(ty_error_text(), &found);
    else if (log_half_damaged(*place.sink))
        findings::note("one of the log's two headers is damaged; the other one serves, and the next open mends it",
                       &found);
}

} // namespace

ty_status txn_log_read(const char *heap_path, const ty_open_options &options, ty_log_info *info,
                       ty_log_entry_callback *callback, void *context) {
    log_place place{};
    if (ty_status status = place_create(place, heap_path, options))
        return status;
    log_header_2 header;
    ty_status status = place_open(place, false);
    if (status == TY_E_NOT_FOUND && heap_path)
        status = tell_missing(heap_path, place);
    if (!status && !(status = log_check(*place.sink, place.path, nullptr, &header))) {
        take_header(header, info);
        if (heap_path)
            status = read_behind_snapshot(heap_path, place, info, callback, context);
    }
    place_destroy(place);
    return status;
}

ty_status txn_scrub(const char *path, const ty_open_options &options, ty_progress_callback *progress,
                    ty_problem_callback *problem, void *context) {
    findings found{progress, problem, context};
    ty_status status =
        image_scrub(path, *options.storage, findings::show, findings::note, &found, options.journal_path);
    if (status && !(status == TY_E_DAMAGED && found.count))
        return status;
    ty_info heap{};
    image_log told{};
    if ((status = image_read_info(path, *options.storage, &heap, &told, options.journal_path)))
        return status;
    if (told.log_identity && !told.version_1) {
        log_place place{};
        if ((status = place_create(place, path, options)))
            return status;
        scrub_log(path, told, place, found);
        place_destroy(place);
    }
    if (found.count)
        return failure(TY_E_DAMAGED, "find the files sound: %llu problems", (unsigned long long)found.count)
            .at(path)
            .remedy("restore the heap's files from copies made together");
    return TY_OK;
}

} // namespace taiyen
