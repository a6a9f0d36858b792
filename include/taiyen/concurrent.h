/* Taiyen: many writers at once on one heap.
 *
 * Purpose: let any number of threads change a heap at the same time, each in transactions of its own that seem to run
 * one after the other. A volatile heap is concurrent if it was created with ty_heap_options.concurrent, a transactional
 * one if it was opened with ty_open_options.concurrent; then what commits is in its log, too.
 *
 * Vocabulary: a *body* is a function of the program that is run as a transaction. It loads and stores through the
 * transaction. Where another thread has committed something that the body's loads depend on, that is a *conflict*: what
 * the body did is taken back, and it is run again. The *LSN* of a commit is its place in the order of all commits.
 *
 * Promises: all that a body loads is of one state of the heap, also when it is going to fail. A transaction that meets
 * many conflicts gets its turn: after 8 it runs while no other may commit. One that only loads never waits for writers
 * for ever either. What commits is atomic for all others, and on a transactional heap for crashes: after one the heap
 * holds exactly the commits up to some LSN (but see TY_COMMIT_STREAM), each whole.
 *
 * What a body may do: load, store, allocate and free through its transaction; use memory of its own. It may be run many
 * times, so whatever else it does should do no harm when it is done again; ty_atomic_on_commit and
 * ty_atomic_on_rollback are for the rest. It must not wait for another thread, nor call ty_begin, ty_read_begin,
 * ty_snapshot, ty_close and the like on the same heap, or on another concurrent one (TY_E_ARGUMENT). A block that it
 * has allocated may be loaded and stored plainly until the commit: there ty_atomic_store stores at once, and the last
 * store counts, of whichever kind. All other memory of the heap's blocks is loaded and stored through transactions
 * alone while more than one thread uses it: plain stores are not seen, and not in the log; plain loads may see any
 * mixture.
 *
 * Publication and privatisation: what a thread has stored plainly to a block of its own, others see who load the
 * pointer to it that the commit has stored. The other way a commit is not enough. Once it has taken a block out of the
 * others' reach, transactions that began before may still read it, and those that committed before may still store to
 * it. The thread has the block to itself once ty_atomic_quiesce has returned after that commit, or between ty_begin and
 * its end, where no transaction runs at all. On a transactional heap what it stores plainly after ty_atomic_quiesce is
 * in no log: store in a transaction, or within ty_begin. ty_atomic_free needs none of this.
 *
 * Bodies that run a transaction on another concurrent heap, in whatever order: that one is open. It commits by itself
 * and at once, others see it, and it stays if the outer one is rolled back, or run again: then it may run again, too.
 * It waits for nobody: where another thread has its heap to itself (8 conflicts, ty_begin, a read section, a log that
 * has no room) it is taken back and gives TY_E_BUSY, and the outer ones are lost as by a conflict. The outermost one
 * waits in its place with nothing held, and runs again, after some time with all these heaps to itself: no order of
 * heaps need be kept, and everybody gets a turn. So do ty_begin and read sections, within a body, on heaps that are not
 * concurrent. An inner one may not be irrevocable, nor within one that is, and it cannot wait for a change
 * (TY_E_ARGUMENT). A thread that has a transaction of ty_begin or a read section open, or is in an irrevocable body,
 * does wait for other heaps, as with a lock: of those alone keep an order.
 *
 * In C a conflict cannot leave the body by itself. A load that meets one gives TY_E_BUSY and zeros, and so does every
 * load and store after it; whatever the body returns then, nothing of it counts, and it is run again. So hand each
 * status on: `if ((status = ty_atomic_load(txn, &account->balance, &balance, sizeof balance))) return status;`
 *
 * A C++ exception that leaves a body rolls back, and leaves ty_atomically; one that leaves a part rolls back the part.
 *
 * ty_begin on such a heap lets all transactions end and holds new ones up: plain stores, procedures and tracked
 * transactions work as on any heap. So do ty_read_begin's sections.
 *
 * Cost: a load is three loads of memory; a commit is some atomic operations for each word stored. Words of 32 bytes
 * that lie together share a lock, so what different threads change should lie further apart.
 */
#ifndef TAIYEN_CONCURRENT_H
#define TAIYEN_CONCURRENT_H

#include "base.h"
#include "heap.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A thread's transaction on a concurrent heap; valid within the body that it is given to. */
typedef struct ty_atomic_txn ty_atomic_txn;

