/* Taiyen: metrics of a heap that another program has open. For tools: taiyen.h does not include it.
 *
 * Purpose: to look at a heap while it is used, without a copy of it and without a word in the program that uses it.
 *
 * Vocabulary: a *metrics page* is memory in which the library, in the program that has the heap open for writing, tells
 * others of the heap. It has one from the end of ty_open to the heap's end, unless the program lets the library have no
 * threads (TY_BACKGROUND_CALLS) or the system has no such memory. A *look* is one moment's metrics. *Known* metrics are
 * those that the last look could take.
 *
 * Guarantees: the heap's files and content do not change by it. What is read is checked as hostile bytes are. It works
 * for the user who runs that program, on the same machine, and where the process is seen under its own number.
 *
 * Cost, in the program: while nobody looks, one thread that sleeps. While somebody does, some microseconds five times a
 * second; where no more than 4 GiB are touched, a count of blocks and dirty pages, which takes a two-hundredth of the
 * time at the most; and two looks at the clock for each commit that waits for the disk, and for one in 256 of the
 * others.
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

/* Finds the metrics page of the heap at path. Of options, storage counts (NULL: all defaults). Errors: TY_E_NOT_FOUND
 * (no heap, no process has it open for writing, or its process has no metrics page or cannot be seen), TY_E_PERMISSION
 * (another user's), TY_E_FORMAT (of another version), TY_E_DAMAGED, TY_E_IO. Thread-safe. */
TY_API TY_CHECKED ty_status ty_metrics_open(const char *path, const ty_open_options *options, ty_metrics_page **page);

/* Which metrics are known. */
enum {
    TY_METRICS_SNAPSHOTS = 1,    /* epoch to pages_evicted */
    TY_METRICS_TRANSACTIONS = 2, /* transactions to reserved_blocks, and the times of commits */
    TY_METRICS_BLOCKS = 4,       /* what ty_metrics_each_class tells */
    TY_METRICS_DIRTY = 8,        /* dirty_pages, dirty_cell_bytes, dirty_cells, and what ty_metrics_get_dirty tells */
    TY_METRICS_UNDO = 16,        /* undoable to undo_room_bytes: undo is attached */
    TY_METRICS_MEMORY = 32,      /* memory_bound_bytes, memory_allowed_bytes */
    TY_METRICS_COPIES = 64       /* copies_bytes: the heap is larger than memory_allowed_bytes */
};

/* As ty_snapshot_stats and ty_txn_stats tell them in the program itself. */
typedef struct ty_metrics {
    size_t struct_size; /* sizeof(ty_metrics), set by the caller */
    uint8_t identity[16];
    uint64_t process;
    uint64_t known;   /* TY_METRICS_ bits */
    uint64_t unix_ns; /* when the look was taken */
    uint64_t looks;   /* since the heap was opened */
    uint64_t look_ns; /* that it took */
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
    uint64_t timed_snapshots;
    uint64_t lsn;
    uint64_t durable_lsn;
    uint64_t reserved_blocks;
    uint64_t dirty_pages;          /* what the next snapshot writes, as of counted_unix_ns */
    uint64_t counted_unix_ns;      /* when blocks and dirty pages were counted */
    uint64_t count_ns;             /* that this took */
    uint64_t memory_bound_bytes;   /* memory_bytes of ty_open_options; 0: none, the machine decides */
    uint64_t memory_allowed_bytes; /* a heap that has touched no more than this is not looked at for its memory */
    uint64_t copies_bytes;         /* of private copies of pages that a snapshot has written */
    uint64_t undoable; /* undoable to kept_bytes: as ty_undo_stats tells them when a call of undo has ended */
    uint64_t redoable;
    uint64_t kept_blocks;
    uint64_t kept_bytes;
    uint64_t undo_used_bytes;  /* of the room for recorded bytes; marks between transactions and gaps count */
    uint64_t undo_room_bytes;  /* when it is full, the oldest transactions are forgotten */
    uint64_t dirty_cell_bytes; /* of the touched part, which is cut into equal cells for ty_metrics_get_dirty */
    uint64_t dirty_cells;      /* how many these are: TY_METRICS_CELLS at the most */
} ty_metrics;

/* Asks for metrics, for the next three seconds; waits up to wait_ms for the first ones, or for ones that are not those
 * of the last call. What the other calls tell then is of the same look. Errors: TY_E_BUSY (none came), TY_E_NOT_FOUND
 * (the process is gone), TY_E_DAMAGED (what stands there makes no sense). Not thread-safe. */
TY_API TY_CHECKED ty_status ty_metrics_read(ty_metrics_page *page, uint64_t wait_ms, ty_metrics *metrics);

/* As ty_each_class, of the last read, where TY_METRICS_BLOCKS is known. Not thread-safe. */
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
/* Calls back for each of them, the oldest first, until the callback returns false; of the last read. Not thread-safe.
 */
typedef bool ty_metrics_snapshot_callback(const ty_metrics_snapshot *snapshot, void *context);
TY_API void ty_metrics_each_snapshot(const ty_metrics_page *page, ty_metrics_snapshot_callback *callback,
                                     void *context);

/* How many commits took how long, since the heap was opened, while somebody looked: [0] of those that waited for the
 * disk, [1] of one in 256 of the others. Bucket n has those from (4 + n % 4) * 2^(n / 4 + 1) ns on, bucket 0 also
 * shorter ones. Of the last read. Not thread-safe. */
#define TY_METRICS_BUCKETS 128
TY_API void ty_metrics_get_times(const ty_metrics_page *page, uint64_t times[2][TY_METRICS_BUCKETS]);

/* How many pages of each cell the next snapshot writes; of those behind dirty_cells, 0. Of the last read, as of
 * counted_unix_ns. dirty_pages also counts those behind the touched part: the heap's own tables. Not thread-safe. */
#define TY_METRICS_CELLS 1024
TY_API void ty_metrics_get_dirty(const ty_metrics_page *page, uint32_t pages[TY_METRICS_CELLS]);

/* NULL: nothing. The program goes on without it. Not thread-safe. */
TY_API void ty_metrics_close(ty_metrics_page *page);

#ifdef __cplusplus
}
#endif
#endif
