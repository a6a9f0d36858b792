/* Taiyen: heap files.
 *
 * Purpose: open a heap that lives in files; make its content durable with snapshots; inspect and check the files.
 *
 * Vocabulary: `atlas.ty` is the *image* (the backing file); `atlas.ty-journal` beside it is the *journal* (a redo
 * journal of pages). A *snapshot* makes all of the heap durable as one *epoch*: it appends one *batch* to the journal.
 * A *checkpoint* copies batches to their places in the image; when no batch is left to copy, the files are *clean*. An
 * *archive* heap has only an image. A *root* is a named pointer, from which a program finds its data structures again.
 *
 * Guarantees:
 *  - A snapshot heap is crash-safe: at every instant the files hold its last successful snapshot, whole. A process
 *    crash or a power cut loses what was done since, and nothing else.
 *  - An archive heap is not: its snapshot is durable when it returns, but the kernel may write pages earlier. After a
 *    crash the content may be a mixture of old and new pages; ty_report.maybe_inconsistent is then set.
 *  - A heap is always mapped at the address where it was created, so raw pointers stay valid. An open never moves a
 *    heap: if the address range is taken, it fails with TY_E_ADDRESS, and the error detail says what takes it.
 *  - Damaged, truncated, foreign and hostile files are reported as a status; they never crash the library, and an open
 *    that is refused changes nothing on disk. (The library does not protect a program that follows its own pointers
 *    through damaged user data: run ty_scrub first.)
 *  - While a snapshot collects dirty pages (its *pause*), no thread may write to blocks of the heap; allocations of
 *    other threads wait by themselves.
 *  - Nothing is acknowledged in files that are gone: if the image, the journal or the log was removed while the heap is
 *    open, or the program closed the library's file descriptors (closefrom), snapshots, commits and ty_close fail with
 *    TY_E_IO. The heap stays usable in memory, and nothing is written to other files. Files that were only renamed
 *    still belong to the heap; it can be opened under the new names if these fit together.
 *  - A heap is used by the process that opened it; in a forked child every call that would touch the files is refused
 *    with TY_E_FORKED, but for ty_branch (marks.h), which makes a heap of what the child has. The child holds no lock:
 *    once the parent has closed the heap or was killed, any process can open it, also the child itself after ty_discard
 *    of its copy. An archive heap's memory is the file: the child can read it, and a store into it ends the child.
 *  - The memory of any other heap is the child's own copy, but for pages that nobody has stored into since the open.
 *    These are the file's: what the parent stores there after the fork shows in the child once it is checkpointed. So a
 *    child that goes on with the heap beside its parent branches it first.
 *
 * Cost: an open takes the same time for 1 MB and for 1 TB, plus the time to read batches that are not checkpointed yet.
 * The first write to a page after a snapshot costs about a microsecond. A snapshot costs one sequential write of the
 * dirty pages and one flush. Stack of the calling thread (x86-64, optimised): up to 40 KiB for calls that open, close
 * or inspect files, 24 KiB for a snapshot, 16 KiB (PTHREAD_STACK_MIN) for all other calls of the library, including
 * transactions.
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
    TY_KIND_DEFAULT = 0, /* for options only: the kind that the existing heap has; a new heap is a snapshot heap */
    TY_VOLATILE = 1,
    TY_ARCHIVE = 2,
    TY_SNAPSHOT = 3,
    TY_TRANSACTIONAL = 4 /* a snapshot heap with a log: txn.h */
} ty_kind;

