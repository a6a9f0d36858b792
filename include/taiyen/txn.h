/* Taiyen: transactions on heaps with one writer and many readers.
 *
 * Purpose: make groups of changes to a heap atomic and durable, without a snapshot each: a commit writes only what
 * changed to the log. A transactional heap is a snapshot heap with a log; open one with ty_open_options.kind =
 * TY_TRANSACTIONAL.
 *
 * Vocabulary: a *transaction* belongs to the thread that began it; a heap has at most one at a time, others wait. To
 * *declare* a range is to announce, before writing, that it will be written. A *record* is a transaction's entry in the
 * log; records have increasing numbers, the *LSN* (log sequence number). A transaction is *durable* when no crash can
 * take it back; all transactions before a durable one are durable too.
 *
 * Guarantees, by way of commit:
 *                      ty_commit                          ty_commit_async
 *   process crash      nothing that returned is lost      the newest may be lost, never an older one alone
 *   power cut          nothing that returned is lost      the same
 *   full disk          TY_E_SPACE before anything is      the same; or a later ty_durable fails
 *                      published: roll back, or try again
 *   failed log write   a snapshot is taken instead; if    the same; ty_durable reports it
 *                      that fails too: TY_E_IO, see there
 * After any crash the heap holds exactly the transactions up to some LSN, each whole.
 *
 * Stores: plain C stores to plain memory. Every byte that a transaction changes must become known to it in one of four
 * ways, which can be mixed: declared before (ty_declare); in a block allocated by the same transaction; as an explicit
 * log entry (ty_log_data); or detected by write-fault tracking, in tracked transactions. A change that is not known is
 * not in the log: a crash may undo part of it. ty_open_options.check_stores reports such stores.
 * While a snapshot collects (the pause of persist.h), no thread may store into the heap outside of transactions, except
 * into reserved blocks (ty_reserve). A transactional heap takes snapshots by itself, so such a store may coincide with
 * one at any time; if memory cannot hold the heap (ty_open_options.memory_bytes), it may then be lost at once, not only
 * in a crash.
 * On a transactional heap, ty_alloc, ty_free, ty_resize and ty_root_set take part in the calling thread's transaction
 * as their ty_txn_ forms do; outside of one they are refused with TY_E_ARGUMENT. Containers with the heap's allocator
 * (std::map, std::vector) also store into their existing nodes, without declaring them: they need tracked transactions.
 * The C++ API switches these on or reports that they are missing (taiyen.hpp).
 * A thread that ends with a transaction under way rolls it back, after its own destructors of thread-specific data; its
 * read sections end. A transaction or section that such a destructor begins must end in it: in the last of the POSIX
 * destructor rounds (PTHREAD_DESTRUCTOR_ITERATIONS) the library cannot detect one that is left open.
 *
 * Cost: a declared 8-byte range takes a few nanoseconds, and again a few in the commit; a commit is one write of the
 * record to the log, shared among threads that commit at the same time (group commit).
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
    TY_STORES_DEFAULT = 0,  /* what the heap was opened with; by default, declared */
    TY_STORES_DECLARED = 1, /* by ty_declare and the other calls */
    TY_STORES_TRACKED = 2,  /* also by write-fault tracking: memory is write-protected, and the first write to a piece
                               of it takes a before-image, at a cost of microseconds for each piece. The first such
                               transaction of a heap write-protects its memory (50 to 100 ms for each GB in use). From
                               then on system calls that write into undeclared memory fail with EFAULT, inside and
                               outside of transactions */
} ty_store_mode;

typedef struct ty_txn_options {
    size_t struct_size; /* sizeof(ty_txn_options), set by the _INIT macro */
    ty_store_mode stores;
    bool no_wait;             /* TY_E_BUSY if another transaction is under way or readers are in the heap */
    bool free_later;          /* the blocks that it frees are released after the commit, by a thread of the library */
    uint32_t lock_timeout_ms; /* with no_wait, of a shared heap: how long it waits for other processes all the same */
} ty_txn_options;
#define TY_TXN_OPTIONS_INIT                                                                                            \
    { sizeof(ty_txn_options), TY_STORES_DEFAULT, false, false, 0 }

