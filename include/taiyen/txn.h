/* Taiyen: transactions on heaps with one writer and many readers.
 *
 * Purpose: make groups of changes to a heap atomic and durable, without a snapshot each: a commit writes only what
 * changed to the log. A transactional heap is a snapshot heap with a log; open one with ty_open_options.kind =
 * TY_TRANSACTIONAL.
 *
 * Vocabulary: a *transaction* belongs to the thread that began it; a heap has at most one at a time, others wait. To
 * *declare* a range is to say, before writing, that it will be written. A *record* is what the log holds of one
 * transaction; records have rising numbers, the *LSN* (log sequence number). A transaction is *durable* when no crash
 * can take it back; all transactions before a durable one are durable too.
 *
 * Promises, by way of commit:
 *                      ty_commit                          ty_commit_async
 *   process crash      nothing that returned is lost      the newest ones may be lost, never an older one alone
 *   power cut          nothing that returned is lost      the same
 *   full disk          TY_E_SPACE before anything is      the same; or a later ty_durable tells
 *                      published: roll back, or try again
 *   failed log write   a snapshot is taken instead; if    the same; ty_durable tells
 *                      that fails too: TY_E_IO, see there
 * After any crash the heap holds exactly the transactions up to some LSN, each whole.
 *
 * Stores: plain C stores to plain memory. Every byte that a transaction changes must become known to it in one of four
 * ways, which mix: declared before (ty_declare); in a block allocated by the same transaction; reported as an explicit
 * entry (ty_log_data); or found by itself, in tracked transactions. What is not known is not in the log: a crash
 * takes it back in part. ty_open_options.check_stores reports such stores.
 * While a snapshot collects (the pause of persist.h), nobody may store into the heap outside of transactions, reserved
 * blocks aside (ty_reserve). A transactional heap takes snapshots by itself, so such a store may meet one at any time;
 * where memory cannot hold the heap (ty_open_options.memory_bytes), it may then be lost at once, not only by a crash.
 * On a transactional heap, ty_alloc, ty_free, ty_resize and ty_root_set take part in the calling thread's transaction
 * as their ty_txn_ forms do, and outside of one they are refused with TY_E_ARGUMENT. Containers with the heap's
 * allocator (std::map, std::vector) store into their older nodes, too, which nobody declares: they need tracked
 * transactions. The C++ face sees to it, or says so (taiyen.hpp).
 * A thread that ends with a transaction under way rolls it back, after its own destructors of thread-specific data;
 * its read sections end. What such a destructor begins must end in it: of the rounds that POSIX has for destructors
 * (PTHREAD_DESTRUCTOR_ITERATIONS), the last one is noticed by nobody.
 *
 * Cost: a declared 8-byte range takes a few nanoseconds, and so does its part of a commit; a commit is one write of the
 * record to the log, shared among threads that commit at the same time.
 */
#ifndef TAIYEN_TXN_H
#define TAIYEN_TXN_H

#include "base.h"
#include "heap.h"
#include "persist.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A transaction under way. Owned by the library; valid until it is committed or rolled back. */
typedef struct ty_txn ty_txn;

/* How stores become known. */
typedef enum ty_store_mode {
    TY_STORES_DEFAULT = 0,  /* what the heap was opened with; declared, unless said otherwise */
    TY_STORES_DECLARED = 1, /* by ty_declare and the other calls */
    TY_STORES_TRACKED = 2,  /* also by themselves: memory is write-protected, the first write to a piece of it takes a
                                 copy; costs microseconds a touched piece. The first such transaction of a heap arms its
                                 memory (50 to 100 ms for each GB in use). From then on system calls that write into
                                 memory that was not declared fail with EFAULT, within transactions or not */
} ty_store_mode;

typedef struct ty_txn_options {
    size_t struct_size; /* sizeof(ty_txn_options), set by the _INIT macro */
    ty_store_mode stores;
    bool no_wait;    /* TY_E_BUSY if another transaction is under way or readers are in the heap */
    bool free_later; /* blocks that it frees are given back after the commit by a thread of the library */
} ty_txn_options;
#define TY_TXN_OPTIONS_INIT                                                                                            \
    { sizeof(ty_txn_options), TY_STORES_DEFAULT, false, false }