typedef enum ty_open_mode {
    TY_OPEN_OR_CREATE = 0,
    TY_OPEN_EXISTING = 1,  /* TY_E_NOT_FOUND if no heap exists */
    TY_CREATE_NEW = 2,     /* TY_E_EXISTS if a heap exists */
    TY_OPEN_READ_ONLY = 3, /* needs no write permission and changes no file; the heap's pages are read-only. Other
                              read-only opens are possible at the same time, an open for writing is not */
    TY_OPEN_COPY = 4,  /* the same; but if another process has the heap open for writing, this opens a consistent copy
                          of its files, taken now, which holds all that was acknowledged before the call. (To resolve
                          a distributed transaction that the files leave in doubt, it reads the files of the group's
                          other heaps.) The copy is made of unnamed files in the files' folders; or in memory, if no
                          file can be created there, if less than twice its size is free, or if the program supplies
                          the storage. The writer continues; meanwhile up to 64 MiB of its snapshots wait in its
                          journal.
                          TY_E_SPACE: neither the disk nor memory has room. TY_E_BUSY: an archive heap is open; or the
                          writer's snapshots follow each other so fast that no copy succeeds in half a minute.
                          TY_E_UNSUPPORTED: the option log is set, and a writer has the heap open */
    TY_OPEN_FOLLOW = 5 /* as TY_OPEN_READ_ONLY, beside a writer, whose newest state ty_refresh brings: follow.h */
} ty_open_mode;

/* How dirty pages are found. */
typedef enum ty_tracking {
    TY_TRACK_AUTOMATIC = 0, /* the kernel's write tracking if it has one, else content, else signals */
    TY_TRACK_KERNEL = 1,    /* userfaultfd asynchronous write-protection and PAGEMAP_SCAN (Linux 6.7), or an error */
    TY_TRACK_SIGNAL = 2,    /* page protection and a SIGSEGV handler: 7 us for the first write to a page, and system
                               calls that write into clean pages of the heap (read, recv) fail with EFAULT. No thread
                               that writes to the heap may block SIGSEGV: the kernel would end the process. The open
                               unblocks it in the calling thread */
    TY_TRACK_CONTENT = 3    /* checksums of the private copies of pages: works on any kernel, and system calls may
                               write. A snapshot's pause grows by 0.1 s for each GB written since the open, or by a
                               tenth of that where the kernel keeps soft-dirty bits (5.11) and the heap is a large part
                               of the process's memory. ty_write_back_early does nothing */
} ty_tracking;

/* Which threads do the background work (checkpointing batches to the image). */
typedef enum ty_background {
    TY_BACKGROUND_THREAD = 0, /* seven threads of the library, three more for a log, and one for each further log
                                 stream; they sleep when there is nothing to do. While a single thread waits for its
                                 commit, one thread of the log spins on that thread's processor, in the lowest
                                 scheduling class (SCHED_IDLE), if this makes commits faster */
    TY_BACKGROUND_CALLS = 1   /* those of the program that call ty_run_background_work; the library starts no thread */
} ty_background;

/* The outcome of a prepared transaction (ty_prepare). */
typedef enum ty_outcome {
    TY_OUTCOME_UNKNOWN = 0, /* not known now */
    TY_OUTCOME_COMMIT = 1,
    TY_OUTCOME_ROLLBACK = 2
} ty_outcome;

/* A transaction in doubt: it was prepared, and the program ended before its outcome was decided. */
typedef struct ty_in_doubt_txn {
    size_t struct_size; /* sizeof(ty_in_doubt_txn) */
    const char *heap_path;
    uint8_t heap_identity[16];
    uint64_t lsn;
    const void *description; /* what ty_prepare was given */
    size_t description_bytes;
    bool durable; /* the prepared record is durable in this heap */
} ty_in_doubt_txn;
/* Returns the outcome. ty_open calls it twice, in its own thread. First before anything is written to the log's ring:
 * TY_OUTCOME_UNKNOWN then leaves it open. The second call, with doubt->durable set, is the one that counts: a
 * coordinator that decides only because this heap has the transaction decides in it. An open for reading asks in the
 * same way, and the answer takes effect in memory only. A copy of files in use (TY_OPEN_COPY) asks nothing: a
 * transaction of the program's own that is prepared and has no outcome was not acknowledged, and is left out. During
 * the call the heap cannot be used, other heaps can, and *doubt is valid. The callback must not throw. */
typedef ty_outcome ty_outcome_callback(const ty_in_doubt_txn *doubt, void *context);

