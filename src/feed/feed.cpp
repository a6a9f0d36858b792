// A change feed: reads a log beside its writer, from a position on.
#include "position.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

using namespace taiyen;

namespace {

constexpr uint64_t poll_ns = 5'000'000;
// A close, or a change that is in a snapshot alone, shows in no new frame: so if nothing is found, the heap's files are
// checked once in this time.
constexpr uint64_t look_at_files_ns = 1'000'000'000;

} // namespace

struct ty_feed {
    const char *path; // allocated after the struct
    ty_open_options options;
    ty_heap *heap;
    uint64_t looked_ns; // when the files were checked; 0: not yet
};

namespace taiyen {
namespace {

ty_status other_history(const ty_feed &f, const ty_feed_position &position) {
    return failure(TY_E_MISMATCH, "follow a heap after transaction %llu: the position is of another history of it",
                   (unsigned long long)position.lsn)
        .at(f.path)
        .remedy("the files are not those that were followed, or were restored from older ones: begin with a base");
}

// LK3: a change feed whose next record is gone reports it.
ty_status gone(const ty_feed &f, const ty_feed_position &position, const snapshot_position &newest,
               ty_feed_position *base) {
    if (base)
        *base = position_of(newest);
    return failure(TY_E_NOT_FOUND, "follow a heap after transaction %llu: the next one is not in the log any more",
                   (unsigned long long)position.lsn)
        .at(f.path)
        .remedy("begin again with a base; a larger log (log_bytes) holds more");
}

// Passes the records of one reading on. LK1: all records in order, each bound to the one before. LK2: they are durable.
struct feed_reader {
    uint64_t log;
    uint64_t last;     // LSN; the next record must follow it
    uint64_t previous; // hashes
    uint64_t hash;
    bool again; // the position's last record is read first, once more
    bool delivers;
    ty_feed_callback *callback;
    void *context;
    uint64_t delivered = 0;
    bool other = false; // the position's last record is another one
    bool stopped = false;