/* Sets what TY_STORES_DEFAULT means for transactions that begin from now on; initially it is what the heap was opened
 * with (ty_open_options.track_stores). TY_STORES_TRACKED also applies to the calling thread's transaction on the heap,
 * if that uses the default and has declared nothing yet. Errors: TY_E_ARGUMENT (not a transactional heap, or read-only;
 * TY_STORES_DEFAULT itself), TY_E_BUSY (such a transaction has declared something already; later ones are tracked),
 * TY_E_MEMORY, TY_E_UNSUPPORTED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_set_stores(ty_heap *heap, ty_store_mode stores);

/* Begins a transaction; waits for the one under way and for read sections to end. options may be NULL. *txn is valid
 * until the transaction ends. Errors: TY_E_ARGUMENT (not a transactional heap, or this thread has one, or a section,
 * under way on it), TY_E_BUSY (no_wait), TY_E_PERMISSION (read-only), TY_E_FORKED; tracked, or with check_stores, also
 * TY_E_MEMORY and TY_E_UNSUPPORTED (faults cannot be handled; or the thread's sigaltstack is too small for that: the
 * detail says how large it must be). Such a transaction unblocks SIGSEGV in the thread until it ends, as stores are
 * detected by page faults; other threads that store to the heap meanwhile, or with check_stores at any time, must not
 * block it either. Thread-safe. */
TY_API TY_CHECKED ty_status ty_begin(ty_heap *heap, const ty_txn_options *options, ty_txn **txn);

/* The calling thread's transaction on the heap, or NULL. Having none is no error, nor is a heap without transactions.
 * Thread-safe. */
TY_API ty_txn *ty_current_txn(ty_heap *heap);
/* The heap of a transaction that is under way; from any thread. Returns NULL only for NULL. Thread-safe. */
TY_API ty_heap *ty_txn_heap(const ty_txn *txn);

/* How the stores of the calling thread's transaction become known: TY_STORES_TRACKED; TY_STORES_DECLARED if
 * ty_txn_options asked for that; TY_STORES_DEFAULT if they must be declared by default. */
TY_API ty_store_mode ty_txn_stores(const ty_txn *txn);

/* All other functions with a ty_txn are for the thread that began it; in another thread they fail with TY_E_ARGUMENT.
 * Any thread may end a prepared transaction (ty_prepare). */

/* Declares that the bytes at address will be written: their content is kept for a rollback, and what differs at the
 * commit is logged. Ranges may overlap, repeat, and have any size; they must lie in the heap's user blocks. Errors:
 * TY_E_ARGUMENT (outside the heap's blocks), TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_declare(ty_txn *txn, const void *address, size_t bytes);

/* As ty_alloc_zeroed, ty_free, ty_resize and ty_root_set, as part of the transaction: a rollback undoes them. A block
 * allocated in a transaction reads as zeros, and need not be declared in it. The same holds for what a block gains by a
 * resize: since the size that was requested before is not stored, the library declares all that may be new, up to
 * ty_usable_size, and the bytes past the new size read as zeros. A freed block keeps its content until the commit, and
 * a block that shrinks keeps its size until then. Addresses of roots are multiples of 8.
 * Errors: as those; TY_E_ARGUMENT also for a block that the transaction has freed already. */
TY_API void *ty_txn_alloc(ty_txn *txn, size_t size);
TY_API void *ty_txn_alloc_aligned(ty_txn *txn, size_t size, size_t alignment);
TY_API TY_CHECKED ty_status ty_txn_free(ty_txn *txn, void *block);
TY_API void *ty_txn_resize(ty_txn *txn, void *block, size_t size);
TY_API TY_CHECKED ty_status ty_txn_root_set(ty_txn *txn, const char *name, void *address);

/* ---- Reserve now, publish later. A reserved block reads as zeros and can be filled by any thread, outside of
 * transactions. It becomes part of the heap when a transaction publishes it and commits; until then a crash frees it. A
 * rollback makes it reserved again. */

/* Errors (NULL): as ty_alloc; TY_E_ARGUMENT (not a transactional heap), TY_E_PERMISSION (read-only), TY_E_FORKED.
 * Thread-safe. */
TY_API void *ty_reserve(ty_heap *heap, size_t size);
/* Errors: TY_E_ARGUMENT (not a reserved block), TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_cancel(void *block);
/* Publishes count reserved blocks in one step: all or, with an error, none.
 * Errors: TY_E_ARGUMENT (one is not a reserved block), TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_publish(ty_txn *txn, void *const *blocks, size_t count);

/* ---- Explicit log entries. */

/* A procedure changes the heap as its arguments say, by plain stores, and returns TY_OK (a logical log entry names it).
 * The same arguments on the same heap content have the same effect. It must not allocate, free, or begin a transaction;
 * but one that undo calls (undo.h) may record, allocate, free and resize as described there, and returns the status
 * that was agreed on. A procedure that throws has failed with TY_E_UNSUPPORTED. */
typedef ty_status ty_procedure(ty_heap *heap, const void *arguments, size_t bytes, void *context);

/* Registers a procedure for the process under an id that never changes (logs and undo buffers contain it). Do so before
 * opening a heap whose log may name it, and before an undo of an entry that names it. NULL unregisters. Errors:
 * TY_E_ARGUMENT (id 0), TY_E_EXISTS, TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_register_procedure(uint64_t id, const char *name, ty_procedure *procedure,
                                                  void *context);

/* Logs the bytes at address whole, as they are at the commit; keeps nothing for a rollback.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_log_data(ty_txn *txn, const void *address, size_t bytes);
/* Logs a call of a registered procedure; recovery calls it at this place among the transaction's changes. Call this
 * first, then do what the procedure does: in recovery it sees the heap as it is at this call. Errors: TY_E_ARGUMENT
 * (not registered; more than 64 KiB), TY_E_UNSUPPORTED (tracked transactions). */
