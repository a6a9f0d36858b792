/* Taiyen: persistent heaps.
 *
 * Purpose: open a heap that lives in files; make its content durable with snapshots; look at the files.
 *
 * Vocabulary: `atlas.ty` is the *image* (the backing file); `atlas.ty-journal` beside it is the *journal* (the data
 * file). A *snapshot* makes all of the heap durable as one *epoch*: it appends one *batch* to the journal. *Checkpoint*
 * copies batches to their places in the image; when nothing is left to checkpoint, the files are *clean*. An *archive*
 * heap has the image alone. A *root* is a named pointer, from which a program finds its structures again.
 *
 * Guarantees:
 *  - A snapshot heap is fail-safe: whatever happens, at any instant, the files hold its last successful snapshot whole.
 *    A process crash or a power cut loses what was done since, and nothing else.
 *  - An archive heap is not: its snapshot is durable when it returns, but the kernel may write pages before, so after a
 *    crash the content may be a mixture; the report then says so.
 *  - Heaps always map at the address where they were created, so raw pointers stay good. An open never moves a heap: a
 *    taken address range is TY_E_ADDRESS, with a text that says by what.
 *  - Damaged, truncated, foreign and hostile files give a status; they never crash the library, and a refusal changes
 *    nothing on disk. (A program that follows its own pointers through damaged user data is on its own: ty_scrub
 * first.)
 *  - While a snapshot collects (its *pause*) no thread may write to blocks of the heap; allocations of other threads
 *    wait by themselves.
 *  - Nothing is acknowledged in files that are gone: where the image, the journal or the log was removed while the heap
 *    is open, or the program closed the library's descriptors (closefrom), snapshots, commits and ty_close fail with
 *    TY_E_IO. The heap stays usable in memory, and nothing is written to other files. Files that were only renamed are
 *    still the heap's; they can be opened under their new names if these fit together.
 *  - A heap is used by the process that opened it; in a forked child every call that would touch the files is refused
 *    with TY_E_FORKED. The child has a copy of the memory of its own, and no lock: it keeps nobody from opening the
 * heap when its parent has closed it or was killed, and can open it itself after ty_discard of its copy. An archive
 * heap's memory is the file: the child can read it, and a store into it ends the child.
 *
 * Cost: an open takes the same time for 1 MB and for 1 TB, plus reading the batches that are not checkpointed yet. The
 * first write to a page after a snapshot costs about a microsecond. A snapshot costs one sequential write of the dirty
 * pages and one flush. Stack of the calling thread (x86-64, optimised): up to 40 KiB for calls that open, close and
 * look at files, 24 KiB for a snapshot, 16 KiB (PTHREAD_STACK_MIN) for all other calls of the library, those of
 * transactions among them.
 */
#ifndef TAIYEN_PERSIST_H
#define TAIYEN_PERSIST_H

#include "base.h"
#include "code.h"
#include "heap.h"
#include "status.h"
#include "storage.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ty_log_sink;         /* log.h */
struct ty_undeclared_write; /* txn.h */

typedef enum ty_kind {
    TY_KIND_DEFAULT = 0, /* for options only: what exists; a new heap is a snapshot heap */
    TY_VOLATILE = 1,
    TY_ARCHIVE = 2,
    TY_SNAPSHOT = 3,
    TY_TRANSACTIONAL = 4 /* a snapshot heap with a log: txn.h */
} ty_kind;

typedef enum ty_open_mode {
    TY_OPEN_OR_CREATE = 0,
    TY_OPEN_EXISTING = 1,  /* TY_E_NOT_FOUND if there is none */
    TY_CREATE_NEW = 2,     /* TY_E_EXISTS if there is one */
    TY_OPEN_READ_ONLY = 3, /* needs no write permission and changes no file; the heap's pages are read-only; other
                             read-only opens may be at the same time, a writing one not */
    TY_OPEN_COPY =
        4 /* the same; but where a writer has the heap open, in another process, what is opened is a copy
            of its files, taken now: it holds all that was acknowledged before the call, and belongs
            together. (Of a distributed transaction that the files leave in doubt, the files of the group's other heaps
            are looked at.) The copy has no names. It lies in the files' folders; in memory where no file can
            be made there, less than twice its size is free, or the storage is the program's own. The
            writer goes on; meanwhile up to 64 MiB of its snapshots wait in its journal.
            TY_E_SPACE: there is room neither on the disk nor in memory. TY_E_BUSY: of an archive heap
            that is open; or the writer's snapshots follow each other so fast that no copy comes
            about in half a minute. TY_E_UNSUPPORTED: the option log is set, and a writer has it open */
} ty_open_mode;