/* When ty_atomically returns. Of volatile heaps: at the commit. */
typedef enum ty_commit_mode {
    TY_COMMIT_SYNC = 0,  /* once no crash can take the commit back, nor any before it */
    TY_COMMIT_ASYNC = 1, /* at once; ty_durable tells of the LSN, and makes it durable */
    TY_COMMIT_STREAM = 2 /* once it is in its own log stream. After a crash it is there even if others
                               before it are not: the program vouches that it does not depend on commits that were not
                               durable. One that allocates, frees or sets roots is as with TY_COMMIT_SYNC */
} ty_commit_mode;

typedef struct ty_atomic_options {
    size_t struct_size; /* sizeof(ty_atomic_options), set by the _INIT macro */
    ty_commit_mode commit;
    bool reads_only;  /* it stores nothing: it notes less, and after two conflicts reads old values, which are kept for
                         it (32 MB at most; where they are not enough, it runs while no other may commit) */
    bool irrevocable; /* no other may commit from its begin on, so it meets no conflict and is run once, unless it asks
                         to wait: for what cannot be taken back. Only as the outermost one of its thread */
} ty_atomic_options;
#define TY_ATOMIC_OPTIONS_INIT                                                                                         \
    { sizeof(ty_atomic_options), TY_COMMIT_SYNC, false, false }

typedef struct ty_atomic_result {
    size_t struct_size; /* sizeof(ty_atomic_result), set by the caller */
    bool committed;
    uint64_t lsn;  /* of the commit, for ty_durable; of one that stored nothing, of the state that it has seen */
    uint32_t runs; /* of the body */
} ty_atomic_result;

/* TY_OK commits. Any other status rolls back, and ty_atomically returns it; so does a body's own TY_E_BUSY, where there
 * was no conflict. */
typedef ty_status ty_atomic_body(ty_atomic_txn *txn, void *context);

/* Runs the body until it commits or rolls back. options and result may be NULL. Within a body on the same heap it is a
 * part of that one's transaction: rolled back by itself if it returns another status than TY_OK, committed with the
 * whole; of its options reads_only and commit are the whole's, and irrevocable must be (TY_E_ARGUMENT).
 * Errors besides the body's: TY_E_ARGUMENT (not a concurrent heap; this thread has a transaction of ty_begin or a read
 * section under way on it; a body that waits and has loaded nothing, or is in one on another heap), TY_E_BUSY (within a
 * body on another heap alone: that one is lost, return from it; result->committed true: it was not durable yet and its
 * log has failed), TY_E_MEMORY, TY_E_FORKED, TY_E_PERMISSION (open for reading only); TY_E_SPACE and TY_E_IO as for
 * ty_commit: with result->committed false nothing has changed, with true others may see it, and it is not durable yet.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_atomically(ty_heap *heap, const ty_atomic_options *options, ty_atomic_body *body,
                                          void *context, ty_atomic_result *result);

/* Any bytes of the heap's blocks; of 8 aligned bytes it is cheapest, and of 4 nearly so. Errors: TY_E_BUSY (a conflict:
 * return from the body), TY_E_ARGUMENT (outside of the heap's blocks; a store of one that only reads), TY_E_MEMORY.
 * After an error all later calls of the run give the same one, and it does not commit; but TY_E_ARGUMENT of an address
 * is of that call. A load that fails gives zeros. For the thread that runs the body, as is all that follows. */
TY_API TY_CHECKED ty_status ty_atomic_load(ty_atomic_txn *txn, const void *address, void *value, size_t bytes);
TY_API TY_CHECKED ty_status ty_atomic_store(ty_atomic_txn *txn, void *address, const void *value, size_t bytes);

/* Says that words at these addresses will be wanted: their memory is asked for all at once, which is what a transaction
 * on a large heap mostly waits for. A hint; any addresses may be given. */
TY_API void ty_atomic_expect(ty_atomic_txn *txn, const void *const *addresses, size_t count);

/* As ty_alloc_zeroed, ty_alloc_aligned and ty_free, as part of the transaction. A block that is freed is given back
 * once no transaction can read it any more and its thread has ended some more; or sooner, to whichever thread, where
 * memory is short. Errors: as those; TY_E_BUSY (the detail says a conflict). */
