// The façade of the log layer: a ring of frames on a sink, group commit, and reading it back. It knows nothing of
// heaps. docs/design/log.md tells how it works; log_layout.hpp is the form on the sink.
#pragma once

#include "../os/os.hpp"
#include "frames/log_layout.hpp"
#include "records/records.hpp"
#include <taiyen/log.h>
#include <taiyen/storage.h>

namespace taiyen {

// A place in a log, as a snapshot keeps it: all transactions up to `sequence` are before it.
struct log_mark {
    uint64_t position; // counts bytes of the ring and rises for ever; the place is position % ring_bytes
    uint64_t session;  // 0: nothing was ever logged
    uint64_t sequence;
};

// ---- Sinks (sinks.cpp, file_sink.cpp)

struct file_sink; // a ty_log_sink over a ty_storage file; its path: as resolve_path gives it
ty_status file_sink_create(const char *path, uint64_t size_bytes, const ty_storage &storage, ty_log_sink **sink);
// A new file under a name that it does not keep (open_for_creation); as closed to others as `like`.
ty_status file_sink_make(const char *creation_path, uint64_t size_bytes, const ty_storage &storage,
                         const storage_file *like, ty_log_sink **sink);
ty_status file_sink_open(const char *path, bool writable, const ty_storage &storage, ty_log_sink **sink);
ty_status memory_sink_create(void *memory, uint64_t size_bytes, bool write_back, uint32_t write_latency_ns,
                             ty_log_sink **sink);
ty_status tee_sink_create(const ty_log_sink *first, const ty_log_sink *second, ty_log_sink **sink);
void sink_destroy(ty_log_sink *sink);
ty_status sink_protect(ty_log_sink *sink, const storage_file &like); // N4. NULL: TY_OK
// Whether what a sink of the library's own holds is found again (N3). NULL: TY_OK.
ty_status sink_check(ty_log_sink *sink);

// ---- Making and checking a log

struct log_identity {
    uint8_t heap[16];
    uint64_t log;
};

// Writes the header of a log that holds nothing; durable when it returns.
ty_status log_format(const ty_log_sink &sink, const log_identity &identity, const log_open_2 &open = {});
// Reads it. Errors: TY_E_FORMAT (also: of another version; found tells which), TY_E_DAMAGED, TY_E_MISMATCH (of another
// heap, or another log of this one). identity NULL: any. found may be NULL.
ty_status log_check(const ty_log_sink &sink, const char *name, const log_identity *identity, log_header_2 *found);
// Whether one of its two headers is damaged and the other one serves.
bool log_half_damaged(const ty_log_sink &sink);
// The log names `open` from now on, durably when it returns, and until the next time also `previous`, the one that it
// names now.
// L7: a header is overwritten only while the other one is durable and names `previous`.
// buffer: of log_name_bytes, so that it does not fail for want of memory.
inline constexpr size_t log_name_bytes = log_block_bytes_max_1;
ty_status log_name_open(const ty_log_sink &sink, const char *name, const log_identity &identity,
                        const log_open_2 &previous, const log_open_2 &open, const io_buffer &buffer);
inline bool names_open(const log_header_2 &header, const log_open_2 &open) {
    return header.open == open || (header.previous.number && header.previous == open);
}

// ---- Reading

// Reads frames from `from` to the end of what is there, and hands each record on, in order.
// A frame that is not valid ends it: TY_OK; unless a later frame shows that it had been stable: TY_E_DAMAGED. Where the
// frames at `from` were overwritten, or continue a snapshot that is missing: TY_E_DAMAGED.
struct log_reader {
    void *context;
    // A record lies whole in memory: bytes[0..size), and 8 bytes before it can be read, too. sequence counts up by one
    // each time. NULL: none wanted.
    ty_status (*record)(void *context, uint64_t sequence, uint64_t position, const uint8_t *bytes, size_t size);
    // Where an earlier scan ended: it ends there without looking further. NULL: not known.
    const log_mark *end = nullptr;
    // A thread may read what follows meanwhile. The functions are called by the caller's alone.
    bool read_ahead = false;
    // Behind a frame: a reading could begin here for which all that was read is in a snapshot. NULL: not wanted.
    ty_status (*frame)(void *context, const log_mark &here) = nullptr;
};
struct log_contents {
    log_mark end;  // behind the last valid frame
    log_mark tail; // records behind its sequence are not known to be durable; reading from here gives them (L4)
    uint64_t frames;
    uint64_t records;
    uint64_t record_bytes;
};
ty_status log_scan(const ty_log_sink &sink, const char *name, const log_identity &identity, log_mark from,
                   const log_reader &reader, log_contents *contents);

// ---- Writing

struct log;
struct log_options {
    const ty_log_sink *sink; // the caller's
    const char *name;        // for error texts: the path
    log_identity identity;
    log_mark start; // a snapshot stands there: nothing before it is needed
    log_mark end;   // where log_scan from `start` ended; start == end for an empty log. New frames follow in a session
                    // of their own
    log_mark tail;  // of that scan
    bool thread;    // a thread of the library writes what nobody waits for; else appenders and waiters do
    // Asked after each write: whether all else is there without which the log is of no use. NULL: yes.
    ty_status (*check)(void *context) = nullptr;
    void *context = nullptr;
};
ty_status log_start(const log_options &options, log **made);
// Ends the thread; frees it. What was appended and is not stable is dropped (log_wait first).
void log_stop(log *l);
// Ends the thread alone, while nobody commits: no write, and no check, is under way then. And starts it again; where
// that fails, appenders and waiters write.
void log_rest(log *l);
void log_resume(log *l);

// Room for one record of at most `bytes` at *place. Fails with TY_E_SPACE, without a detail, and changes nothing, where
// the ring has no room for it until a snapshot frees some, or where it exceeds log_record_max: then the caller takes a
// snapshot in place of it. Waits for writes under way if the buffers are full. From here to log_append_end appends of
// other threads wait.
ty_status log_append_begin(log *l, size_t bytes, uint8_t **place);
// The record is `bytes` long (0: none, the append is given up). Returns its sequence.
uint64_t log_append_end(log *l, size_t bytes);
size_t log_record_max(const log *l); // half the buffer

// Waits until all records up to `sequence`, as far as they are appended, are stable; writes them itself where nobody
// else does. A failed write leaves the log *broken*: TY_E_IO (or what the sink said) here and from every append, until
// log_continue.
ty_status log_wait(log *l, uint64_t sequence);
uint64_t log_stable(log *l); // the last stable sequence
uint64_t log_last(log *l);   // the last appended one
bool log_broken(log *l);
// Breaks the log, as a failed write does: a snapshot in place of a log write failed, and may be found all the same,
// with the transaction that the log does not hold (X7, txn.md). The status and its detail are of that.
void log_break(log *l, ty_status status);

// The place behind everything appended so far, for a snapshot that is collected now. No append may be under way.
log_mark log_mark_now(log *l);
// A snapshot with that mark is durable: all up to its sequence is stable, and the space before it is free.
void log_release(log *l, log_mark mark);
// The same for a snapshot taken in place of a log write: since log_mark_now nothing was appended; mark.sequence is the
// mark's, or one more when the snapshot holds a transaction that the log does not. What follows starts a session that
// says so. Mends a broken log: what it could not write, the snapshot holds. Waits for writes under way.
void log_continue(log *l, log_mark mark);

struct log_figures {
    uint64_t frames;
    uint64_t bytes;      // written to the sink
    uint64_t used_bytes; // of the ring
    uint64_t ring_bytes;
};
log_figures log_get_figures(log *l);

} // namespace taiyen