/* How dirty pages are found. */
typedef enum ty_tracking {
    TY_TRACK_AUTOMATIC = 0, /* the kernel's write tracking where there is one, else content, else signals */
    TY_TRACK_KERNEL = 1,    /* userfaultfd asynchronous write-protection and PAGEMAP_SCAN (Linux 6.7), or an error */
    TY_TRACK_SIGNAL = 2,    /* page protection and a SIGSEGV handler: 7 us for the first write to a page, and system
                               calls that write into clean pages of the heap (read, recv) fail with EFAULT. No
                               thread that writes to the heap may block SIGSEGV: the kernel ends the process. The one
                               that opens it blocks it no more */
    TY_TRACK_CONTENT = 3    /* checksums of the pages in memory that are not the file's: any kernel, and system calls
                               may write; a snapshot's pause grows by 0.1 s for each GB that was written since the open,
                               or by a tenth of that where the kernel keeps soft-dirty marks (5.11) and the heap is a
                               good part of the process's memory. ty_write_back_early does nothing */
} ty_tracking;

/* Who does the background work (checkpointing batches to the image). */
typedef enum ty_background {
    TY_BACKGROUND_THREAD = 0, /* seven threads of the library, two for a log, and one for each further log stream of a
                                 log; they sleep when there is nothing to do. While one thread alone waits for its
                                 commit, one of a log's spins on that thread's processor, at the lowest class
                                 (SCHED_IDLE), if commits are faster so */
    TY_BACKGROUND_CALLS = 1   /* the program, by calling ty_run_background_work; the library starts no thread */
} ty_background;

/* What becomes of a prepared transaction (ty_prepare). */
typedef enum ty_outcome {
    TY_OUTCOME_UNKNOWN = 0, /* it cannot be told now */
    TY_OUTCOME_COMMIT = 1,
    TY_OUTCOME_ROLLBACK = 2
} ty_outcome;

/* A transaction in doubt: it was prepared, and the program ended before it said what becomes of it. */
typedef struct ty_in_doubt_txn {
    size_t struct_size; /* sizeof(ty_in_doubt_txn) */
    const char *heap_path;
    uint8_t heap_identity[16];
    uint64_t lsn;
    const void *description; /* what ty_prepare was given */
    size_t description_bytes;
    bool durable; /* what is in doubt is durable in this heap */
} ty_in_doubt_txn;
/* Tells the outcome. Called by ty_open in its thread, twice: first before anything is written to the log's ring, when
 * TY_OUTCOME_UNKNOWN leaves it as it is; then, with durable set, for the answer that counts. Who decides only now,
 * because this heap has the transaction, does so when it is durable. The heap cannot be used meanwhile, other heaps
 * can. An open for reading asks in the same way, and the answer shows in memory alone; it is not asked of a copy of
 * files in use (TY_OPEN_COPY), which are without what is prepared and has no outcome yet. *doubt is valid during the
 * call. It may not throw. */
typedef ty_outcome ty_outcome_callback(const ty_in_doubt_txn *doubt, void *context);