/* A lock of the program's that guards its reads of a shared heap, as an interpreter's does. The library locks it around
 * each change of memory that is not the program's own: to what other processes have committed, in ty_begin, ty_refresh,
 * ty_close and threads of the library. A thread that has it may call ty_begin with no_wait, ty_rollback, and what
 * neither begins nor ends a transaction; apart from ty_begin, it waits for no call of the heap. If what was read
 * without a section may be a mixture (TY_E_EXPIRED, as of ty_read_end), the next ty_begin or ty_refresh says so. */
typedef struct ty_reader_lock {
    void (*lock)(void *context);   /* the calling thread may have it already: it is recursive */
    void (*unlock)(void *context); /* once for each lock, by the thread that locked */
    void *context;
} ty_reader_lock;

typedef struct ty_open_options {
    size_t struct_size; /* sizeof(ty_open_options), set by the _INIT macro */
    ty_open_mode mode;
    ty_kind kind;              /* of a new heap. TY_SNAPSHOT turns an existing archive heap into a snapshot heap,
                                  TY_TRANSACTIONAL turns a snapshot heap into a transactional one, and TY_SNAPSHOT turns
                                  a transactional heap back into a snapshot heap: its log is replayed and removed */
    size_t limit_bytes;        /* of a new heap, 0: 64 GiB; a smaller limit of an existing heap is grown to it */
    void *base;                /* of a new heap; NULL: the library derives an address from the heap's identity, in a
                                  region that address-space randomisation does not use */
    ty_class_table classes;    /* of a new heap */
    const char *journal_path;  /* NULL: the image's path + "-journal". TY_E_ARGUMENT if it leads to the image or the
                                  log */
    const ty_storage *storage; /* NULL: ty_storage_default() */
    ty_tracking tracking;
    ty_background background;
    size_t staging_bytes;       /* memory for copies of dirty pages, so that the pause does not wait for the disk; if
                                   more is dirty, the pause waits for room. 0: a quarter of the memory of the machine or
                                   the control group, or of memory_bytes */
    size_t journal_limit_bytes; /* when batches that are not checkpointed exceed it, a snapshot checkpoints first. 0: 1
                                   GiB, or a quarter of the machine's or control group's memory if that is less */
    /* For transactional heaps: */
    const char *log_path;          /* NULL: the image's path + "-log"; may be on another device. TY_E_ARGUMENT if it
                                      leads to the image or the journal */
    size_t log_bytes;              /* of a new log, 0: 256 MiB. Fixed from then on */
    const struct ty_log_sink *log; /* write the log there instead of to a file; the heap does not own it */
    bool track_stores;             /* TY_STORES_DEFAULT means TY_STORES_TRACKED */
    bool check_stores;             /* report undeclared writes (stores that no transaction knows of) to
                                      undeclared_write */
    void (*undeclared_write)(const struct ty_undeclared_write *store,
                             void *context); /* NULL: a line on standard error */
    void *undeclared_store_context;
    size_t snapshot_dirty_bytes;   /* a snapshot is taken when this much is dirty; checked after each commit, but not
                                      within 10 ms, or 50 times as long as the last check took. 0: only as the log
                                      fills */
    uint32_t snapshot_interval_ms; /* and when something was committed and the last snapshot is older than this. 0:
                                      never by time */
    /* For heaps with a journal: */
    size_t memory_bytes; /* limit on private copies of pages that the image already holds; snapshots evict those beyond
                            it, a part in each. 0: as many as fit in the memory of the machine or the control group.
                            Memory for what was written since the last snapshot, and for the copies of it in staging
                            memory, comes on top */
    /* For transactional heaps: */
    uint32_t log_streams; /* number of log streams, 1 to TY_LOG_STREAMS_MAX: rings to which commits can be written at
                             the same time. A durable commit waits for all of them: with few processors, one is best.
                             log_bytes is the size of all together; each takes at least 512 KiB.
                             0: as many as the log has, 1 for a new log. If the log has another number, it is recreated
                             (with its old size) if the heap was closed in order; else TY_E_UNSUPPORTED. A library from
                             before this option refuses a heap with several: TY_E_FORMAT */
    bool concurrent; /* many threads write to the heap at once, with ty_atomically (concurrent.h). Not together with
                        check_stores (TY_E_UNSUPPORTED) */
    ty_outcome_callback *outcome; /* called if the log ends with a transaction in doubt. If it is NULL or returns
                                     TY_OUTCOME_UNKNOWN, the open fails with TY_E_IN_DOUBT, also an open for reading.
                                     The library of distributed.h resolves its transactions without it */
    void *outcome_context;
    ty_code code; /* how addresses of code in the heap are treated: code.h. TY_E_MISMATCH: they would not lead to the
                     same code as before; nothing in the files is changed */
    /* For the modes TY_OPEN_READ_ONLY and TY_OPEN_COPY: */
    const char *mark; /* a durable mark (marks.h): the heap is as it was there, a snapshot heap without a log. NULL: as
                         an open would restore it. TY_E_NOT_FOUND: it has no such mark. Cost: as marks.h says of a
                         return; TY_OPEN_COPY also copies the file of marks */
    /* For transactional heaps that several processes have open for writing, each with this option: */
    bool shared; /* transactions of all processes follow each other; each begins on the newest state, and so does each
                    read section, unless another thread of the process is in one. Every read is in a section, or in a
                    transaction: between them memory changes. The process that opens the heap first writes its log; if
                    it closes the heap or dies, another one does so within some 20 ms, and what was committed is kept as
                    long as one of them lives. While it is stopped, or one of its read sections lasts, others wait for
                    durable commits, and later for any. A process that was stopped for more than a second may get
                    TY_E_EXPIRED from ty_commit and ty_read_end: roll back, and do it again. TY_E_SPACE: a commit
                    changes more than 2 MiB, or a sixteenth of the log. Refused (TY_E_UNSUPPORTED): concurrent, several
                    log streams, own log sinks, check_stores, TY_BACKGROUND_CALLS, mapped code; a limit_bytes that would
                    raise the limit of a heap that others have open; on the heap reservations, sections of objects,
                    ty_prepare, marks, branches, replicas, and in other processes than the log's writer snapshots.
                    TY_E_BUSY, after 8 s: a process has it open without this option. The file PATH-shared beside the
                    heap is the processes' own, and of no use without them. docs/how-to/processes.md */
    const ty_reader_lock *reader_lock; /* with shared: what this process's readers have instead of read sections */
} ty_open_options;
#define TY_OPEN_OPTIONS_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(ty_open_options), TY_OPEN_OR_CREATE, TY_KIND_DEFAULT, 0, NULL, TY_CLASSES_CACHE_LINE, NULL, NULL,       \
            TY_TRACK_AUTOMATIC, TY_BACKGROUND_THREAD, 0, 0, NULL, 0, NULL, false, false, NULL, NULL, 0, 0, 0, 0,       \
            false, NULL, NULL, TY_CODE_DEFAULT, NULL, false, NULL                                                      \
    }

