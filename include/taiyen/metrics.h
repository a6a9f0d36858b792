/* Taiyen: metrics of a heap that another program has open. For tools: taiyen.h does not include it.
 *
 * Purpose: observe a heap while it is used, without a copy of it and without a change to the program that uses it.
 *
 * Vocabulary: a *metrics page* is memory in which the library, in the program that has the heap open for writing,
 * publishes metrics of the heap to other processes. It exists from the end of ty_open until the heap is closed, unless
 * the library has no threads (TY_BACKGROUND_CALLS) or the system lacks such memory. A *sample* is the metrics of one
 * moment. *Known* metrics are those that the last sample could take.
 *
 * Guarantees: neither the heap's files nor its content change by it. What is read is checked as hostile bytes are. It
 * works for the user who runs that program, on the same machine, in the same process-ID namespace.
 *
 * Cost, in the program: while nothing reads the page, one thread that sleeps. While a reader does, some microseconds
 * five times a second; if at most 4 GiB are touched, a count of blocks and dirty pages, which takes at most a
 * two-hundredth of the time; and two reads of the clock for each commit that waits for the disk, and for one in 256 of
 * the others.
 */
#ifndef TAIYEN_METRICS_H
#define TAIYEN_METRICS_H

#include "base.h"
#include "heap.h"
#include "persist.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_metrics_page ty_metrics_page;

/* Opens the metrics page of the heap at path. options: only storage matters (NULL: all defaults). Errors:
 * TY_E_NOT_FOUND (no heap, no process has it open for writing, or its process has no metrics page or cannot be seen),
 * TY_E_PERMISSION (the process is another user's), TY_E_FORMAT (of another version), TY_E_DAMAGED, TY_E_IO.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_metrics_open(const char *path, const ty_open_options *options, ty_metrics_page **page);

/* Which metrics are known. */
enum {
    TY_METRICS_SNAPSHOTS = 1,    /* epoch to pages_evicted */
    TY_METRICS_TRANSACTIONS = 2, /* transactions to reserved_blocks, and the times of commits */
    TY_METRICS_BLOCKS = 4,       /* what ty_metrics_each_class lists */
    TY_METRICS_DIRTY = 8,        /* dirty_pages, dirty_cell_bytes, dirty_cells, and what ty_metrics_get_dirty returns */
    TY_METRICS_UNDO = 16,        /* undoable to undo_room_bytes: undo is attached */
    TY_METRICS_MEMORY = 32,      /* memory_bound_bytes, memory_allowed_bytes */
    TY_METRICS_COPIES = 64       /* copies_bytes: the heap is larger than memory_allowed_bytes */
};

/* The metrics, as ty_snapshot_stats and ty_txn_stats report them in the program itself. */
typedef struct ty_metrics {
    size_t struct_size; /* sizeof(ty_metrics), set by the caller */
    uint8_t identity[16];
    uint64_t process;
    uint64_t known;   /* TY_METRICS_ bits */
    uint64_t unix_ns; /* when the sample was taken */
    uint64_t looks;   /* samples since the heap was opened */
    uint64_t look_ns; /* duration of this sample */
    uint64_t base;
    uint64_t limit_bytes;
    uint64_t touched_bytes;
    uint64_t epoch; /* the last durable one */
    uint64_t snapshots;
    uint64_t snapshot_pages;
    uint64_t journal_bytes;
    uint64_t image_bytes;
    uint64_t pending_batches;
    uint64_t pending_bytes;
    uint64_t pages_evicted;
    uint64_t transactions;
    uint64_t rollbacks;
    uint64_t entries;
    uint64_t record_bytes;
    uint64_t log_bytes;
    uint64_t log_frames;
    uint64_t used_log_bytes;
    uint64_t size_log_bytes;
    uint64_t forced_snapshots;
    uint64_t automatic_snapshots;
    uint64_t lsn;
    uint64_t durable_lsn;
    uint64_t reserved_blocks;
    uint64_t dirty_pages;          /* what the next snapshot writes, as of counted_unix_ns */
    uint64_t counted_unix_ns;      /* when blocks and dirty pages were counted */
    uint64_t count_ns;             /* duration of that count */
    uint64_t memory_bound_bytes;   /* memory_bytes of ty_open_options; 0: not set, the machine decides */
    uint64_t memory_allowed_bytes; /* a heap that has touched no more than this is not checked for its use of memory */
    uint64_t copies_bytes;         /* of private copies of pages that a snapshot has written */
    uint64_t undoable;             /* undoable to kept_bytes: as in ty_undo_stats after the last call of undo */
    uint64_t redoable;
    uint64_t kept_blocks;
    uint64_t kept_bytes;
    uint64_t undo_used_bytes;  /* used part of the room for recorded bytes; includes marks between transactions, and
                                  gaps */
    uint64_t undo_room_bytes;  /* when it is full, the oldest transactions are forgotten */
    uint64_t dirty_cell_bytes; /* cell size: the touched part is divided into equal cells for ty_metrics_get_dirty */
    uint64_t dirty_cells;      /* number of cells: at most TY_METRICS_CELLS */
} ty_metrics;