typedef struct ty_open_options {
    size_t struct_size; /* sizeof(ty_open_options), set by the _INIT macro */
    ty_open_mode mode;
    ty_kind kind;              /* of a new heap; an existing archive heap becomes a snapshot heap by TY_SNAPSHOT, an
                                  existing snapshot heap transactional by TY_TRANSACTIONAL, and a transactional one a
                                  snapshot heap by TY_SNAPSHOT: its log is replayed and removed */
    size_t limit_bytes;        /* of a new heap, 0: 64 GiB; an existing heap is raised to it when it is larger */
    void *base;                /* of a new heap; NULL: the library picks a place that address-space randomisation does
                                  not use, by the heap's identity */
    ty_class_table classes;    /* of a new heap */
    const char *journal_path;  /* NULL: the image's path + "-journal". TY_E_ARGUMENT if it leads to the image or the
                                  log */
    const ty_storage *storage; /* NULL: ty_storage_default() */
    ty_tracking tracking;
    ty_background background;
    size_t staging_bytes;       /* memory for copies of dirty pages, so that the pause does not wait for the disk; where
                                   more is dirty, it waits for room. 0: a quarter of the memory that the
                                   machine or the control group has, or of memory_bytes */
    size_t journal_limit_bytes; /* when batches that are not checkpointed exceed it, a snapshot checkpoints first. 0: 1
                                   GiB, or a quarter of that memory if it is less */
    /* For transactional heaps: */
    const char *log_path;          /* NULL: the image's path + "-log"; may be on another device. TY_E_ARGUMENT if it
                                      leads to the image or the journal */
    size_t log_bytes;              /* of a new log, 0: 256 MiB. Fixed from then on */
    const struct ty_log_sink *log; /* keep the log there instead of in a file; the heap does not own it */
    bool track_stores;             /* TY_STORES_DEFAULT means TY_STORES_TRACKED */
    bool check_stores;             /* report stores that no transaction knows of, to undeclared_write */
    void (*undeclared_write)(const struct ty_undeclared_write *store,
                             void *context); /* NULL: a line on standard error */
    void *undeclared_store_context;
    size_t snapshot_dirty_bytes;   /* a snapshot is taken when so much is dirty; looked at after each commit, but not
                                      within 10 ms, or 50 times what looking took. 0: by the log's filling alone */
    uint32_t snapshot_interval_ms; /* and when something was committed and the last one is older. 0: never by time */
    /* For heaps with a journal: */
    size_t memory_bytes; /* of private copies of pages that the heap keeps when the image holds them already; those that
                            are more are given back in snapshots, a part in each. 0: as many as the machine's memory, or
                            the control group's, has room for. What was written since the last snapshot, and the copies
                            of it in staging memory, must have room besides */
    /* For transactional heaps: */
    uint32_t log_streams; /* in how many rings the log is kept, 1 to TY_LOG_STREAMS_MAX, so that as many commits
                                can be written at the same time. A durable commit waits for all of them: on few
                                processors one is best. log_bytes is for all; each takes 512 KiB at the least.
                                0: as the log has, 1 for a new one. With another number than it has, a log is made anew
                                (of the size that it had) if the heap was closed in order; else TY_E_UNSUPPORTED. A
                                library from before this option refuses a heap with several: TY_E_FORMAT */
    bool concurrent; /* of a transactional heap: many threads write to it at once, by ty_atomically (concurrent.h). Not
                        together with check_stores (TY_E_UNSUPPORTED) */
    ty_outcome_callback *outcome; /* asked where the log ends with a transaction in doubt. NULL, or
                                     TY_OUTCOME_UNKNOWN: the open fails with TY_E_IN_DOUBT, also one for reading.
                                     Distributed transactions are resolved without it (distributed.h) */
    void *outcome_context;
    ty_code code; /* what is done about addresses of code in the heap: code.h. TY_E_MISMATCH: they would not lead to
                     what they led to; nothing in the files is changed */
} ty_open_options;
#define TY_OPEN_OPTIONS_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(ty_open_options), TY_OPEN_OR_CREATE, TY_KIND_DEFAULT, 0, NULL, TY_CLASSES_CACHE_LINE, NULL, NULL,       \
            TY_TRACK_AUTOMATIC, TY_BACKGROUND_THREAD, 0, 0, NULL, 0, NULL, false, false, NULL, NULL, 0, 0, 0, 0,       \
            false, NULL, NULL, TY_CODE_DEFAULT                                                                         \
    }

/* In what state an open found the files. */
typedef enum ty_recovery_state {
    TY_RECOVERY_CREATED = 0,         /* there was no heap: created */
    TY_RECOVERY_CLOSED = 1,          /* closed in order, clean */
    TY_RECOVERY_CLOSED_BATCHES = 2,  /* closed in order, with batches to checkpoint */
    TY_RECOVERY_CRASHED = 3,         /* its process died, or the power failed, between snapshots */
    TY_RECOVERY_CRASHED_WRITING = 4, /* the same, while a batch was being written: that batch is not part of the heap */
    TY_RECOVERY_CRASHED_CHECKPOINTING = 5, /* the same, with batches not checkpointed or half checkpointed */
    TY_RECOVERY_IN_USE = 6                 /* open for writing elsewhere; what TY_OPEN_COPY opened is a copy */
} ty_recovery_state;