/* In what state an open found the files. */
typedef enum ty_recovery_state {
    TY_RECOVERY_CREATED = 0,         /* no heap existed; created */
    TY_RECOVERY_CLOSED = 1,          /* closed in order, clean */
    TY_RECOVERY_CLOSED_BATCHES = 2,  /* closed in order, with batches to checkpoint */
    TY_RECOVERY_CRASHED = 3,         /* its process died, or the power failed, between snapshots */
    TY_RECOVERY_CRASHED_WRITING = 4, /* the same, while a batch was being written: that batch is not part of the heap */
    TY_RECOVERY_CRASHED_BATCHES = 5, /* the same, with batches not checkpointed or half checkpointed */
    TY_RECOVERY_IN_USE = 6           /* open for writing elsewhere; what TY_OPEN_COPY opened is a copy */
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
    bool maybe_inconsistent;   /* an archive heap whose process died: content may be a mixture of old and new pages */
    ty_tracking tracking;      /* in use */
    uint64_t epoch;            /* the snapshot that was restored */
    uint64_t image_epoch;      /* the snapshot that the image itself held */
    uint64_t batches_restored; /* read from the journal into memory */
    uint64_t pages_restored;
    uint64_t batches_discarded; /* incomplete, never acknowledged */
    uint64_t duration_ns;
    char text[256];                 /* all of this, as one sentence for people to read */
    bool log_attached;              /* a snapshot heap became transactional */
    bool log_detached;              /* a transactional heap became a snapshot heap */
    bool log_recreated;             /* the log was missing and, the heap being closed in order, not needed */
    uint64_t replayed_transactions; /* from the log */
    uint64_t replayed_bytes;        /* of their records */
    uint64_t lsn;                   /* of the last transaction, or outcome record, that was restored */
    uint64_t in_doubt;              /* the LSN of the transaction that was in doubt; 0: none was */
    ty_outcome outcome;             /* its outcome. TY_OUTCOME_UNKNOWN: it was left out of a copy of files in use, since
                                       it had not been acknowledged before the call */
    ty_code code;                   /* what the heap was made with */
    uint64_t code_words;            /* words repointed to where the code is now */
    uint64_t lost_code_words;       /* in a heap that records nothing about code: words that point into code of a
                                       process that had it open before (code.h). The open samples up to 256 blocks, from
                                       the roots on, and 4 KiB of each; debug builds scan all. ty_each_code_word and
                                       `taiyen verify` scan all */
} ty_report;

