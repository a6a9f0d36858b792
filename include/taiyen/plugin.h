/* Taiyen: what a package needs of the core beside the public functions.
 *
 * Purpose: two-phase commit from outside: packages that resolve what an open finds in doubt, prepare transactions
 * without waiting, and group several for one durable write. For packages of exactly this version: unlike the other
 * headers, it may change with each. Not in taiyen.h.
 *
 * Conventions: arguments are right, as the package has checked them; errors are those of the public functions of the
 * same name, where nothing else is said. docs/design/txn.md describes prepared and grouped transactions (X27 to X29,
 * X33).
 */
#ifndef TAIYEN_PLUGIN_H
#define TAIYEN_PLUGIN_H

#include "persist.h"
#include "txn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Heaps */

/* Whether it is a handle of an open heap: TY_E_ARGUMENT. call completes "cannot ...". Thread-safe. */
TY_API TY_CHECKED ty_status ty_plugin_check_heap(const ty_heap *heap, const char *call);
/* Where a heap's files are. */
typedef struct ty_plugin_files {
    const uint8_t *identity; /* 16 bytes */
    const char *image;
    const char *journal; /* empty: beside the image */
    const char *log;     /* empty: beside the image, or on a sink of the program's */
} ty_plugin_files;
/* The texts are valid as long as the heap is open. Thread-safe. */
TY_API void ty_plugin_get_files(ty_heap *heap, ty_plugin_files *files);

/* ---- Memory and locks of the library's own */

/* malloc of the process, whatever scope of a heap the thread is in (scope.h); freed by free. Thread-safe. */
TY_API void *ty_plugin_malloc(size_t size_bytes);
/* A lock that is free in a forked child, whichever of its parent's threads held it. A thread that holds one takes
 * others of a higher rank only. */
typedef struct ty_plugin_mutex {
    uint32_t word; /* 0 at first */
    uint32_t rank;
} ty_plugin_mutex;
#define TY_PLUGIN_RANK_GROUPS 0u      /* held while heaps' locks are taken */
#define TY_PLUGIN_RANK_PROCEDURES 23u /* held alone */
/* Takes the lock, and releases it; no cancellation point. Thread-safe. */
TY_API void ty_plugin_lock(ty_plugin_mutex *mutex);
/* As above. */
TY_API void ty_plugin_unlock(ty_plugin_mutex *mutex);

/* ---- What an open finds in doubt */

#define TY_PLUGIN_DESCRIPTION_BYTES_MAX 1024u /* of a prepared transaction's description */
/* What the descriptions begin with of packages whose transactions may have been acknowledged before their outcome was
 * logged: so where no resolver takes one, a copy of files in use is refused (X33). (A branch of XA is not: its
 * transaction manager acknowledges after the commit.) */
#define TY_PLUGIN_DESCRIPTION_PREFIX "ty-"

/* Resolves transactions in doubt where the program gave no callback. In an open for reading (options->mode) it changes
 * no file; with TY_OPEN_COPY the heap is in use, and TY_OUTCOME_ROLLBACK then means that the transaction had not been
 * acknowledged when the open began. The heap may be read. JO1: what is in doubt is durable by then. */
typedef struct ty_plugin_resolver {
    /* Whether the description is one of its own. */
    bool (*takes)(const void *description, size_t bytes);
    /* why: if the outcome is unknown, what is missing, for the error's text. */
    ty_outcome (*resolve)(const ty_in_doubt_txn *in_doubt, ty_heap *heap, const ty_open_options *options, char *why,
                          size_t why_bytes);
} ty_plugin_resolver;
/* One for the process; it must stay valid. Thread-safe. */
TY_API void ty_plugin_set_resolver(const ty_plugin_resolver *resolver);

/* How this process has a heap open that is inspected. */
typedef enum ty_plugin_opened {
    TY_PLUGIN_WRITES, /* for writing, and between its transactions; the content is durable */
    TY_PLUGIN_READS,  /* its files as they are, which nobody changes meanwhile */
    TY_PLUGIN_COPY    /* a copy of files that were in use: they may hold more by now */
} ty_plugin_opened;
/* Calls back to inspect a heap that this process has open; with `readers`, also one that is open for reading only.
 * TY_E_NOT_FOUND: it has none of this identity open. TY_E_BUSY: a transaction of this thread, or a prepared one, is
 * under way. */
TY_API TY_CHECKED ty_status ty_plugin_look_at_open(const uint8_t identity[16], bool readers,
                                                   ty_status (*look)(ty_heap *heap, ty_plugin_opened how,
                                                                     void *context),
                                                   void *context);
/* Opens a heap's files for reading, as they are, or a copy of those that are in use; calls back to inspect the heap,
 * and closes them again. What is in doubt is not in the heap: it is passed to the callback (NULL: nothing is), and no
 * resolver is asked about it. options: as for ty_open, whole. */
TY_API TY_CHECKED ty_status ty_plugin_look_at_files(const char *path, const ty_open_options *options,
                                                    ty_status (*look)(ty_heap *heap, const ty_in_doubt_txn *in_doubt,
                                                                      void *context),
                                                    void *context);
/* Whether the heap's log can be opened for reading. */
TY_API TY_CHECKED ty_status ty_plugin_check_log(const char *path, const ty_open_options *options);
/* ty_open for the content alone, which resolves what is in doubt: code that the heap is pinned to is not compared. End
 * it with ty_discard. */
TY_API TY_CHECKED ty_status ty_plugin_open(const char *path, const ty_open_options *options, ty_heap **heap);

/* ---- Prepared transactions */