TY_API TY_CHECKED ty_status ty_log_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes);
/* Adds a step to the rollback: restore bytes, or call a procedure. The steps run in reverse order together with the
 * declared ranges, before blocks and roots are restored. */
TY_API TY_CHECKED ty_status ty_on_rollback_data(ty_txn *txn, void *address, const void *old_bytes, size_t bytes);
TY_API TY_CHECKED ty_status ty_on_rollback_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes);

/* ---- Ending. */

/* Commits; returns when the transaction is durable. It is atomic for read sections, which may see it a moment before it
 * is durable. Errors: TY_E_SPACE, TY_E_IO, TY_E_MEMORY: either nothing was published, and the transaction is still
 * under way (ty_current_txn returns it): try again, or roll back. Or, after a failed log write and a failed snapshot,
 * the transaction is over and visible to others, but not durable: every later commit and ty_durable tries again to make
 * it so. A transaction that failed and was rolled back may be recovered by ty_rebuild, or by an open after a crash or
 * ty_discard, until a later one is durable. TY_E_FORKED (in a child of the process that began it): it is still under
 * way, and can be rolled back there. */
TY_API TY_CHECKED ty_status ty_commit(ty_txn *txn);

/* ---- Two-phase commit: for transactions over several heaps, databases or queues, which commit all or none.
 *
 * A prepared transaction is durable in the log, but takes effect only when it is committed. It can still be rolled
 * back, also by the next open of the heap, which asks the coordinator for the outcome, by the description
 * (ty_open_options.outcome). Until it ends, no other thread reads or writes: the transaction keeps the heap's
 * reader-writer lock. */

/* Largest description of a prepared transaction, in bytes. */
#define TY_PREPARED_BYTES_MAX 1024

/* Prepares the transaction: on TY_OK its record is durable. From then on ty_commit, ty_commit_async and ty_rollback are
 * the only calls for it, by any thread; stores to the heap are not part of it any more. It belongs to no thread: a
 * thread that ends leaves it prepared. Until it ends, ty_close is refused (TY_E_BUSY); ty_discard leaves it in doubt.
 * A commit always finds room in the log. If neither the log nor a snapshot can be written, the commit fails with
 * TY_E_IN_DOUBT and must be tried again; after any other status the transaction is over, and ty_durable reports whether
 * it is durable. The handle stands for the heap's one transaction: ending it a second time may end another transaction.
 * ty_commit returns when the outcome is durable; ty_commit_async and ty_rollback do not wait for that: without an
 * outcome in the log, the next open asks.
 * description: bytes for the coordinator that is asked for the outcome later; may be NULL if bytes is 0.
 * Errors, with the transaction as it was: TY_E_SPACE (the record is larger than half a frame of the log, 2 MiB, or the
 * log is too full: roll back, take a snapshot, repeat), TY_E_ARGUMENT (the description is too long; not this thread's
 * transaction), TY_E_UNSUPPORTED (a log with several log streams), TY_E_MEMORY, TY_E_FORKED. If a log write failed
 * (TY_E_IO, TY_E_SPACE) and ty_current_txn no longer returns the transaction, it is prepared, perhaps not durably. A
 * rollback is right after any error. */
TY_API TY_CHECKED ty_status ty_prepare(ty_txn *txn, const void *description, size_t bytes);

/* Commits without waiting; *lsn (may be NULL) is what ty_durable takes. It becomes durable when a thread waits for it
 * or a later one, else after 4 to 8 ms and a log write; without the library's threads, when the log's buffer is full.
 * Errors: as ty_commit, of the first kind. */
TY_API TY_CHECKED ty_status ty_commit_async(ty_txn *txn, uint64_t *lsn);

/* Undoes the whole transaction and ends it. Errors: TY_E_DAMAGED (a rollback procedure failed; the rest is done). NULL
 * does nothing. */
TY_API ty_status ty_rollback(ty_txn *txn);