/* Opens or creates a persistent heap. options and report may be NULL. Symbolic links are followed: journal and log lie
 * beside the file that path leads to; a missing file is created there.
 * Errors: TY_E_NOT_FOUND, TY_E_EXISTS, TY_E_BUSY (open already, here or elsewhere), TY_E_ADDRESS, and for the files
 * TY_E_FORMAT, TY_E_DAMAGED, TY_E_MISMATCH, TY_E_PERMISSION, TY_E_SPACE, TY_E_IO. (If it is the file of durable marks,
 * marks.h, that is damaged or does not belong: the heap is whole without it.) An open that is refused leaves the files
 * unchanged. Thread-safe. Durability: when this returns, a created heap exists durably, empty.
 * Cost: independent of the heap's size if it was closed in order; after a crash, linear in the log after the last
 * snapshot and in the snapshots in the journal that are not checkpointed, which are written to the journal once
 * more. */
TY_API TY_CHECKED ty_status ty_open(const char *path, const ty_open_options *options, ty_heap **heap,
                                    ty_report *report);

/* Takes a final snapshot, checkpoints everything, releases unused disk space, and closes the heap. NULL does nothing.
 * If it fails (TY_E_SPACE, TY_E_IO) the heap stays open and usable, and nothing is lost: make room and close again, or
 * discard it (if the snapshot had succeeded, a discard loses nothing either: the next open recovers it).
 * A read-only heap is only unmapped. Externally serialised. */
TY_API TY_CHECKED ty_status ty_close(ty_heap *heap);

/* Closes without a snapshot: what was done since the last one is gone. NULL does nothing. Works in any state of the
 * heap and the disk, also in a forked child (where it only drops the child's copy): when it returns TY_OK the heap is
 * closed, even if the disk failed. Errors, with the heap as it was: TY_E_ARGUMENT (a volatile heap), TY_E_BUSY (in a
 * procedure of an undo). Externally serialised. */
TY_API ty_status ty_discard(ty_heap *heap);

/* Makes the whole heap durable, atomically, as a new epoch; returns when that epoch is durable. Does nothing if nothing
 * changed. Errors: TY_E_SPACE, TY_E_IO: the previous snapshot stays restorable, the heap stays usable, nothing is lost,
 * and the call can be repeated; TY_E_FORKED; TY_E_PERMISSION (read-only).
 * Externally serialised against writers of the heap's blocks, until it returns: if memory cannot hold the heap, private
 * copies are evicted at its end. Otherwise thread-safe (snapshots queue up). */