    ty_status stop() {
        stopped = true;
        return TY_E_BUSY;
    }
    static ty_status record(void *context, const log_record &record) {
        auto &self = *static_cast<feed_reader *>(context);
        if (record.lsn != self.last + 1) // an independent one, after a gap
            return self.stop();
        const uint64_t previous = self.again ? self.previous : self.hash;
        const uint64_t hash = record_hash(self.log, previous, record.lsn, record.bytes, record.size);
        self.last = record.lsn;
        if (self.again && !(fault("last_record_followed_twice") && self.log != 0)) {
            self.other = hash != self.hash;
            self.again = false;
            return self.other ? self.stop() : TY_OK;
        }
        if (!self.delivers)
            return TY_OK;
        const ty_feed_record one{record.lsn, previous, hash, record.bytes, record.size};
        self.delivered += 1;
        self.previous = previous;
        self.hash = hash;
        return self.callback(&one, self.context) ? TY_OK : self.stop();
    }
};

feed_reader reader_at(const ty_feed_position &position, ty_feed_callback *callback, void *context) {
    return {position.log_identity,
            position.lsn - position.has_record,
            position.previous,
            position.hash,
            position.has_record != 0,
            callback != nullptr,
            callback,
            context};
}

// One reading of the log after a position.
struct feed_reading {
    log_contents contents{};
    bool found = false; // the position's last record is there, or it has none
    bool other = false; // another record is there
    bool more = false;  // there are records after it
    uint64_t delivered = 0;
};

ty_status scan(const log_view &view, const log_positions &from, log_reader &reader, feed_reader &t,
               const feed_reading &before, feed_reading *read) {
    log_identity identity{};
    memcpy(identity.heap, view.header.heap_identity, sizeof identity.heap);
    identity.log = view.header.log_identity;
    reader.context = &t;
    reader.record = feed_reader::record;
    reader.in_use = true;
    const ty_status status = log_scan(*view.sink, view.path, identity, from, reader, &read->contents);
    read->found = !t.again && !t.other;
    read->other = before.other || t.other;
    read->delivered = t.delivered;
    return t.stopped ? TY_OK : status;
}

// Passes no records on.
ty_status look(const log_view &view, const ty_feed_position &position, feed_reading *read) {
    feed_reader t = reader_at(position, nullptr, nullptr);
    log_reader reader{};
    const ty_status status = scan(view, log_positions_of(position), reader, t, {}, read);
    read->more = read->found && read->contents.end.lsn > position.lsn;
    return status;
}

// LK2: records that are passed on are durable: known to be durable, or flushed after they were seen. What the heap's
// open found in its log was acknowledged, and perhaps passed on, by a process that crashed; the log need not know yet
// that it is durable.
ty_status deliver(const ty_feed &f, const log_view &view, ty_feed_position *position, ty_feed_callback *callback,
                  void *context, feed_reading *read) {
    log_reader reader{};
    feed_reading seen;
    uint64_t durable = 0;
    if (f.heap)
        if (ty_status status = txn_wait_beyond(f.heap, UINT64_MAX, 0, &durable))
            return status;
    if (f.heap && durable >= txn_recovered(f.heap)) {
        reader.up_to = fault("followed_while_it_is_written") ? UINT64_MAX : durable;
    } else {
        const ty_status status = look(view, *position, &seen);
        *read = seen;
        // A single ring ends where a record is missing; the next call reports that.
        if (!seen.more || (status && position->streams > 1))
            return status;
        if (!fault("followed_before_it_is_durable"))
            if (ty_status flushed = sink_flush(view.own))
                return flushed;
        reader.end = &seen.contents.end;
    }
    feed_reader t = reader_at(*position, callback, context);
    const ty_status status = scan(view, log_positions_of(*position), reader, t, seen, read);
    if (!t.delivered)
        return status;
    position->lsn = t.last;
    position->previous = t.previous;
    position->hash = t.hash;
    position->has_record = 1;
    position->open_number = view.header.open.number;
    position->open_random = view.header.open.random;
    set_log_positions(*position, read->contents.next);
    seal_position(*position);
    return TY_OK;
}

// LK4: a position of another history is refused; a copy that continued elsewhere has opens of its own.
bool is_of_this_history(const log_header &header, const ty_feed_position &position) {
    const open_identity open{position.open_number, position.open_random};
    if (header.open.number <= open.number)
        return header.open == open || (fault("other_history_followed") && header.open.number == open.number);
    return header.previous.number != open.number || header.previous == open;
}

// No record was passed on: there is none, or the next one is gone, or damaged.
ty_status explain_no_record(ty_feed &f, const log_view &view, ty_feed_position *position, ty_feed_callback *callback,
                            void *context, ty_feed_position *base, ty_status status, feed_reading read) {
    ty_error why = keep_error();
    snapshot_position newest{};
    if (ty_status failed = txn_newest_snapshot(f.path, f.options, &newest))
        return failed;
    f.looked_ns = os::now_ns();
    if (newest.identity.log != position->log_identity)
        return gone(f, *position, newest, base);
    if (!status && read.found && newest.redo_points.lsn > position->lsn) { // it may have been written meanwhile
        status = deliver(f, view, position, callback, context, &read);
        if (read.delivered || read.other)
            return read.other ? other_history(f, *position) : TY_OK;
        if (status && status != TY_E_BUSY && status != TY_E_DAMAGED)
            return status;
        why = keep_error();
    }
    const bool beyond = newest.redo_points.lsn > position->lsn && (status || !fault("feed_passes_over_a_snapshot"));
    if (beyond || (!read.found && newest.redo_points.lsn == position->lsn))
        return gone(f, *position, newest, base);
    if (!status)
        return read.found ? TY_OK : other_history(f, *position);
    return ty_error_set(TY_E_DAMAGED, why.system_error, why.operation, why.path, why.offset,
                        "what follows was acknowledged and is unreadable: begin with a base");
}

bool is_look_due(const ty_feed &f) {
    return !f.looked_ns || os::now_ns() - f.looked_ns >= look_at_files_ns;
}

ty_status read_log(ty_feed &f, const log_view &view, ty_feed_position *position, ty_feed_callback *callback,
                   void *context, ty_feed_position *base) {
    if (memcmp(view.header.heap_identity, position->heap_identity, sizeof position->heap_identity))
        return failure(TY_E_MISMATCH, "follow a heap from a position in another one").at(f.path);
    feed_reading read;
    if (view.header.log_identity != position->log_identity || view.header.streams != position->streams)
        return explain_no_record(f, view, position, callback, context, base, TY_E_BUSY, read);
    if (!is_of_this_history(view.header, *position))
        return other_history(f, *position);
    const ty_status status = deliver(f, view, position, callback, context, &read);
    if (read.delivered)
        return TY_OK;
    if (read.other)
        return other_history(f, *position);
    if (status && status != TY_E_BUSY && status != TY_E_DAMAGED)
        return status;
    if (!status && read.found && !is_look_due(f))
        return TY_OK;
    return explain_no_record(f, view, position, callback, context, base, status, read);
}

// LK3: what only a snapshot holds shows in no frame.
ty_status look_at_files(ty_feed &f, const ty_feed_position &position, bool *more) {
    snapshot_position newest{};
    if (ty_status status = txn_newest_snapshot(f.path, f.options, &newest))
        return status;
    *more = newest.redo_points.lsn > position.lsn;
    f.looked_ns = *more ? 0 : os::now_ns(); // the next reading checks for itself
    return TY_OK;
}

// Polls until the log shows a frame after its end.
ty_status poll(const log_view &view, const ty_feed_position &position, uint64_t timeout_ns, bool *more) {
    const uint64_t begun = os::now_ns();
    const std::atomic<uint32_t> nobody_wakes{0};
    uint64_t print = 0;
    feed_reading first, second;
    *more = look(view, position, &first) != TY_OK || first.more || !first.found;
    if (*more)
        return TY_OK;
    if (ty_status status = log_peek(*view.sink, view.header, first.contents.end, &print))
        return status;
    // This finds what was written before the block was read; what is written later changes the block.
    *more = look(view, position, &second) != TY_OK || second.more || !(first.contents.end == second.contents.end);
    while (!*more) {
        const uint64_t waited = os::now_ns() - begun;
        if (waited >= timeout_ns)
            return TY_OK;
        os::wait_on(nobody_wakes, 0, timeout_ns - waited < poll_ns ? timeout_ns - waited : poll_ns);
        uint64_t now = 0;
        if (ty_status status = log_peek(*view.sink, view.header, first.contents.end, &now))
            return status;
        *more = now != print;
    }
    return TY_OK;
}

} // namespace

ty_status feed_open(const char *path, const ty_open_options &options, ty_heap *heap, ty_feed **feed) {
    char *resolved = nullptr;
    if (ty_status status = resolve_path(*options.storage, path, &resolved))
        return status;
    const bool same = !heap || strcmp(resolved, image_path(heap)) == 0;
    const size_t length = strlen(resolved) + 1;
    void *memory = same ? os::internal_calloc(1, sizeof(ty_feed) + length) : nullptr;
    if (memory) {
        char *copy = static_cast<char *>(memory) + sizeof(ty_feed);
        memcpy(copy, resolved, length);
        *feed = new (memory) ty_feed{copy, options, heap, 0};
    }
    free(resolved);
    if (!same)
        return failure(TY_E_ARGUMENT, "follow a heap: the option heap is another one").at(path);
    return memory ? TY_OK
                  : failure(TY_E_MEMORY, "follow a heap").at(path).remedy("free memory, or raise the process's limits");
}

void feed_close(ty_feed *feed) {
    free(feed);
}

ty_heap *follow_heap(const ty_feed *feed) {
    return feed->heap;
}

ty_status feed_base(ty_feed *feed, ty_feed_position *position, bool *receives) {
    snapshot_position newest{};
    if (ty_status status = txn_newest_snapshot(feed->path, feed->options, &newest))
        return status;
    *position = position_of(newest);
    if (receives)
        *receives = newest.receives;
    return TY_OK;
}

ty_status feed_read(ty_feed *feed, ty_feed_position *position, ty_feed_callback *callback, void *context,
                    ty_feed_position *base) {
    if (ty_status status = check_position(*position))
        return status;
    log_view view;
    ty_status status = txn_open_log(feed->path, feed->options, &view);
    if (!status) {
        status = read_log(*feed, view, position, callback, context, base);
        txn_close_log(view);
    }
    return status;
}

ty_status feed_wait(ty_feed *feed, const ty_feed_position &position, uint32_t timeout_ms, bool *more) {
    if (ty_status status = check_position(position))
        return status;
    const uint64_t timeout_ns = uint64_t{timeout_ms} * 1'000'000;
    if (feed->heap) {
        uint64_t durable = 0;
        ty_status status = txn_wait_beyond(feed->heap, position.lsn, 0, &durable);
        if (!status && txn_recovered(feed->heap) <= position.lsn) // otherwise it can be passed on, durable or not
            status = txn_wait_beyond(feed->heap, position.lsn, timeout_ns, &durable);
        *more = !status && std::max(durable, txn_recovered(feed->heap)) > position.lsn;
        return status;
    }
    if (is_look_due(*feed))
        if (ty_status status = look_at_files(*feed, position, more); status || *more)
            return status;
    log_view view;
    ty_status status = txn_open_log(feed->path, feed->options, &view);
    if (!status) {
        *more = true; // an unusable position is reported by the next call
        if (view.header.log_identity == position.log_identity && view.header.streams == position.streams)
            status = poll(view, position, timeout_ns, more);
        txn_close_log(view);
    }
    return status;
}

} // namespace taiyen