/* What TY_STORES_DEFAULT means for transactions that begin from now on; at first it is what the heap was opened with
 * (ty_open_options.track_stores). TY_STORES_TRACKED holds for the calling thread's transaction on the heap, too, if it
 * is to be declared by default and has declared nothing yet. Errors: TY_E_ARGUMENT (not a transactional heap, or
 * read-only; TY_STORES_DEFAULT itself), TY_E_BUSY (such a transaction has declared something already; the later ones
 * are tracked), TY_E_MEMORY, TY_E_UNSUPPORTED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_set_stores(ty_heap *heap, ty_store_mode stores);

/* Begins a transaction; waits for the one under way and for read sections to end. options may be NULL.
 * Errors: TY_E_ARGUMENT (not a transactional heap, or this thread has one, or a section, under way on it), TY_E_BUSY
 * (no_wait), TY_E_PERMISSION (read-only), TY_E_FORKED; tracked, or with check_stores, also TY_E_MEMORY and
 * TY_E_UNSUPPORTED (faults cannot be handled; the thread's sigaltstack is too small for that: the text says how large
 * it must be). Such a transaction takes SIGSEGV out of the thread's signal mask until it ends, as stores are found by
 * page faults; stores of other threads to the heap meanwhile, or with check_stores at any time, need the same of them.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_begin(ty_heap *heap, const ty_txn_options *options, ty_txn **txn);

/* The calling thread's transaction on the heap; NULL if it has none, which is no error (nor is a heap without
 * transactions). Thread-safe. */
TY_API ty_txn *ty_current_txn(ty_heap *heap);
/* The heap of a transaction that is under way; any thread may ask. NULL for NULL only. Thread-safe. */
TY_API ty_heap *ty_txn_heap(const ty_txn *txn);

/* How the stores of the calling thread's transaction become known: TY_STORES_TRACKED; TY_STORES_DECLARED where
 * ty_txn_options asked for that; TY_STORES_DEFAULT where they are to be declared since nobody said otherwise. */
TY_API ty_store_mode ty_txn_stores(const ty_txn *txn);

/* All other functions with a ty_txn are for the thread that began it; in another one they fail with TY_E_ARGUMENT. But
 * a prepared transaction (ty_prepare) may be ended by any thread. */

/* Says that bytes at address will be written: their content is kept for a rollback, and what differs at the commit is
 * logged. Ranges may overlap, repeat, and be of any size; they must lie in the heap's user blocks.
 * Errors: TY_E_ARGUMENT (outside the heap's blocks), TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_declare(ty_txn *txn, const void *address, size_t bytes);

/* As ty_alloc_zeroed, ty_free and ty_resize, as part of the transaction: a rollback takes them back. A block allocated
 * in a transaction reads as zeros, and need not be declared in it. The same goes for what a block gets by a resize:
 * nobody keeps the size that was asked for before, so the library declares all that this may be, up to ty_usable_size,
 * and what lies behind the new size reads as zeros. A freed block keeps its content until the commit, and a block that
 * shrinks its size. Addresses of roots are multiples of 8.
 * Errors: as those; TY_E_ARGUMENT also for a block that the transaction has freed already. */
TY_API void *ty_txn_alloc(ty_txn *txn, size_t size);
TY_API void *ty_txn_alloc_aligned(ty_txn *txn, size_t size, size_t alignment);
TY_API TY_CHECKED ty_status ty_txn_free(ty_txn *txn, void *block);
TY_API void *ty_txn_resize(ty_txn *txn, void *block, size_t size);
TY_API TY_CHECKED ty_status ty_txn_root_set(ty_txn *txn, const char *name, void *address);

/* ---- Reserve now, publish later. A reserved block reads as zeros and can be filled by any thread, outside of
 * transactions. It becomes part of the heap when a transaction publishes it and commits; until then a crash takes it
 * back. A rollback makes it reserved again. */

/* Errors (NULL): as ty_alloc; TY_E_ARGUMENT (not a transactional heap), TY_E_PERMISSION (read-only), TY_E_FORKED.
 * Thread-safe. */
TY_API void *ty_reserve(ty_heap *heap, size_t size);
/* Errors: TY_E_ARGUMENT (not a reserved block), TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_cancel(void *block);
/* Publishes count reserved blocks in one step: all or, with an error, none.
 * Errors: TY_E_ARGUMENT (one is not a reserved block), TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_publish(ty_txn *txn, void *const *blocks, size_t count);

/* ---- Explicit log entries. */

/* A procedure does to the heap what its arguments say, by plain stores, and returns TY_OK. The same arguments on the
 * same heap content have the same effect. It must not allocate, free, or begin a transaction; but one that undo calls
 * (undo.h) may record, allocate, free and resize as said there, and return what was agreed on. One that throws has
 * failed with TY_E_UNSUPPORTED. */
typedef ty_status ty_procedure(ty_heap *heap, const void *arguments, size_t bytes, void *context);

