/* Taiyen: change feeds, the committed transactions of a heap.
 *
 * Purpose: feed a second copy of a heap. A change feed reads the log of a transactional heap while that is open for
 * writing, in this process or another one, or when it is closed, and delivers each committed transaction: whole, in the
 * order of LSNs, none left out and none twice. The writer does not know of change feeds and does not wait for them.
 *
 * Vocabulary:
 *   record     a transaction's entry in the log (bytes; ty_log_read decodes it).
 *   position   a place after one transaction and before the next. Plain bytes: it can be stored, sent, and used by any
 *              change feed of the same heap, in another process, later.
 *   base       (base backup) the position of a durable snapshot: a copy of the heap's files with that epoch, and all
 *              records from there on, are the heap.
 *   hash       of a record: 64-bit XXH3 over its LSN, its bytes and the hash of the record before it, seeded with
 *              the log's identity. A receiver proves by it that records are in order and that none is missing or
 *              changed (ty_feed_check); it is no protection against deliberate forgery.
 *
 * Guarantees: what is delivered is durable: no power cut removes it from the heap. Transactions that a concurrent heap
 * acknowledged out of order (commit modes that wait for one log stream) are delivered once all before them are durable.
 * A change feed does not retain log: the log is a ring of fixed size, and is overwritten once a snapshot includes what
 * it held (ty_open_options.log_bytes). A change feed that was too slow gets TY_E_NOT_FOUND, and begins again with a
 * base; the same happens if only a snapshot holds a transaction (one that is too large for the log, or was committed
 * while the log was full or broken).
 *
 * A transaction in two phases (ty_prepare) has two records: the prepared one is delivered once it is durable, whatever
 * its outcome will be, and its outcome is the next one. Distributed transactions of several threads (distributed.h) may
 * share one outcome: then pending records precede the prepared one.
 *
 * Cost: a call reads what was written since the position, up to twice, and flushes the log's file once if it found
 * something, unless the change feed has the open heap. Waiting costs nothing with the heap of this process, else a read
 * of two blocks of each log stream every few milliseconds.
 */
#ifndef TAIYEN_FEED_H
#define TAIYEN_FEED_H

#include "base.h"
#include "heap.h"
#include "log.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_feed ty_feed; /* opaque; for one thread at a time */

/* A position in the log. Without padding, in the machine's byte order. heap_identity, log_identity, lsn, epoch, hash
 * and previous may be compared; the other fields are private to the library. */
typedef struct ty_feed_position {
    uint8_t heap_identity[16];
    uint64_t log_identity;
    uint64_t lsn;      /* of the last transaction before it */
    uint64_t epoch;    /* of the base that this feed began with */
    uint64_t hash;     /* of the last record; of a base, a number that stands for it */
    uint64_t previous; /* the hash before that */
    uint64_t open_number;
    uint64_t open_random;
    uint32_t has_record;
    uint32_t streams;
    uint64_t log_positions[3 * TY_LOG_STREAMS_MAX];
    uint64_t checksum; /* of all bytes before it */
} ty_feed_position;

typedef struct ty_feed_record {
    uint64_t lsn;
    uint64_t previous; /* the hash of the record before, or of the base */
    uint64_t hash;
    const void *bytes; /* valid during the callback */
    size_t size_bytes;
} ty_feed_record;
/* Called for a record. False ends the call; this record counts as delivered. It must not use the change feed. */
typedef bool ty_feed_callback(const ty_feed_record *record, void *context);

struct ty_open_options;
typedef struct ty_feed_options {
    size_t struct_size;                 /* sizeof(ty_feed_options), set by the _INIT macro */
    const struct ty_open_options *open; /* only journal_path, log_path, log and storage matter; they must stay valid as
                                           long as the change feed. NULL: all defaults */
    ty_heap *heap; /* the same heap, open for writing in this process: then nothing is flushed, and ty_feed_wait does
                      not poll. Close the change feed before it. NULL: not known */
} ty_feed_options;
#define TY_FEED_OPTIONS_INIT                                                                                           \
    { sizeof(ty_feed_options), NULL, NULL }

/* Opens a change feed of the heap at heap_path. It keeps no file open or locked between calls. options may be NULL.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_feed_open(const char *heap_path, const ty_feed_options *options, ty_feed **feed);
/* Frees the change feed; NULL does nothing. */
TY_API void ty_feed_close(ty_feed *feed);

/* The base of the newest durable snapshot. *receives: the heap receives the transactions of another one (replica.h),
 * and until ty_promote nothing else writes to it; may be NULL. Errors: TY_E_NOT_FOUND (a file is missing),
 * TY_E_UNSUPPORTED (the heap has no log), TY_E_MISMATCH, TY_E_DAMAGED, TY_E_FORMAT, TY_E_IO, TY_E_MEMORY. One thread at
 * a time. */
TY_API TY_CHECKED ty_status ty_feed_base(ty_feed *feed, ty_feed_position *position, bool *receives);

/* Delivers the transactions after *position that are committed and durable, and advances *position past them. All that
 * was acknowledged before the call began is delivered. TY_OK also if nothing follows.
 * base: may be NULL; filled if TY_E_NOT_FOUND is returned.
 * Errors: TY_E_NOT_FOUND (the next record is no longer in the log: begin again with *base; also if a file is missing,
 * and then *base is all zeros), TY_E_MISMATCH (the position is of another heap, or of another history of it, such as
 * that of a copy that was written to), TY_E_ARGUMENT (the position is damaged), TY_E_DAMAGED (acknowledged transactions
 * are unreadable), TY_E_FORMAT, TY_E_IO, TY_E_MEMORY. On an error nothing was delivered and the position is unchanged.
 * One thread at a time. */
TY_API TY_CHECKED ty_status ty_feed_read(ty_feed *feed, ty_feed_position *position, ty_feed_callback *callback,
                                         void *context, ty_feed_position *base);

/* Waits until a transaction may follow the position, at most timeout_ms. *more: one may follow. With the heap of this
 * process it waits for the next transaction that becomes durable; else it polls the log every 5 ms.
 * Errors: TY_E_ARGUMENT, TY_E_UNSUPPORTED (the heap has no log), TY_E_NOT_FOUND, TY_E_MISMATCH, TY_E_DAMAGED,
 * TY_E_FORMAT, TY_E_IO, TY_E_MEMORY. One thread at a time. */
TY_API TY_CHECKED ty_status ty_feed_wait(ty_feed *feed, const ty_feed_position *position, uint32_t timeout_ms,
                                         bool *more);

/* For receivers of records: checks that this one follows at the position, whole and unchanged; then advances the
 * position's LSN, hash and previous past it. A change feed accepts such a position, too, as long as the log reaches
 * back to where ty_feed_read left it. Errors: TY_E_ARGUMENT (the position is damaged), TY_E_MISMATCH (another record
 * follows there), TY_E_DAMAGED (the record was changed). Thread-safe. */
TY_API TY_CHECKED ty_status ty_feed_check(ty_feed_position *position, const ty_feed_record *record);

#ifdef __cplusplus
}
#endif
#endif