TY_API TY_CHECKED ty_status ty_snapshot(ty_heap *heap);

/* The same in two steps. ty_snapshot_start returns when the pages are collected (writers may continue), with the epoch
 * that the snapshot will be. ty_snapshot_wait returns when that epoch is durable, or with the reason why it is not (the
 * pages then count as dirty again). With TY_BACKGROUND_CALLS the wait does the writing. If nothing changed, *epoch is
 * the last durable epoch. */
TY_API TY_CHECKED ty_status ty_snapshot_start(ty_heap *heap, uint64_t *epoch);
TY_API TY_CHECKED ty_status ty_snapshot_wait(ty_heap *heap, uint64_t epoch);

/* Early write-back, ahead of the next snapshot: writes up to limit_pages (0: all) of the pages that are dirty now to
 * the journal, so that the next snapshot has less to do. A page that changes again afterwards is written again. Writers
 * may continue meanwhile. Does nothing with TY_TRACK_CONTENT. Snapshot heaps only. Errors as ty_snapshot; thread-safe.
 * Makes nothing durable by itself. */
TY_API TY_CHECKED ty_status ty_write_back_early(ty_heap *heap, size_t limit_pages);

/* Does background work now: checkpoints all complete batches to the image. With TY_BACKGROUND_THREAD it waits until the
 * library's threads have done so. On a transactional heap it also takes the automatic snapshot, if one is due
 * (TY_BACKGROUND_CALLS) or has failed; but not while the calling thread has a transaction or a read section under way
 * on the heap. Errors: TY_E_SPACE, TY_E_IO: nothing is lost, and the call can be repeated. Thread-safe. */
TY_API TY_CHECKED ty_status ty_run_background_work(ty_heap *heap);

/* Returns the last error of background work that has not succeeded since, or TY_OK; does not wait. On a transactional
 * heap this includes automatic snapshots: one that failed is retried after a second, by the library's thread or a
 * commit, or at once by ty_run_background_work. TY_E_FORKED in a forked child. Thread-safe. */
TY_API ty_status ty_background_work_status(ty_heap *heap);

/* The address of the named root, or NULL. Thread-safe. */
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
 * holds and the image does not yet; of a follower, when it was refreshed last. Snapshot heaps only (else
 * TY_E_UNSUPPORTED). Thread-safe. */
TY_API TY_CHECKED ty_status ty_dirty_count(ty_heap *heap, uint64_t *pages);

/* Copies the bits of those pages, of count pages from page first on, into bitmap (bit n % 64 of word n / 64, page 0 is
 * at the heap's base). Snapshot heaps only. Thread-safe. */
TY_API TY_CHECKED ty_status ty_dirty_bitmap(ty_heap *heap, uint64_t first, uint64_t count, uint64_t *bitmap);

/* Marks bytes at address as written, so that the next snapshot takes them, when write tracking cannot see the writes.
 * It sees the processor's stores, and system calls that write into the heap (read, process_vm_writev): these need no
 * such call. It does not see writes through pages that were pinned earlier: io_uring with registered buffers, RDMA, and
 * direct reads (O_DIRECT, libaio) and vmsplice that began before a snapshot collected its pages. Call it when the
 * writing has ended and before the next snapshot (or, of a transaction, before its commit); a read in flight while a
 * snapshot collects is in that snapshot only in part, so wait for it first, or call this after it: then the next
 * snapshot has it. In a transaction, also ty_declare the bytes before the writing begins: that call is for the log,
 * this one for snapshots. Pinned memory must not be released: while it is pinned, call no ty_heap_purge, do not free
 * its block, and, if memory cannot hold the heap (ty_open_options.memory_bytes), take no snapshot. Cost: one store to
 * each page, which leaves the bytes as they are. Any kind of heap that lives in files. Errors: TY_E_ARGUMENT (a
 * volatile heap; outside the heap's blocks), TY_E_PERMISSION (read-only), TY_E_FORKED. Thread-safe, also beside stores
 * of other threads to the same bytes. */