/* Sets *durable to whether the transaction with this LSN, and all before it, are durable. wait: makes them durable and
 * waits for that; errors are then those of ty_commit, and durable may be NULL. LSN 0: all that are committed. Errors:
 * TY_E_ARGUMENT (no such LSN yet; not a transactional heap, or read-only), TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_durable(ty_heap *heap, uint64_t lsn, bool wait, bool *durable);

/* Rebuilds the heap's memory from its files and log: it then holds what was committed and nothing else, whatever the
 * program has stored over it. *heap is replaced. options: as for ty_open. report may be NULL.
 * After a failure, *heap shows which of two it was. Unchanged: nothing was done, and the heap is open as before (a
 * refusal: TY_E_ARGUMENT, TY_E_FORKED; TY_E_NOT_FOUND, TY_E_MISMATCH: its image is no longer under its path; TY_E_IO,
 * TY_E_SPACE: what was committed cannot be made durable, and would be lost). NULL: the heap is closed, as after
 * ty_discard, and could not be opened again; the error is that of ty_open, which may be tried again. Externally
 * serialised; transactions under way are lost. */
TY_API TY_CHECKED ty_status ty_rebuild(ty_heap **heap, const ty_open_options *options, ty_report *report);

/* ---- Readers. */

/* A read section: between the two calls no transaction is under way, so each committed transaction is seen whole.
 * Sections of many threads run side by side; a ty_begin waits for them, and they for the transaction under way. Not
 * within this thread's own transaction (TY_E_ARGUMENT). Sections of one thread nest; a thread may have sections open on
 * at most 16 heaps (else TY_E_MEMORY). Begin a section before ty_each_block, not in its callback: it would wait for a
 * transaction that waits for the walk. Further errors: TY_E_ARGUMENT (not a transactional heap, or read-only),
 * TY_E_FORKED. ty_read_end returns TY_OK, but for a heap that follows a writer (follow.h). Thread-safe; ty_read_end is
 * for the thread that began the section, and does nothing in others. */
TY_API TY_CHECKED ty_status ty_read_begin(ty_heap *heap);
TY_API ty_status ty_read_end(ty_heap *heap);

/* The same for one object, named by any address that all threads agree on: readers of other objects continue while a
 * transaction changes this one. A transaction locks objects before it changes them and holds the locks until it ends;
 * readers that use object locks only begin no heap-wide section. Objects are hashed to locks and may share one, so a
 * thread may hold one object's section at a time, and must not begin one within its own transaction, nor a transaction
 * within one (TY_E_ARGUMENT). Errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_FORKED. Thread-safe, but for ty_txn_lock_object,
 * which is for the transaction's thread. */
TY_API TY_CHECKED ty_status ty_object_read_begin(ty_heap *heap, const void *object);
TY_API ty_status ty_object_read_end(ty_heap *heap, const void *object);
TY_API TY_CHECKED ty_status ty_txn_lock_object(ty_txn *txn, const void *object);

/* ---- Checks and statistics. */

/* An undeclared write: a store that no transaction knew of. The callback is called at the end of the transaction, which
 * it must not change; an exception that it throws leaves ty_commit, ty_commit_async or ty_rollback once the transaction
 * is over, as it would be otherwise. For a store outside any transaction it is called in the fault handler: then it may
 * only use async-signal-safe functions, and is called once for each page until the next transaction. Stores are watched
 * from the heap's first transaction on. */
typedef struct ty_undeclared_write {
    void *address;
    size_t bytes;   /* 0: not known (outside of transactions) */
    ty_block block; /* empty: not known, as bytes */
    bool in_transaction;
    void *instruction; /* the store's instruction, if known */
} ty_undeclared_write;

typedef struct ty_txn_stats {
    size_t struct_size;           /* sizeof(ty_txn_stats), set by the caller */
    uint64_t transactions;        /* committed since the heap was opened; only those that changed something */
    uint64_t rollbacks;           /* of transactions begun by ty_begin; ty_get_atomic_stats has the others */
    uint64_t entries;             /* ranges, operations and procedures of these transactions that reached a record */
    uint64_t record_bytes;        /* of all records */
    uint64_t log_bytes;           /* written to the sink, padding included */
    uint64_t log_frames;          /* writes of the sink */
    uint64_t used_log_bytes;      /* of the ring, now */
    uint64_t size_log_bytes;      /* of the ring */
    uint64_t forced_snapshots;    /* because the log was full, an entry was too large, or a log write failed */
    uint64_t automatic_snapshots; /* by the threshold of dirty pages or of used log, by time, or for lack of memory */
    uint64_t snapshot_pages;      /* written by all of these */
    uint64_t lsn;                 /* of the last committed transaction */
    uint64_t durable_lsn;
    uint64_t replayed_transactions; /* by the open */
    uint64_t replayed_bytes;
    uint64_t replay_ns;
    uint64_t reserved_blocks; /* now; includes those that rollbacks kept for variables (scope.h) */
    uint64_t process;         /* this process's number among those that share the heap, 1 and up, as long as it has it
                                 open; later another one's. 0: none share it */
} ty_txn_stats;
/* Writes *stats; a transaction under way is counted in part. Does not wait for transactions.
 * Errors: TY_E_ARGUMENT (not a transactional heap, or read-only), TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_get_txn_stats(ty_heap *heap, ty_txn_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