/* Registers a procedure for the process under an id that is fixed for ever (it stands in logs and undo buffers),
 * before a heap whose log may name it is opened, or what names it is undone. NULL unregisters. Errors: TY_E_ARGUMENT
 * (id 0), TY_E_EXISTS, TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_register_procedure(uint64_t id, const char *name, ty_procedure *procedure,
                                                  void *context);

/* The bytes at address, as they stand at the commit, are logged whole; nothing is kept for a rollback.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_log_data(ty_txn *txn, const void *address, size_t bytes);
/* Logs a registered procedure; recovery does it, at this place among the transaction's changes. Call it first, then do
 * what the procedure does: recovery shows it the heap as it is at this call.
 * Errors: TY_E_ARGUMENT (not registered; more than 64 KiB), TY_E_UNSUPPORTED (tracked transactions). */
TY_API TY_CHECKED ty_status ty_log_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes);
/* What a rollback does: puts bytes back, or runs a procedure; in reverse order with what was declared, and before
 * blocks and roots are as they were. */
TY_API TY_CHECKED ty_status ty_on_rollback_data(ty_txn *txn, void *address, const void *old_bytes, size_t bytes);
TY_API TY_CHECKED ty_status ty_on_rollback_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes);

/* ---- Ending. */

/* Commits; returns when the transaction is durable. It is atomic for read sections, who may see it a moment before it
 * is durable. Errors: TY_E_SPACE, TY_E_IO, TY_E_MEMORY: either nothing was published, and the transaction is still
 * under way (ty_current_txn returns it): try again, or roll back; or, after a failed log write and a failed snapshot,
 * it is over, others may see it, and it is not durable: every later commit and ty_durable tries again to make it so.
 * One that failed and was rolled back may be found by ty_rebuild, or an open after a crash or ty_discard, until a later
 * one is durable. TY_E_FORKED (in a child of the process that began it): it is still under way, and can be rolled back
 * there. */
TY_API TY_CHECKED ty_status ty_commit(ty_txn *txn);

/* ---- Two-phase commit: for transactions of several heaps, databases or queues, of which all count or none.
 *
 * A prepared transaction is in the log, durable, but counts only once it is committed. It can still be rolled back,
 * also by the next open of the heap: what becomes of it, who coordinates the transaction tells then, by the description
 * (ty_open_options.outcome). Until its end nobody else reads or writes: the heap stays the transaction's. */

/* The description of a prepared transaction has at most so many bytes. */
#define TY_PREPARED_BYTES_MAX 1024

/* Prepares the transaction: on TY_OK its record is durable. From then on ty_commit, ty_commit_async and ty_rollback are
 * the only calls for it, by any thread; stores to the heap are not part of it any more. It belongs to no thread: one
 * that ends leaves it prepared. ty_close is refused meanwhile (TY_E_BUSY); ty_discard leaves it in doubt.
 * A commit finds room in any case. Where neither the log nor a snapshot can be written it fails with TY_E_IN_DOUBT, and
 * is to be tried again; after any other status it is over, and ty_durable tells whether it is durable. The handle is
 * the heap's one transaction: who ends it a second time may end another one. ty_commit returns when the outcome is
 * durable, ty_commit_async without waiting, and ty_rollback, too, does not wait for that: without an outcome in the log
 * the next open asks. description: of size bytes, for who tells the outcome later; may be NULL if bytes is 0. Errors:
 * TY_E_SPACE (more than half a frame of the log, 2 MiB, or the log is too full: roll back, take a snapshot, repeat),
 * TY_E_ARGUMENT (too long a description; not this thread's transaction), TY_E_UNSUPPORTED (a log of several
 * log streams), TY_E_MEMORY, TY_E_FORKED: it is as it was. Where a write of the log failed (TY_E_IO, TY_E_SPACE) and
 * ty_current_txn does not tell it any more, it is prepared, and that may not be durable. To roll it back is right after
 * any error. */
TY_API TY_CHECKED ty_status ty_prepare(ty_txn *txn, const void *description, size_t bytes);

/* Commits without waiting; *lsn (may be NULL) is what ty_durable takes. It becomes durable when somebody waits for
 * it or a later one, and else after 4 to 8 ms and a write of the log; without the library's threads, when the log's
 * buffer is full. Errors: as ty_commit, of the first kind. */
TY_API TY_CHECKED ty_status ty_commit_async(ty_txn *txn, uint64_t *lsn);

/* Takes all of the transaction back. Errors: TY_E_DAMAGED (a rollback procedure failed; the rest is done). NULL does
 * nothing. */
TY_API ty_status ty_rollback(ty_txn *txn);