typedef struct ty_report {
    size_t struct_size; /* sizeof(ty_report): set by ty_open, which fills all of it */
    ty_kind kind;
    ty_recovery_state found;
    bool created;
    bool attached;             /* an archive heap became a snapshot heap */
    bool grown;                /* the limit was raised */
    bool header_repaired;      /* one of the two image headers was damaged; the other served */
    bool journal_recreated;    /* the journal was missing and, the image being clean, not needed */
    bool maybe_inconsistent;   /* an archive heap whose process died: content may be a mixture */
    ty_tracking tracking;      /* what is in use */
    uint64_t epoch;            /* the snapshot that was restored */
    uint64_t image_epoch;      /* what the image itself held */
    uint64_t batches_restored; /* read from the journal into memory */
    uint64_t pages_restored;
    uint64_t batches_discarded; /* incomplete, never acknowledged */
    uint64_t duration_ns;
    char text[256];                 /* all of this as one sentence for a person */
    bool log_attached;              /* a snapshot heap became transactional */
    bool log_detached;              /* a transactional heap became a snapshot heap */
    bool log_recreated;             /* the log was missing and, the heap being closed in order, not needed */
    uint64_t replayed_transactions; /* from the log */
    uint64_t replayed_bytes;        /* of their records */
    uint64_t lsn;                   /* of the last transaction, or outcome of one, that was restored */
    uint64_t in_doubt;              /* the LSN of one that was in doubt; 0: none was */
    ty_outcome outcome;             /* what became of it. TY_OUTCOME_UNKNOWN: it was left out of a copy of files in
                                       use, as it had not been acknowledged before the call */
    ty_code code;                   /* what the heap was made with */
    uint64_t code_words;            /* that were repointed to where the code is now */
    uint64_t lost_code_words;       /* of a heap that knows nothing of code: words that lead into code of a process that
                                       had it open before (code.h), as far as the open looks: at up to 256 blocks, from
                                       the roots on, and 4 KiB of each; in debug builds at all. ty_each_code_word and
                                       `taiyen verify` look at all */
} ty_report;

/* Opens or creates a persistent heap. options and report may be NULL. Symbolic links are followed: journal and log lie
 * beside the file that path leads to, and where that is not there it is made.
 * Errors: TY_E_NOT_FOUND, TY_E_EXISTS, TY_E_BUSY (open already, here or elsewhere), TY_E_ADDRESS, and for the files
 * TY_E_FORMAT, TY_E_DAMAGED, TY_E_MISMATCH, TY_E_PERMISSION, TY_E_SPACE, TY_E_IO. After a refusal the files are as they
 * were. Thread-safe. Durability: a created heap exists durably, empty, when this returns.
 * Time: the same at any size where it was closed in order; after a crash, linear in the log behind the last snapshot
 * and in the snapshots that wait in the journal, which are written there once more. */
TY_API TY_CHECKED ty_status ty_open(const char *path, const ty_open_options *options, ty_heap **heap,
                                    ty_report *report);

/* Takes a final snapshot, checkpoints everything, gives unused disk space back, and closes the heap. NULL does nothing.
 * If it fails (TY_E_SPACE, TY_E_IO) the heap stays open and usable, and nothing is lost: make room and close again, or
 * discard (where the snapshot had succeeded, that loses nothing either: the next open carries on).
 * A read-only heap is only unmapped. Externally serialised. */
TY_API TY_CHECKED ty_status ty_close(ty_heap *heap);

/* Closes without a snapshot: what was done since the last one is gone. NULL does nothing. Works whatever state the heap
 * and the disk are in, also in a forked child (which thereby only drops its copy): when it returns TY_OK the heap is
 * gone, even if the disk failed meanwhile. Errors, with the heap as it was: TY_E_ARGUMENT (a volatile heap), TY_E_BUSY
 * (in a procedure of an undo). Externally serialised. */
TY_API ty_status ty_discard(ty_heap *heap);

/* Makes all of the heap durable, atomically, as a new epoch; returns when it is. With nothing changed it does nothing.
 * Errors: TY_E_SPACE, TY_E_IO: the previous snapshot stays restorable, the heap stays usable, nothing is lost, and it
 * can be tried again; TY_E_FORKED; TY_E_PERMISSION (read-only).
 * Externally serialised against writers of the heap's blocks, until it returns: of a heap that memory cannot hold,
 * private copies go at its end. Otherwise thread-safe (snapshots queue up). */
TY_API TY_CHECKED ty_status ty_snapshot(ty_heap *heap);

/* The same in two steps: start returns when the pages are collected (writers may go on), with the epoch that it will
 * be; wait returns when that epoch is durable, or with the reason why it is not (then the pages count as dirty again).
 * With TY_BACKGROUND_CALLS the writing is done by the wait. With nothing changed, *epoch is the last durable epoch. */
TY_API TY_CHECKED ty_status ty_snapshot_start(ty_heap *heap, uint64_t *epoch);
TY_API TY_CHECKED ty_status ty_snapshot_wait(ty_heap *heap, uint64_t epoch);

