// The log as a file or a sink: found, created, replaced. docs/design/txn.md, "Open, attach, detach, close".
#include "open_steps.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t log_bytes_default = uint64_t{256} << 20;
constexpr const char *sink_name = "(the program's log)";

// Whether the log has no transactions from its beginning on. A ring that has wrapped cannot be read from there: it
// counts as used.
bool holds_nothing(const ty_log_sink &sink, const char *name, const log_header &header) {
    log_identity identity{};
    memcpy(identity.heap, header.heap_identity, sizeof identity.heap);
    identity.log = header.log_identity;
    log_contents contents{};
    const log_positions begin{0, header.streams};
    return log_scan(sink, name, identity, begin, {}, &contents) == TY_OK && contents.frames == 0;
}

ty_status refuse_foreign_log(const log_location &location) {
    return failure(TY_E_MISMATCH, "make a log: there is a file that is not a log")
        .at(location.path)
        .remedy("move it away, or name another path with log_path");
}

// Its heap may need the log although it holds nothing yet: a heap that crashed is not opened without its log.
ty_status refuse_other_heap(const log_location &location, const log_header &header) {
    char identity[2 * sizeof header.heap_identity + 1];
    for (size_t i = 0; i < sizeof header.heap_identity; ++i)
        snprintf(identity + 2 * i, 3, "%02x", header.heap_identity[i]);
    return failure(TY_E_MISMATCH, "make a log: there is one of another heap, %s", identity)
        .at(location.path)
        .remedy("give each heap a log of its own with log_path; move this one away only if its heap is gone");
}

// Whether the open log is another one of the heap that holds nothing: one that an open was about to give the heap.
bool is_unused(const log_location &location, const log_identity &heap, uint64_t *log_identity) {
    log_header header;
    if (log_check(*location.sink, location.path, nullptr, &header) ||
        memcmp(header.heap_identity, heap.heap, sizeof heap.heap) ||
        !holds_nothing(*location.sink, location.path, header))
        return false;
    *log_identity = header.log_identity;
    return true;
}

// Whether it is another log of the same heap, of an earlier open, and the heap was closed cleanly since.
bool is_earlier_log(const log_header &header, const image_log &recorded) {
    return recorded.closed && header.log_identity != recorded.log_identity &&
           header.open.number < recorded.open.number &&
           !memcmp(header.heap_identity, recorded.heap_identity, sizeof header.heap_identity);
}

// A heap without a log may have its journal where a log would lie: so this is checked only if there is a log, or will
// be.
ty_status check_apart(const log_location &location, const char *heap_path) {
    const ty_open_options &options = *location.options;
    const char *same = nullptr;
    if (ty_status status = image_is_same_file(heap_path, options, location.path, &same); status || !same)
        return status;
    if (!options.log_path && options.kind != TY_TRANSACTIONAL) {
        log_location look{&options, location.path, nullptr, nullptr, nullptr};
        const bool is_log = !log_location_open(look, false) && !log_check(*look.sink, look.path, nullptr, nullptr);
        sink_destroy(look.own);
        if (!is_log)
            return TY_OK;
    }
    return failure(TY_E_ARGUMENT, "use one file as the heap's log and its %s", same)
        .at(location.path)
        .remedy("give log_path and journal_path paths of their own, or none");
}

// Creates the file under another name, then renames it.
ty_status make_file(log_location &location, const log_identity &identity, const open_identity &open,
                    const log_shape &shape) {
    const ty_open_options &options = *location.options;
    const ty_storage &storage = *options.storage;
    char *creation_path = path_with(location.path, creation_suffix);
    if (!creation_path)
        return TY_E_MEMORY;
    uint64_t bytes = shape.bytes ? shape.bytes : options.log_bytes ? options.log_bytes : log_bytes_default;
    ty_log_sink *sink = nullptr;
    ty_status status =
        file_sink_make(creation_path, bytes / TY_STORAGE_BLOCK * TY_STORAGE_BLOCK, storage, location.image, &sink);
    if (!status && !(status = log_format(*sink, identity, open, shape.streams)))
        status = os::call_whole(storage.rename, storage.context, creation_path, location.path);
    if (status && sink) {
        const ty_error error = keep_error();
        (void)os::call_whole(storage.remove, storage.context, creation_path); // the disk may be gone
        (void)report_again(error, status);
    }
    sink_destroy(sink);
    if (status)
        name_final_file(storage, creation_path, location.path);
    free(creation_path);
    if (status)
        return status;
    if (!(status = os::call_whole(storage.flush_directory, storage.context, location.path)))
        status = log_location_open(location, true);
    if (status)
        storage_file{&storage}.remove_quietly(location.path);
    return status;
}

} // namespace

