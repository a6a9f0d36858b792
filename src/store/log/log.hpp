// The façade of the log layer, a write-ahead log: rings of frames on a sink, group commit, and reading them back. It
// knows nothing about heaps. docs/design/log.md describes how it works; log_layout.hpp defines the format on the sink.
//
// A log has one log stream or several, each a ring of its own. Its records have LSNs, which rise in each log stream and
// have no gaps over all of them. The log assigns them, or, if many threads append at once, the appenders do, from a
// clock that they share: the form of log_append_end decides.
#pragma once

#include "frames/log_layout.hpp"
#include "records/records.hpp"
#include "src/os/os.hpp"
#include "src/store/store.hpp"
#include <taiyen/log.h>
#include <taiyen/storage.h>

namespace taiyen {

// ---- Sinks (sinks.cpp, file_sink.cpp)

struct file_sink; // a ty_log_sink over a ty_storage file; its path: as resolve_path returns it
ty_status file_sink_create(const char *path, uint64_t size_bytes, const ty_storage &storage, ty_log_sink **sink);
// A new file under a temporary name (open_for_creation); with the same access rights as `like`.
ty_status file_sink_make(const char *creation_path, uint64_t size_bytes, const ty_storage &storage,
                         const storage_file *like, ty_log_sink **sink);
ty_status file_sink_open(const char *path, bool writable, const ty_storage &storage, ty_log_sink **sink);
ty_status memory_sink_create(void *memory, uint64_t size_bytes, bool write_back, uint32_t write_latency_ns,
                             ty_log_sink **sink);
ty_status tee_sink_create(const ty_log_sink *first, const ty_log_sink *second, ty_log_sink **sink);
void sink_destroy(ty_log_sink *sink);
ty_status sink_protect(ty_log_sink *sink, const storage_file &like); // N4: same access rights. NULL: TY_OK
// Whether what a sink of the library holds is still reached by its name (N3). NULL: TY_OK.
ty_status sink_check(ty_log_sink *sink);
// Makes durable what was read of it, if the sink is a file of the library; does nothing for other sinks.
ty_status sink_flush(ty_log_sink *sink);

// ---- Creating and checking a log

struct log_identity {
    uint8_t heap[16];
    uint64_t log;
};

// Writes the header of an empty log; durable when it returns. TY_E_ARGUMENT: the sink is smaller than log_bytes_min.
ty_status log_format(const ty_log_sink &sink, const log_identity &identity, const open_identity &open = {},
                     uint32_t streams = 1);
uint64_t log_bytes_min(uint32_t block_bytes, uint32_t streams);
// Reads the header. Errors: TY_E_FORMAT (also: of another version, which `found` shows), TY_E_DAMAGED, TY_E_MISMATCH
// (of another heap, or another log of this one). identity NULL: any. found may be NULL.
ty_status log_check(const ty_log_sink &sink, const char *name, const log_identity *identity, log_header *found);
// Whether one of its two headers is damaged and the other one is used.
bool log_half_damaged(const ty_log_sink &sink);
// The log names `open` from now on, durably when it returns, and until the next call also `previous`, the one that it
// names now.
// L7: a header is overwritten only while the other one is durable and names `previous`.
// buffer: of log_name_bytes, so that it does not fail for lack of memory.
inline constexpr size_t log_name_bytes = log_block_bytes_max;
ty_status log_name_open(const ty_log_sink &sink, const char *name, const log_identity &identity,
                        const open_identity &previous, const open_identity &open, const io_buffer &buffer);

// ---- Reading

struct log_record {
    uint64_t lsn;
    uint64_t position; // offset of its frame
    const uint8_t *bytes;
    size_t size;
    uint32_t stream;
    bool independent;
};

// Reads frames from `from` to the end of the log, and passes records on in the order of their LSNs, without gaps. Where
// an LSN is missing in the middle, which is possible only with several log streams, the records after it are left out,
// except the independent ones: these are passed on, in order. An invalid frame ends a log stream with TY_OK; but if a
// later frame shows that it had been durable, or a frame of any log stream says that the missing record had been, the
// result is TY_E_DAMAGED. So it is where the frames at `from` were overwritten, or continue a snapshot that is missing.
struct log_reader {
    void *context;
    // A record is contiguous in memory, and the 8 bytes before it can be read, too. NULL: not wanted.
    ty_status (*record)(void *context, const log_record &record);
    // Where an earlier scan ended: this one ends there and reads no further. NULL: unknown.
    const log_positions *end = nullptr;
    // A thread may read ahead meanwhile. Only the caller's thread calls the functions.
    bool read_ahead = false;
    // The log is being written to: what seems to be missing may have been written since.
    bool in_use = false;
    // In use: the reading ends where no frame follows, and does not look for later ones. So it is quick, and a frame
    // that is missing or damaged looks like one that is not written yet: the caller must learn otherwise (from a newer
    // snapshot) that there is more.
    bool brief = false;
    // Called after a frame: a reading could begin here whose snapshot holds everything passed on so far. NULL: not
    // wanted.
    ty_status (*frame)(void *context, const log_positions &here) = nullptr;
    // The reading ends after the record with this LSN. In use: an LSN that was durable before.
    uint64_t up_to = UINT64_MAX;
};
struct log_contents {
    log_positions end;  // after the last valid frames; LSN: of the last record before any gap
    log_positions next; // where a later reading continues: before all records after end.lsn, and before the frame of
                        // the last record up to there, which a reading returns again if the LSN is one less
    log_positions tail; // records after these LSNs are not known to be durable; reading from here returns them (L4)
    uint64_t highest;   // LSN of any record found
    uint64_t frames;
    uint64_t records; // passed on
    uint64_t record_bytes;
    uint64_t after_gap; // of those passed on: independent ones after a gap
    uint64_t left_out;  // others there
};
// A reading ends at the end of the log, where it has caught up with the writer, or when a function of the reader fails.
// One from `next` continues; it returns records after a gap again. A copy of each ring from its position in `from` to
// its position in `end`, without frames after, yields the same. What was passed on is right in any case.
//
// For a log in use: everything that was durable when the call began is passed on, and later records as far as they are
// found; these may not be durable yet, so a caller that needs it flushes the file. TY_E_BUSY: what stood there was
// overwritten, or only a snapshot holds it; so a newer snapshot than that of `from` is durable. A ring cannot always
// see that. So on any result but TY_OK, and where nothing was found, the caller looks whether the newest snapshot's
// redo points are after `next`, and continues from these. If they are not, TY_E_BUSY and TY_E_DAMAGED mean damage.
ty_status log_scan(const ty_log_sink &sink, const char *name, const log_identity &identity, const log_positions &from,
                   const log_reader &reader, log_contents *contents);

// Copies the header, and the frames after `from`, of a log that others may be writing to, to a file of its own; the
// rest of the file is empty. What a scan of the copy returns had all been written, and nothing is missing that was
// durable before. The copy has blocks of TY_STORAGE_BLOCK.
// *end: of the frames. Errors: those of a scan of a log in use.
ty_status log_copy(const ty_log_sink &sink, const char *name, const log_identity &identity, const log_positions &from,
                   const storage_file &to, log_positions *end);

// A number that changes once a frame is written after the ends that log_scan found.
ty_status log_peek(const ty_log_sink &sink, const log_header &header, const log_positions &end, uint64_t *print);

// ---- Writing

struct log;
struct log_options {
    const ty_log_sink *sink; // the caller's
    const char *name;        // for error texts: the path
    log_identity identity;
    log_positions start;  // a snapshot stands there: nothing before it is needed
    log_positions end;    // where log_scan from `start` ended; start == end for an empty log. New frames follow in
                          // generations of their own
    log_positions tail;   // of that scan
    bool thread;          // threads of the library write what no caller waits for; else appenders and waiters do
    uint64_t highest = 0; // of that scan: new LSNs are above it. 0: as `end` says
    // Called after each write: whether everything else without which the log is useless still exists. NULL: yes.
    ty_status (*check)(void *context) = nullptr;
    void *context = nullptr;
};
ty_status log_start(const log_options &options, log **made);
// Ends the threads and frees the log. What was appended and is not durable is dropped (log_wait first).
void log_stop(log *l);
// Ends the threads alone, while no thread commits: afterwards no write, and no check, is under way. log_resume starts
// them again; if that fails, appenders and waiters write.
void log_stop_threads(log *l);
void log_resume(log *l);
uint32_t log_streams(const log *l);

// Reserves room for one record of at most `bytes` at *room. Fails with TY_E_SPACE, without a detail, and changes
// nothing, where the ring has no room until a snapshot frees some, or where the record exceeds log_record_max: then the
// caller takes a snapshot in place of it. Waits for writes under way if the buffers are full. From here to
// log_append_end appends of other threads wait.
// For one appender at a time: the record goes to the first log stream, with the LSN after the last one.
ty_status log_append_begin(log *l, size_t bytes, uint8_t **room);
// The record is `bytes` long (0: none, the append is abandoned). Returns its LSN.
uint64_t log_append_end(log *l, size_t bytes);

// The same for many appenders at a time, each in one log stream; those of other log streams do not wait. try_once: if
// another thread appends there, or the call would have to wait for room, returns TY_E_BUSY at once, without a detail.
enum class log_turn : uint8_t { wait, try_once };
ty_status log_append_begin(log *l, uint32_t stream, size_t bytes, uint8_t **room, log_turn turn = log_turn::wait);
// The LSN is taken between the two calls, from a counter that all appenders share, with an atomic operation that
// acquires and releases. Each LSN must be appended, in some log stream, or no later record ever becomes durable.
// independent: recovery accepts the record even if one before it is missing; its appender vouches for that.
void log_append_end(log *l, uint32_t stream, size_t bytes, uint64_t lsn, bool independent = false);
// Appends records in one frame: a crash leaves all of them or none. In other respects like the first log_append_begin.
struct log_piece {
    const void *bytes;
    size_t size; // not 0
};
ty_status log_append_together(log *l, const log_piece *pieces, size_t count);
size_t log_record_max(const log *l); // half the buffer

// Waits until all records up to `lsn`, as far as they are appended or being appended, are durable; writes them itself
// if no other thread does. stream: the caller's own, whose frame it writes; the threads of the others are asked to
// write at the same time. Does not wait for a log stream with nothing up to `lsn`.
// A failed write leaves the log *broken*: TY_E_IO (or what the sink returned) here and from every append, until
// log_continue.
ty_status log_wait(log *l, uint64_t lsn, uint32_t stream = 0);
// The same for the records of one log stream.
ty_status log_wait_stream(log *l, uint32_t stream, uint64_t lsn);
// Has the threads write what is not durable up to the LSN, if no other thread does. Does nothing without threads.
void log_ask(log *l, uint64_t lsn);
// An LSN up to which everything is durable: with one log stream the last such LSN. With several it may lag behind.
uint64_t log_durable(log *l);
uint64_t log_last(log *l); // the highest appended one
// The LSN up to which the log was read when it was started. What was not known to be durable then is not durable before
// something is written; a reader can flush it.
uint64_t log_recovered(const log *l);
// Waits until log_durable() is beyond the LSN, or for that long; returns log_durable().
uint64_t log_wait_beyond(log *l, uint64_t lsn, uint64_t timeout_ns);
bool log_broken(log *l);
// Breaks the log, as a failed write does: a snapshot in place of a log write failed, but may still be found, with the
// transaction that the log does not hold (X7, txn.md). The status and its detail are those of that failure.
void log_break(log *l, ty_status status);

// The position after everything appended so far, for a snapshot that is collected now, up to log_last. If others append
// meanwhile, the caller sets `lsn` afterwards, to an LSN that covers all records before the redo points.
log_positions log_positions_now(log *l);
// A snapshot with these redo points is durable: everything up to its LSN is durable, and the space before the redo
// points is free.
void log_release(log *l, const log_positions &redo_points);
// The same for a snapshot taken in place of a log write: since log_positions_now nothing was appended; redo_points.lsn
// is that of the redo points, or one more when the snapshot holds a transaction that the log does not. What follows
// starts generations that say so. Repairs a broken log: the snapshot holds what the log could not write. Waits for
// writes under way.
void log_continue(log *l, const log_positions &redo_points);

struct log_metrics {
    uint64_t frames;
    uint64_t bytes;         // written to the sink
    uint64_t used_bytes;    // of the rings
    uint64_t ring_bytes;    // of all
    uint64_t fullest_bytes; // what would be in use if all rings were as full as the fullest
};
log_metrics log_get_metrics(log *l);
log_metrics log_stream_metrics(log *l, uint32_t stream);

} // namespace taiyen