/* Starts the next batch early: writes up to limit_pages (0: all) of the pages that are dirty now to the journal, so
 * that the next snapshot has less to do. Pages written again later are simply written again. Writers may go on
 * meanwhile. Does nothing with TY_TRACK_CONTENT. Snapshot heaps only. Errors as ty_snapshot; thread-safe. Durability:
 * none of its own. */
TY_API TY_CHECKED ty_status ty_write_back_early(ty_heap *heap, size_t limit_pages);

/* Does background work now: checkpoints all complete batches to the image. With TY_BACKGROUND_THREAD it waits until the
 * library's threads have done so. On a transactional heap it also takes the snapshot that the heap would take by
 * itself, where one is due (TY_BACKGROUND_CALLS) or has failed; not while the calling thread has a transaction or a
 * section under way on it. Errors: TY_E_SPACE, TY_E_IO: nothing is lost, it can be tried again. Thread-safe. */
TY_API TY_CHECKED ty_status ty_run_background_work(ty_heap *heap);

/* Waits for nothing; the last error of background work that has not succeeded since, and TY_OK if there is none. Of a
 * transactional heap also of the snapshots that it takes by itself: one that failed is tried again after a
 * second, by the library's thread or a commit, or at once by ty_run_background_work. TY_E_FORKED in a forked child.
 * Thread-safe. */
TY_API ty_status ty_background_work_status(ty_heap *heap);

/* The named root, NULL if there is none. Thread-safe. */
TY_API void *ty_root(ty_heap *heap, const char *name);

#define TY_ROOT_NAME_MAX 47u
#define TY_ROOT_COUNT_MAX 63u

/* Sets a named root; a NULL address removes it. Names have 1 to TY_ROOT_NAME_MAX bytes; a heap has up to
 * TY_ROOT_COUNT_MAX. Any kind of heap has roots. The address must lie in the heap.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY (too many). Thread-safe. Durable with the next snapshot. */
TY_API TY_CHECKED ty_status ty_root_set(ty_heap *heap, const char *name, void *address);

/* Calls back for each root until the callback returns false. Externally serialised against ty_root_set. */
typedef bool ty_root_callback(const char *name, void *address, void *context);
TY_API ty_status ty_each_root(ty_heap *heap, ty_root_callback *callback, void *context);

/* The number of pages that the next snapshot would write; in a heap that is open read-only, of pages that the journal
 * holds and the image does not yet. Snapshot heaps only (else TY_E_UNSUPPORTED). Thread-safe. */
TY_API TY_CHECKED ty_status ty_dirty_count(ty_heap *heap, uint64_t *pages);

/* Copies the bits of those pages, of count pages from page first on, into bitmap (bit n % 64 of word n / 64, page 0 is
 * at the heap's base). Snapshot heaps only. Thread-safe. */
TY_API TY_CHECKED ty_status ty_dirty_bitmap(ty_heap *heap, uint64_t first, uint64_t count, uint64_t *bitmap);

/* Says that bytes at address were written by what the system's tracking of writes does not see, so that the next
 * snapshot takes them. The processor's stores, and system calls that write into the heap (read, process_vm_writev), are
 * seen and need it not. Not seen is what writes through pages that were pinned earlier: io_uring with registered
 * buffers, direct reads (O_DIRECT, libaio) and vmsplice that were begun before a snapshot collected its pages, RDMA.
 * Call it when the writing has ended and before the next snapshot (or, of a transaction, before its commit); a read in
 * flight while a snapshot collects is in that snapshot in part, so wait for it first or call this after it: then the
 * next one has it. In a transaction also ty_declare the bytes, before the writing begins: the log is told by that, the
 * snapshots by this. Memory that is pinned must not be given back: no ty_heap_purge meanwhile, no free of its block,
 * and, where memory cannot hold the heap (ty_open_options.memory_bytes), no snapshot. Costs a store to each page; what
 * the bytes are is not changed. Any kind of heap that lives in files. Errors: TY_E_ARGUMENT (a volatile heap; not in
 * the heap's blocks), TY_E_PERMISSION (read-only), TY_E_FORKED. Thread-safe, also beside stores of other threads to the
 * same bytes. */
TY_API TY_CHECKED ty_status ty_mark_written(ty_heap *heap, const void *address, size_t bytes);