ty_status log_location_create(log_location &location, const char *heap_path, const ty_open_options &options) {
    location = {&options, nullptr, nullptr, nullptr, nullptr};
    if (!options.log) {
        ty_status status = resolve_beside(*options.storage, heap_path, log_suffix, options.log_path, &location.path);
        if (!status && heap_path)
            status = check_apart(location, heap_path);
        if (status) {
            free(location.path);
            location.path = nullptr;
        }
        return status;
    }
    location.path = path_with(sink_name, "");
    return location.path ? TY_OK : TY_E_MEMORY;
}

ty_status log_location_of(log_location &location, const char *heap_path, const ty_open_options &options) {
    char *resolved = nullptr;
    if (heap_path)
        if (ty_status status = resolve_path(*options.storage, heap_path, &resolved))
            return status;
    ty_status status = log_location_create(location, resolved, options);
    free(resolved);
    return status;
}

void log_location_destroy(log_location &location) {
    sink_destroy(location.own);
    free(location.path);
    location = {};
}

ty_status log_location_refuse_missing(const log_location &location, const char *operation) {
    constexpr const char *remedy = "put the log back, which may hold transactions, or name it with log_path";
    if (location.empty)
        return failure(TY_E_NOT_FOUND, "%s: there is a file of 0 bytes", operation)
            .at(location.path)
            .cause(TY_CAUSE_IN_OPERATION)
            .remedy("%s", remedy);
    return failure(TY_E_NOT_FOUND, "%s", operation).at(location.path).remedy("%s", remedy);
}

ty_status log_location_open(log_location &location, bool writable) {
    if (!location.options->log) {
        if (ty_status status = file_sink_open(location.path, writable, *location.options->storage, &location.own))
            return status;
        location.sink = location.own;
        if (location.sink->size_bytes)
            return TY_OK;
        sink_destroy(location.own);
        location.sink = location.own = nullptr;
        location.empty = true;
        return log_location_refuse_missing(location, "read the log");
    }
    location.sink = location.options->log;
    ty_status status = log_check(*location.sink, location.path, nullptr, nullptr);
    return status == TY_E_FORMAT ? TY_E_NOT_FOUND : status;
}

// A creation that failed or crashed may leave its log: one that no open has named yet, or one named by the creation's
// own open alone. The latter looks like that of a heap that crashed before its first commit; its name, beside a missing
// image, identifies it.
bool left_by_creation(const log_location &location, const log_header &header) {
    if (!holds_nothing(*location.sink, location.path, header))
        return false;
    const bool own_name = !location.options->log && !location.options->log_path;
    return header.number == 1 || fault("log_of_another_heap_replaced") ||
           (own_name && header.number == 2 && header.open.number == 2);
}

// Nothing that a heap may need is overwritten: only what is this heap's own, or was never used.
ty_status log_location_check(log_location &location, const log_identity &identity) {
    ty_status status = log_location_open(location, true);
    if (status == TY_E_NOT_FOUND)
        return TY_OK;
    if (status)
        return status == TY_E_FORMAT ? refuse_foreign_log(location) : status;
    log_header header{};
    status = log_check(*location.sink, location.path, nullptr, &header);
    bool ours = !memcmp(header.heap_identity, identity.heap, sizeof identity.heap);
    if (status == TY_E_FORMAT)
        return refuse_foreign_log(location);
    if (status)
        return status;
    return ours || left_by_creation(location, header) ? TY_OK : refuse_other_heap(location, header);
}