TY_API void *ty_atomic_alloc(ty_atomic_txn *txn, size_t size);
TY_API void *ty_atomic_alloc_aligned(ty_atomic_txn *txn, size_t size, size_t alignment);
TY_API TY_CHECKED ty_status ty_atomic_free(ty_atomic_txn *txn, void *block);
/* A block of the new size with the old one's content; the old one is freed, unless it has room. NULL: a failure, and
 * the block is as it was. block NULL: an allocation. */
TY_API void *ty_atomic_resize(ty_atomic_txn *txn, void *block, size_t size);

/* Roots: *address is NULL if there is none of the name. While transactions run, roots are set and looked up so. Errors:
 * as ty_root_set, and TY_E_BUSY. */
TY_API TY_CHECKED ty_status ty_atomic_root(ty_atomic_txn *txn, const char *name, void **address);
TY_API TY_CHECKED ty_status ty_atomic_root_set(ty_atomic_txn *txn, const char *name, void *address);

/* For `return ty_atomic_wait(txn)`: the body cannot go on as things are. It is run again when a word that it has loaded
 * has changed. Until then its thread sleeps, and what it did is taken back. */
TY_API TY_CHECKED ty_status ty_atomic_wait(ty_atomic_txn *txn);
/* For `return ty_atomic_restart(txn)`: what the body has seen is of no use to it. It is taken back and run again at
 * once, the whole of it, also from within a part. It counts as a conflict does: a body that restarts 8 times runs while
 * no other may commit; if it restarts then, too, it was not for the others, and they go first. Errors: TY_E_BUSY
 * (always, where it does); TY_E_ARGUMENT (irrevocable). */
TY_API TY_CHECKED ty_status ty_atomic_restart(ty_atomic_txn *txn);
/* Runs first; where it asks to wait, what it did is taken back and second is run instead. Returns what the last one
 * did. Another status than TY_OK takes nothing back: the caller hands it on, or goes on. */
TY_API TY_CHECKED ty_status ty_atomic_either(ty_atomic_txn *txn, ty_atomic_body *first, ty_atomic_body *second,
                                             void *context);

/* Calls back after the transaction has ended, in the order of these calls: when it has committed (it may not be durable
 * yet), or each time when a run is rolled back, before the next one. The function may do whatever a thread may that is
 * in no transaction of the heap; of one within a body on another heap, whatever that body may. It must not throw.
 * Errors: TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_atomic_on_commit(ty_atomic_txn *txn, void (*function)(void *context), void *context);
TY_API TY_CHECKED ty_status ty_atomic_on_rollback(ty_atomic_txn *txn, void (*function)(void *context), void *context);

/* TY_OK, or why the run cannot commit: TY_E_BUSY (a conflict), TY_E_MEMORY, TY_E_ARGUMENT. */
TY_API ty_status ty_atomic_status(const ty_atomic_txn *txn);
/* The calling thread's transaction on the heap; NULL if it is in no body. Thread-safe. */
TY_API ty_atomic_txn *ty_current_atomic_txn(ty_heap *heap);

/* Returns once every transaction that was under way on the heap has ended, or sees all that had been committed at the
 * call, and all that had been committed is stored. Long transactions are waited for; new ones go on. Errors:
 * TY_E_ARGUMENT (not a concurrent heap; within a body), TY_E_MEMORY, TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_atomic_quiesce(ty_heap *heap);

typedef struct ty_atomic_stats {
    size_t struct_size; /* sizeof(ty_atomic_stats), set by the caller */
    uint64_t commits;
    uint64_t conflicts_locked;    /* a word that another was committing to */
    uint64_t conflicts_changed;   /* a word that another had committed to */
    uint64_t conflicts_alone;     /* another one was alone */
    uint64_t conflicts_forgotten; /* an old value that was not kept */
    uint64_t alone;               /* ran while no other could commit */
    uint64_t old_readers;         /* read old values */
    uint64_t records;             /* of commits, in the log */
    uint64_t record_bytes;
    uint64_t snapshot_waits;           /* of transactions with blocks, for the heap's tables while they were copied */
    uint64_t longest_snapshot_wait_ns; /* of these */
    uint64_t conflicts_elsewhere;      /* lost to a thread that another heap's transaction, within it, would wait for */
    uint64_t restarts;                 /* asked for by bodies */
} ty_atomic_stats;
/* Since the heap was created or opened. Errors: TY_E_ARGUMENT (not a concurrent heap). Thread-safe. */
TY_API TY_CHECKED ty_status ty_get_atomic_stats(ty_heap *heap, ty_atomic_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