/* Whether a heap's transactions can be prepared. Expected: TY_E_ARGUMENT, TY_E_UNSUPPORTED, TY_E_FORKED. */
TY_API TY_CHECKED ty_status ty_plugin_check_prepare(ty_heap *heap, const char *call);
/* For calls that wait for other threads (X31: a body never waits on another heap): TY_E_ARGUMENT in a body of
 * ty_atomically. */
TY_API TY_CHECKED ty_status ty_plugin_refuse_in_body(const char *call);
/* What ty_begin refuses before it waits. */
TY_API TY_CHECKED ty_status ty_plugin_check_begin(ty_heap *heap, const ty_txn_options *options);
/* Makes sure that a transaction that begins now will find room to be prepared. no_wait: TY_E_BUSY if a snapshot has to
 * make that room. */
TY_API TY_CHECKED ty_status ty_plugin_make_prepare_room(ty_heap *heap, bool no_wait);
/* It has done nothing so far. */
TY_API bool ty_plugin_is_empty(const ty_txn *txn);
/* ty_prepare, without waiting: a transaction for which it returns TY_OK is prepared once *lsn is durable. */
TY_API TY_CHECKED ty_status ty_plugin_prepare(ty_txn *txn, const void *description, size_t bytes, uint64_t *lsn);
/* Asks the log's thread, if there is one, to write up to the LSN; ty_plugin_prepare_wait then waits for it. */
TY_API void ty_plugin_prepare_ask(ty_heap *heap, uint64_t lsn);
/* Waits until the prepared transaction with this LSN is durable. */
TY_API TY_CHECKED ty_status ty_plugin_prepare_wait(ty_heap *heap, uint64_t lsn);
/* Waits until the heap's log is durable beyond the LSN, or for that time, and returns the LSN up to which it is. */
TY_API TY_CHECKED ty_status ty_plugin_wait_beyond(ty_heap *heap, uint64_t lsn, uint64_t timeout_ns, uint64_t *durable);

/* ---- Transactions that are parts of others */

/* From now on only the next three end it, and no call of the program's: ty_commit and its kin are refused. */
TY_API void ty_plugin_take_txn(ty_txn *txn);
/* ty_commit. */
TY_API TY_CHECKED ty_status ty_plugin_commit(ty_txn *txn);
/* ty_commit_async. */
TY_API TY_CHECKED ty_status ty_plugin_commit_async(ty_txn *txn, uint64_t *lsn);
/* ty_rollback. */
TY_API ty_status ty_plugin_rollback(ty_txn *txn);
/* Runs something that ends transactions: an exception of a callback undeclared_write is kept until it is done, and
 * rethrown then. Returns what the work returns. */
TY_API ty_status ty_plugin_keep_exceptions(ty_status (*work)(void *context), void *context);

/* What a thread may have under way when it ends. */
typedef struct ty_plugin_watcher {
    bool (*has_work)(struct ty_plugin_watcher *watcher); /* for the calling thread */
    void (*end)(struct ty_plugin_watcher *watcher);      /* rolls it back */
    struct ty_plugin_watcher *watched_next;              /* the core's, as are the fields after it */
    uint64_t number;
    uint32_t enders;
} ty_plugin_watcher;
/* Watchers are asked when a thread ends; the last one added is asked first. Expected: TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_plugin_watch_threads(ty_plugin_watcher *watcher);
/* Waits for threads that are ending. The watcher need not have been added. */
TY_API void ty_plugin_unwatch_threads(ty_plugin_watcher *watcher);

/* ---- Grouped transactions: their parts wait together for one durable write */

/* X29: the reader-writer lock is held from the first one's end until all have their outcome: within it the next
 * transaction begins with ty_plugin_begin_next. */

#define TY_PLUGIN_GROUPED_MAX 64u /* transactions that share an outcome */

/* What a transaction has changed, encoded for the log. */
typedef struct ty_plugin_record {
    const void *bytes;
    size_t size_bytes;
} ty_plugin_record;

/* ty_begin within the hold of the reader-writer lock. */
TY_API TY_CHECKED ty_status ty_plugin_begin_next(ty_heap *heap, const ty_txn_options *options, ty_txn **txn);
/* The transaction's record, in its memory until it ends. */
TY_API TY_CHECKED ty_status ty_plugin_encode(ty_txn *txn, ty_plugin_record *record);
/* Whether this many bytes of records can be appended as one, and get their outcome later. */
TY_API bool ty_plugin_fits(ty_heap *heap, size_t bytes);
/* Ends it in memory; the caller appends its record. TY_E_DAMAGED: it has ended nevertheless. */
TY_API TY_CHECKED ty_status ty_plugin_end_grouped(ty_txn *txn);
/* Appends records: the last one is prepared, and those before it share its outcome. */
TY_API TY_CHECKED ty_status ty_plugin_append_grouped(ty_heap *heap, const ty_plugin_record *records, size_t count,
                                                     const void *description, size_t description_bytes, uint64_t *lsn);
/* Commits them: they are durably prepared, here and in all other participants. If the log cannot take the outcome, it
 * is broken. */
TY_API void ty_plugin_commit_grouped(ty_heap *heap);
/* For a heap whose log failed before it had the outcomes of all that was appended: takes a snapshot, which holds what
 * is committed and nothing else, and lets the log continue after it. */
TY_API TY_CHECKED ty_status ty_plugin_repair_grouped(ty_heap *heap);
/* Releases the reader-writer lock. poisoned: memory may hold what is in no log, so the heap can only be discarded. */
TY_API void ty_plugin_release_grouped(ty_heap *heap, bool poisoned);

#ifdef __cplusplus
}
#endif
#endif