ty_status log_location_make(log_location &location, const log_identity &identity, const open_identity &open,
                            const log_shape &shape) {
    if (location.options->log)
        return log_format(*location.sink, identity, open, shape.streams);
    sink_destroy(location.own);
    location.sink = location.own = nullptr;
    return make_file(location, identity, open, shape);
}

ty_status log_location_check_open(const log_location &location, const log_header &header, const image_log &recorded,
                                  bool *older) {
    *older = false;
    if (names_open(header, recorded.open))
        return TY_OK;
    constexpr const char *restore = "put the files of the heap's last open back, or restore all of them from copies "
                                    "made together";
    if (header.open.number > recorded.open.number)
        return failure(TY_E_MISMATCH, "open an image that is older than its log")
            .at(location.path, 0)
            .remedy("%s", restore);
    if (header.open.number == recorded.open.number)
        return failure(TY_E_MISMATCH, "use the log of another copy of this heap")
            .at(location.path, 0)
            .remedy("%s", restore);
    *older = recorded.closed;
    if (recorded.closed)
        return TY_OK;
    return failure(TY_E_MISMATCH, "use a log that is older than its image")
        .at(location.path, 0)
        .remedy("put the log of the heap's last open back, name it with log_path, or restore all files of the heap "
                "from copies made together");
}

ty_status log_location_check_not_newer(const log_location &location, const image_log &recorded) {
    log_location look{location.options, location.path, nullptr, nullptr, nullptr};
    log_header header{};
    ty_status status = location.options->log ? TY_E_NOT_FOUND : log_location_open(look, false);
    if (!status)
        status = log_check(*look.sink, look.path, nullptr, &header);
    const bool ours = !status && !memcmp(header.heap_identity, recorded.heap_identity, sizeof header.heap_identity);
    // An open that was giving the heap this log may have crashed before the image named it: then it took no commit.
    const bool named = ours && names_open(header, recorded.open) && holds_nothing(*look.sink, look.path, header);
    const bool newer = ours && header.open.number > recorded.open.number && !named;
    sink_destroy(look.own);
    if (!newer)
        return TY_OK;
    return failure(TY_E_MISMATCH, "open an image that is older than a log of its heap")
        .at(location.path, 0)
        .remedy("put the newest image and journal back; or move the log away, if what is in it is not wanted");
}

ty_status log_location_find(log_location &location, const log_identity &identity, const image_log &recorded,
                            bool writable, log_header *found, log_fit *fit, uint64_t *other) {
    *fit = log_fit::fits;
    ty_status status = location.sink ? TY_OK : log_location_open(location, writable);
    if (status == TY_E_NOT_FOUND) {
        *fit = log_fit::missing;
        // not closed cleanly
        return recorded.closed ? TY_OK : log_location_refuse_missing(location, "open a heap without its log");
    }
    if (!status)
        status = log_check(*location.sink, location.path, &identity, found);
    bool older = false;
    if (!status)
        status = log_location_check_open(location, *found, recorded, &older);
    else if (status == TY_E_MISMATCH && recorded.closed && is_unused(location, identity, other))
        return *fit = log_fit::unused, TY_OK;
    else if (status == TY_E_MISMATCH && is_earlier_log(*found, recorded))
        return *fit = log_fit::older, TY_OK;
    if (older)
        *fit = log_fit::older;
    return status;
}

ty_status log_location_name_open(log_location &location, const log_identity &identity, const open_identity &previous,
                                 const open_identity &open, const io_buffer &buffer) {
    return log_name_open(*location.sink, location.path, identity, previous, open, buffer);
}

ty_status log_location_make_durable(const log_location &location, const log_header &header) {
    if (location.options->log)
        return TY_OK;
    if (ty_status status = sink_protect(location.own, *location.image))
        return status;
    if (header.number > 1)
        return TY_OK;
    const ty_storage &storage = *location.options->storage;
    return os::call_whole(storage.flush_directory, storage.context, location.path);
}

} // namespace taiyen