/* What the files of a persistent heap say. Filled without opening the heap. */
typedef struct ty_info {
    size_t struct_size; /* sizeof(ty_info), set by the caller */
    ty_kind kind;
    uint32_t format_version;
    uint8_t identity[16];
    void *base;
    size_t limit_bytes;
    uint32_t page_bytes;
    ty_class_table classes;
    uint64_t image_epoch; /* the epoch that the image holds */
    uint64_t epoch;       /* the epoch that an open would restore */
    uint64_t batches;     /* complete batches that an open would read */
    uint64_t batch_pages;
    bool closed;            /* closed in order */
    bool in_use;            /* some process has it open for writing */
    uint64_t image_bytes;   /* allocated on disk; the file is sparse */
    uint64_t journal_bytes; /* size of the journal */
    uint64_t created_unix_s;
    ty_recovery_state found; /* what an open would report */
    char open_text[256]; /* what an open would do with image, journal and log, as one sentence: it is refused, and why;
                            or it opens, with what it reads from the journal and replays from the log */
    /* Of transactional heaps: */
    uint64_t log_identity;
    uint64_t log_position; /* where the epoch that an open would restore stands in the log, in its first log stream */
    uint64_t log_lsn;      /* of the last transaction that this epoch holds */
} ty_info;

/* Reads the parameters of a heap from its files: image, journal and log are read as far as an open reads them, so what
 * is wrong with journal or log stands in open_text. Needs read permission only, changes nothing, works while the heap
 * is open elsewhere (the figures may then be of different moments). storage may be NULL. Errors: TY_E_NOT_FOUND,
 * TY_E_FORMAT, TY_E_DAMAGED, TY_E_MISMATCH, TY_E_IO. Thread-safe. */
TY_API TY_CHECKED ty_status ty_read_info(const char *path, const ty_storage *storage, ty_info *info);

/* The same of the files that an open with these options would take: journal_path, log_path, log and storage count.
 * NULL: all defaults. */
TY_API TY_CHECKED ty_status ty_read_info_with(const char *path, const ty_open_options *options, ty_info *info);

/* The kind of a heap, and the last epoch that is durable (0 for volatile heaps). Thread-safe. */
TY_API ty_kind ty_heap_kind(ty_heap *heap);
TY_API uint64_t ty_heap_epoch(ty_heap *heap);

/* Figures of the snapshots taken since the heap was opened. */
typedef struct ty_snapshot_stats {
    size_t struct_size;       /* sizeof(ty_snapshot_stats), set by the caller */
    uint64_t snapshots;       /* successful ones that wrote something */
    uint64_t pages;           /* pages written to the journal by them */
    uint64_t journal_bytes;   /* bytes written to the journal */
    uint64_t image_bytes;     /* bytes written to the image */
    uint64_t last_pause_ns;   /* from the call until writers may go on; of a concurrent heap, while others go on, the
                                 pause of   allocations alone */
    uint64_t last_durable_ns; /* from the call until durable */
    uint64_t last_bytes;      /* written before it was durable */
    uint64_t pending_batches;
    uint64_t pending_bytes;
    uint64_t pages_evicted; /* private copies that went since the image holds the pages: memory_bytes */
} ty_snapshot_stats;
/* Writes *stats. Errors: TY_E_ARGUMENT (a volatile heap), TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_get_snapshot_stats(ty_heap *heap, ty_snapshot_stats *stats);

/* Checks what is on disk: both headers of the image; each page that the image must hold against its checksum, also
 * where the file has a hole; the checksums themselves; the journal's headers and batches; the log's headers, and its
 * transactions behind the last snapshot. Pages of archive heaps have no checksums: they are read, and no more. A header
 * that a crash tore is told of, although the other one serves and the next open repairs it. Calls back with progress
 * (done and total bytes; return false to stop) and with each problem: what, where, and which part of the heap. Either
 * callback may be NULL. Needs read permission; refuses a heap that is open for writing (TY_E_BUSY). Changes nothing.
 * TY_OK: all sound; TY_E_DAMAGED: problems were reported; TY_E_BUSY: also when stopped. */
typedef bool ty_progress_callback(uint64_t done_bytes, uint64_t total_bytes, void *context);
TY_API TY_CHECKED ty_status ty_scrub(const char *path, const ty_storage *storage, ty_progress_callback *progress,
                                     ty_problem_callback *problem, void *context);

/* The same of the files that an open with these options would take, as ty_read_info_with. */
TY_API TY_CHECKED ty_status ty_scrub_with(const char *path, const ty_open_options *options,
                                          ty_progress_callback *progress, ty_problem_callback *problem, void *context);

#ifdef __cplusplus
}
#endif
#endif