TY_API TY_CHECKED ty_status ty_mark_written(ty_heap *heap, const void *address, size_t bytes);

/* What the files of a persistent heap hold. Read without opening the heap. */
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
    char open_text[256];     /* what an open would do, as one sentence: either why it would be refused, or what it would
                                read from the journal and replay from the log */
    /* For transactional heaps: */
    uint64_t log_identity;
    uint64_t log_position; /* offset in the log's first stream of the epoch that an open would restore */
    uint64_t log_lsn;      /* of the last transaction that this epoch includes */
    /* Durable marks (marks.h): */
    uint64_t marks;
    uint64_t marks_bytes; /* size of their file */
} ty_info;

/* Reads the parameters of a heap from its files: reads image, journal, log and durable marks as far as an open would,
 * so open_text says what is wrong with journal, log or marks. Needs read permission only, changes and locks nothing,
 * and works while the heap is open elsewhere (the fields may then be of different moments). They are the files that an
 * open with these options would use: journal_path, log_path, log and storage matter alone. NULL: all defaults. Errors:
 * TY_E_NOT_FOUND, TY_E_FORMAT, TY_E_DAMAGED, TY_E_MISMATCH, TY_E_IO. Thread-safe. */
TY_API TY_CHECKED ty_status ty_read_info(const char *path, const ty_open_options *options, ty_info *info);

/* The kind of a heap, and the last epoch that is durable (0 for volatile heaps). Thread-safe. */
TY_API ty_kind ty_heap_kind(ty_heap *heap);
TY_API uint64_t ty_heap_epoch(ty_heap *heap);

/* Statistics of the snapshots taken since the heap was opened. */
typedef struct ty_snapshot_stats {
    size_t struct_size;       /* sizeof(ty_snapshot_stats), set by the caller */
    uint64_t snapshots;       /* successful ones that wrote something */
    uint64_t pages;           /* pages written to the journal by them */
    uint64_t journal_bytes;   /* bytes written to the journal */
    uint64_t image_bytes;     /* bytes written to the image */
    uint64_t last_pause_ns;   /* from the call until writers may continue; on a concurrent heap, where writers need not
                                 wait, only the pause of allocations */
    uint64_t last_durable_ns; /* from the call until durable */
    uint64_t last_bytes;      /* written before it was durable */
    uint64_t pending_batches;
    uint64_t pending_bytes;
    uint64_t pages_evicted; /* private copies evicted because the image holds the pages: memory_bytes */
} ty_snapshot_stats;
/* Writes *stats. Errors: TY_E_ARGUMENT (a volatile heap), TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_get_snapshot_stats(ty_heap *heap, ty_snapshot_stats *stats);

/* Checks what is on disk: both headers of the image; each page that the image must hold against its checksum, also
 * where the file has a hole; the checksums themselves; the journal's headers and batches; the log's headers, and its
 * transactions after the last snapshot. Pages of archive heaps have no checksums: they are only read. A header that a
 * crash tore is reported, although the other one serves and the next open repairs it. Calls back with progress (done
 * and total bytes; return false to stop) and with each problem: what, where, and which part of the heap. Either
 * callback may be NULL. Needs read permission; refuses a heap that is open for writing (TY_E_BUSY). Changes nothing.
 * options: as for ty_read_info. TY_OK: all is sound; TY_E_DAMAGED: problems were reported; TY_E_BUSY: also when
 * stopped. */
typedef bool ty_progress_callback(uint64_t done_bytes, uint64_t total_bytes, void *context);
TY_API TY_CHECKED ty_status ty_scrub(const char *path, const ty_open_options *options, ty_progress_callback *progress,
                                     ty_problem_callback *problem, void *context);

#ifdef __cplusplus
}
#endif
#endif