/* Requests samples for the next three seconds; waits up to wait_ms for the first sample, or for a newer one than that
 * of the last call. The functions below then return values of the same sample. Errors: TY_E_BUSY (no sample came),
 * TY_E_NOT_FOUND (the process has ended), TY_E_DAMAGED (the page's content is inconsistent). Not thread-safe. */
TY_API TY_CHECKED ty_status ty_metrics_read(ty_metrics_page *page, uint64_t wait_ms, ty_metrics *metrics);

/* As ty_each_class, of the last sample, if TY_METRICS_BLOCKS is known. Not thread-safe. */
TY_API void ty_metrics_each_class(const ty_metrics_page *page, ty_class_callback *callback, void *context);

/* One of the newest 64 snapshots of this open. */
typedef struct ty_metrics_snapshot {
    size_t struct_size; /* sizeof(ty_metrics_snapshot) of the library */
    uint64_t epoch;
    uint64_t unix_ns;    /* when it was durable */
    uint64_t pause_ns;   /* as last_pause_ns of ty_snapshot_stats */
    uint64_t durable_ns; /* as last_durable_ns */
    uint64_t pages;
    uint64_t bytes;
} ty_metrics_snapshot;
/* Calls back for each of them, the oldest first, until the callback returns false; of the last sample. Not thread-safe.
 */
typedef bool ty_metrics_snapshot_callback(const ty_metrics_snapshot *snapshot, void *context);
TY_API void ty_metrics_each_snapshot(const ty_metrics_page *page, ty_metrics_snapshot_callback *callback,
                                     void *context);

/* Histograms of commit times, since the heap was opened, while samples were requested: [0] of commits that waited for
 * the disk, [1] of one in 256 of the others. Bucket n counts those from (4 + n % 4) * 2^(n / 4 + 1) ns on, bucket 0
 * also shorter ones. As of the last sample. Not thread-safe. */
#define TY_METRICS_BUCKETS 128
TY_API void ty_metrics_get_times(const ty_metrics_page *page, uint64_t times[2][TY_METRICS_BUCKETS]);

/* How many pages of each cell the next snapshot writes; 0 from dirty_cells on. Of the last sample, as of
 * counted_unix_ns. dirty_pages also counts pages outside the touched part: the heap's own tables. Not thread-safe. */
#define TY_METRICS_CELLS 1024
TY_API void ty_metrics_get_dirty(const ty_metrics_page *page, uint32_t pages[TY_METRICS_CELLS]);

/* Closes the page; NULL does nothing. The program that has the heap open is not affected. Not thread-safe. */
TY_API void ty_metrics_close(ty_metrics_page *page);

#ifdef __cplusplus
}
#endif
#endif