/* Whether the transaction with that LSN, and all before it, are durable: *durable. wait: makes it so; then errors as
 * ty_commit, and durable may be NULL. LSN 0: all that are committed. Errors: TY_E_ARGUMENT (no such LSN yet;
 * not a transactional heap, or read-only), TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_durable(ty_heap *heap, uint64_t lsn, bool wait, bool *durable);

/* Makes the heap's memory anew from its files and log: what was committed is there, what was not is gone, whatever a
 * program has stored over it. *heap is replaced. options: as for ty_open. report may be NULL.
 * A failure is one of two, and *heap tells which. Unchanged: nothing was done, and the heap is open as before (a
 * refusal: TY_E_ARGUMENT, TY_E_FORKED; TY_E_NOT_FOUND, TY_E_MISMATCH: its image is no longer under its path; TY_E_IO,
 * TY_E_SPACE: what was committed cannot be made durable, and would be lost). NULL: the heap is gone, as after
 * ty_discard, and could not be opened; the error is that of ty_open, which may be tried again. Externally serialised;
 * transactions under way are lost. */
TY_API TY_CHECKED ty_status ty_rebuild(ty_heap **heap, const ty_open_options *options, ty_report *report);

/* ---- Readers. */

/* A read section: between the two calls no transaction is under way, so what was committed is seen whole. Sections of
 * many threads run side by side; a ty_begin waits for them, and they for the transaction under way. Not within this
 * thread's own transaction (TY_E_ARGUMENT). Sections of one thread nest; it may have some open on 16 heaps
 * (TY_E_MEMORY). Begin one before ty_each_block, not in its callback: it would wait for a transaction that waits for
 * the walk. Errors besides: TY_E_ARGUMENT (not a transactional heap, or read-only), TY_E_FORKED. Thread-safe; an end is
 * for the thread that began the section, and else does nothing. */
TY_API TY_CHECKED ty_status ty_read_begin(ty_heap *heap);
TY_API void ty_read_end(ty_heap *heap);

/* The same for one object, named by any address that all agree on: readers of other objects go on while a transaction
 * changes this one. A transaction locks objects before it changes them and holds them until it ends; who only uses
 * objects' locks begins no heap-wide section. Objects share locks by chance (by a hash), so a thread may hold one
 * object's section at a time, and begins none within its own transaction, nor a transaction within one (TY_E_ARGUMENT).
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_FORKED. Thread-safe, but for ty_txn_lock_object, which is for the
 * transaction's thread. */
TY_API TY_CHECKED ty_status ty_object_read_begin(ty_heap *heap, const void *object);
TY_API void ty_object_read_end(ty_heap *heap, const void *object);
TY_API TY_CHECKED ty_status ty_txn_lock_object(ty_txn *txn, const void *object);

/* ---- Checks and figures. */

/* A store that no transaction knew of. Called at the end of the transaction, in which the callback can only look; what
 * it throws comes out of ty_commit, ty_commit_async or ty_rollback when the transaction is over, as it would be
 * otherwise; or, for a store outside any transaction, in the handler of the fault: then only async-signal-safe
 * functions, and once a page until the next transaction. Stores are watched from the heap's first transaction on. */
typedef struct ty_undeclared_write {
    void *address;
    size_t bytes;   /* 0: not known (outside of transactions) */
    ty_block block; /* empty: not known, as bytes */
    bool in_transaction;
    void *instruction; /* where it is known */
} ty_undeclared_write;

typedef struct ty_txn_stats {
    size_t struct_size;        /* sizeof(ty_txn_stats), set by the caller */
    uint64_t transactions;     /* committed since the heap was opened, those that changed something */
    uint64_t rollbacks;        /* of ty_begin's; ty_get_atomic_stats has more of the others */
    uint64_t entries;          /* ranges, operations and procedures of ty_begin's that reached a record */
    uint64_t record_bytes;     /* of all records */
    uint64_t log_bytes;        /* written to the sink, padding included */
    uint64_t log_frames;       /* writes of the sink */
    uint64_t used_log_bytes;   /* of the ring, now */
    uint64_t size_log_bytes;   /* of the ring */
    uint64_t forced_snapshots; /* because the log was full, an entry too large, or a log write failed */
    uint64_t timed_snapshots;  /* by the threshold of dirty pages, of used log, by time, or for want of memory */
    uint64_t snapshot_pages;   /* written by all of these */
    uint64_t lsn;              /* of the last committed transaction */
    uint64_t durable_lsn;
    uint64_t replayed_transactions; /* by the open */
    uint64_t replayed_bytes;
    uint64_t replay_ns;
    uint64_t reserved_blocks; /* now; with those that rollbacks kept for variables (scope.h) */
} ty_txn_stats;
/* Writes *stats; what a transaction that is under way has done counts in part. Waits for no transaction.
 * Errors: TY_E_ARGUMENT (not a transactional heap, or read-only), TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_get_txn_stats(ty_heap *heap, ty_txn_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
