// The façade of the log layer: rings of frames on a sink, group commit, and reading them back. It knows nothing of
// heaps. docs/design/log.md tells how it works; log_layout.hpp is the form on the sink.
//
// A log has one log stream or several, each a ring of its own. Its records have LSNs, which rise in each log stream
// and have no gaps over all of them. Where there is one log stream the log counts them. Else the appenders give them:
// LSNs of a clock that they have in common.
#pragma once

#include "../os/os.hpp"
#include "frames/log_layout.hpp"
#include "records/records.hpp"
#include <taiyen/log.h>
#include <taiyen/storage.h>

namespace taiyen {

inline constexpr uint32_t log_streams_max = log_streams_max_3;

// A place in one ring.
struct log_mark {
    uint64_t position;   // counts bytes of the ring and rises for ever; the place is position % the ring's bytes
    uint64_t generation; // 0: nothing was ever logged
    uint64_t lsn;        // of the last record before it in this ring
};
// A place in a log, as a snapshot keeps it: of its records, those with LSNs up to `lsn` are in the snapshot.
// All others lie behind the marks of their log streams. So may some of the former: readers leave these out. With one
// log stream none do, and at[0].LSN is the LSN.
struct log_marks {
    uint64_t lsn = 0;
    uint32_t count = 1; // of log streams
    log_mark at[log_streams_max] = {};
};
constexpr bool operator==(const log_mark &a, const log_mark &b) {
    return a.position == b.position && a.generation == b.generation && a.lsn == b.lsn;
}
inline bool operator==(const log_marks &a, const log_marks &b) {
    bool same = a.lsn == b.lsn && a.count == b.count;
    for (uint32_t p = 0; p < a.count && same; ++p)
        same = a.at[p] == b.at[p];
    return same;
}
inline log_marks marks_of_one(const log_mark &mark) {
    log_marks marks{mark.lsn};
    marks.at[0] = mark;
    return marks;
}

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
// What was read of it is durable then, where the sink is a file of the library's; others are left alone.
ty_status sink_flush(ty_log_sink *sink);

// ---- Making and checking a log

struct log_identity {
    uint8_t heap[16];
    uint64_t log;
};

// Writes the header of a log that holds nothing; durable when it returns. TY_E_ARGUMENT: the sink is smaller than
// log_bytes_min.
ty_status log_format(const ty_log_sink &sink, const log_identity &identity, const log_open_2 &open = {},
                     uint32_t streams = 1);
uint64_t log_bytes_min(uint32_t block_bytes, uint32_t streams);
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

struct log_record {
    uint64_t lsn;
    uint64_t position; // of its frame
    const uint8_t *bytes;
    size_t size;
    uint32_t stream;
    bool marked;
};

// Reads frames from `from` to the end of what is there, and hands records on in the order of their LSNs, without
// gaps. Where an LSN is missing, which only several log streams can lack in the midst, the records behind it are
// left out, but for the marked ones: these are handed on, in order. A frame that is not valid ends a log stream: TY_OK;
// unless a later frame shows that it had been durable, or a frame of any log stream says that the missing record had
// been: TY_E_DAMAGED. Where the frames at `from` were overwritten, or continue a snapshot that is missing:
// TY_E_DAMAGED.
struct log_reader {
    void *context;
    // A record lies whole in memory, and 8 bytes before it can be read, too. NULL: none wanted.
    ty_status (*record)(void *context, const log_record &record);
    // Where an earlier scan ended: it ends there without looking further. NULL: not known.
    const log_marks *end = nullptr;
    // A thread may read what follows meanwhile. The functions are called by the caller's alone.
    bool read_ahead = false;
    // It is being written to: what seems to be missing may have been written since.
    bool in_use = false;
    // Behind a frame: a reading could begin here for which all that was read is in a snapshot. NULL: not wanted.
    ty_status (*frame)(void *context, const log_marks &here) = nullptr;
    // The reading ends behind the record with this LSN. In use: one that was durable before.
    uint64_t up_to = UINT64_MAX;
};
struct log_contents {
    log_marks end;    // behind the last valid frames; LSN: of the last record before any gap
    log_marks next;   // where a later reading goes on: before all records behind end.lsn, and before the frame of the
                      // last one up to there, which a reading gives once more if the LSN is one less
    log_marks tail;   // records behind these LSNs are not known to be durable; reading from here gives them (L4)
    uint64_t highest; // LSN of any record that is there
    uint64_t frames;
    uint64_t records; // handed on
    uint64_t record_bytes;
    uint64_t behind_gap; // of those handed on: marked ones behind a gap
    uint64_t left_out;   // unmarked ones there
};
// Of a log in use: all is told that was durable when the call began, and what of the rest is there already. That may
// not be durable yet: who needs it flushes the file. A copy of each ring from its mark in `from` to its mark in `end`,
// with no frames behind, gives the same to log_scan. A reading from `next` goes on; records behind a gap it tells
// again. A reading ends when it has come up with the writer, or when a function of the reader fails. TY_E_BUSY: what
// stood there was overwritten, or a snapshot alone holds it, so a newer one than that of `from` is durable. A ring
// tells that by itself as far as it can. So on any other result than TY_OK, and where nothing was found, the caller
// looks whether the newest snapshot's marks are behind `next`, and then goes on from these. Where they are not,
// TY_E_BUSY and TY_E_DAMAGED are damage. What was told is right in any case.
ty_status log_scan(const ty_log_sink &sink, const char *name, const log_identity &identity, const log_marks &from,
                   const log_reader &reader, log_contents *contents);

// Copies the header, and the frames behind `from`, of a log that others may be writing to, to a file of its own, which
// holds nothing else then. What a scan of the copy gives had all been written, and nothing is missing that was durable
// before. The copy is of blocks of TY_STORAGE_BLOCK.
// *end: of the frames. Errors: those of a scan of a log in use.
ty_status log_copy(const ty_log_sink &sink, const char *name, const log_identity &identity, const log_marks &from,
                   const storage_file &to, log_marks *end);

// A number that is another one once a frame is written behind the marks, which log_scan found to be the end.
ty_status log_peek(const ty_log_sink &sink, const log_header_2 &header, const log_marks &end, uint64_t *print);

// ---- Writing

struct log;
struct log_options {
    const ty_log_sink *sink; // the caller's
    const char *name;        // for error texts: the path
    log_identity identity;
    log_marks start; // a snapshot stands there: nothing before it is needed
    log_marks end; // where log_scan from `start` ended; start == end for an empty log. New frames follow in generations
                   // of their own
    log_marks tail;       // of that scan
    bool thread;          // threads of the library write what nobody waits for; else appenders and waiters do
    uint64_t highest = 0; // of that scan: new LSNs are above it. 0: as `end` says
    // Asked after each write: whether all else is there without which the log is of no use. NULL: yes.
    ty_status (*check)(void *context) = nullptr;
    void *context = nullptr;
};
ty_status log_start(const log_options &options, log **made);
// Ends the threads; frees it. What was appended and is not durable is dropped (log_wait first).
void log_stop(log *l);
// Ends the threads alone, while nobody commits: no write, and no check, is under way then. And starts them again; where
// that fails, appenders and waiters write.
void log_rest(log *l);
void log_resume(log *l);
uint32_t log_streams(const log *l);

// Room for one record of at most `bytes` at *place. Fails with TY_E_SPACE, without a detail, and changes nothing, where
// the ring has no room for it until a snapshot frees some, or where it exceeds log_record_max: then the caller takes a
// snapshot in place of it. Waits for writes under way if the buffers are full. From here to log_append_end appends of
// other threads wait.
// For one appender at a time: it goes to the first log stream, with the LSN behind the last one.
ty_status log_append_begin(log *l, size_t bytes, uint8_t **place);
// The record is `bytes` long (0: none, the append is given up). Returns its LSN.
uint64_t log_append_end(log *l, size_t bytes);

// The same for many appenders at a time, each in one log stream; those of other log streams do not wait. try_once:
// where somebody else appends there, or room would have to be waited for, TY_E_BUSY at once, without a detail.
enum class log_turn : uint8_t { wait, try_once };
ty_status log_append_begin(log *l, uint32_t stream, size_t bytes, uint8_t **place, log_turn wrap = log_turn::wait);
// The LSN is taken between the two calls, from a counter that all appenders share, with an atomic operation that
// acquires and releases. Each number is appended, in some log stream, or no later record is ever durable. marked:
// recovery takes the record even if one before it is missing, which its appender vouches for.
void log_append_end(log *l, uint32_t stream, size_t bytes, uint64_t lsn, bool marked = false);
// Appends records that stand in one frame: a crash leaves all of them or none. As the first of these otherwise.
struct log_piece {
    const void *bytes;
    size_t size; // not 0
};
ty_status log_append_together(log *l, const log_piece *pieces, size_t count);
size_t log_record_max(const log *l); // half the buffer

// Waits until all records up to `LSN`, as far as they are appended or being appended, are durable; writes them
// itself where nobody else does. log stream: the caller's own, whose frame it writes; the others' threads are asked to
// write at the same time. A log stream with nothing up to `LSN` is not waited for.
// A failed write leaves the log *broken*: TY_E_IO (or what the sink said) here and from every append, until
// log_continue.
ty_status log_wait(log *l, uint64_t lsn, uint32_t stream = 0);
// The same for the records of one log stream.
ty_status log_wait_stream(log *l, uint32_t stream, uint64_t lsn);
// Has the threads write what is not durable up to the LSN, where nobody does. Without threads nothing is done.
void log_ask(log *l, uint64_t lsn);
// An LSN up to which all is durable: with one log stream the last one. With several it may lag behind.
uint64_t log_durable(log *l);
uint64_t log_last(log *l); // the highest appended one
// Up to where it was read when it was started. What was not known to be durable then is not durable before something is
// written; a reader can flush it.
uint64_t log_recovered(const log *l);
// Waits until log_durable() is beyond the LSN, or that long; what log_durable() is then.
uint64_t log_wait_beyond(log *l, uint64_t lsn, uint64_t timeout_ns);
bool log_broken(log *l);
// Breaks the log, as a failed write does: a snapshot in place of a log write failed, and may be found all the same,
// with the transaction that the log does not hold (X7, txn.md). The status and its detail are of that.
void log_break(log *l, ty_status status);

// The place behind everything appended so far, for a snapshot that is collected now, up to log_last. Where others
// append meanwhile, the caller sets `lsn` afterwards, to a number that all records before the marks are up to.
log_marks log_marks_now(log *l);
// A snapshot with these marks is durable: all up to its LSN is durable, and the space before them is free.
void log_release(log *l, const log_marks &marks);
// The same for a snapshot taken in place of a log write: since log_marks_now nothing was appended; marks.lsn is the
// marks', or one more when the snapshot holds a transaction that the log does not. What follows starts generations that
// say so. Repairs a broken log: what it could not write, the snapshot holds. Waits for writes under way.
void log_continue(log *l, const log_marks &marks);

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
