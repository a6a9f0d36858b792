/* Taiyen: many writers at once on one heap.
 *
 * Purpose: let any number of threads change a heap at the same time, each in serializable transactions of its own. A
 * volatile heap is concurrent if it was created with ty_heap_options.concurrent, a transactional heap if it was opened
 * with ty_open_options.concurrent; its commits then are also in its log.
 *
 * Vocabulary: a *body* is a function of the program that is run as a transaction. It loads and stores through the
 * transaction. A *conflict* is another thread's commit to something that the body has loaded: what the body did is
 * rolled back, and it is run again. The *LSN* of a commit is its place in the order of all commits.
 *
 * Guarantees: all that a body loads is of one state of the heap, even in a run that will fail. A transaction that meets
 * many conflicts is not starved: after 8 it runs while no other may commit. A transaction that only loads does not wait
 * forever for writers either. A commit is atomic for all other threads and, on a transactional heap, for crashes: after
 * a crash the heap holds exactly the commits up to some LSN (but see TY_COMMIT_STREAM), each whole.
 *
 * What a body may do: load, store, allocate and free through its transaction; use memory of its own. It may be run many
 * times, so every other effect must be harmless when repeated; use ty_atomic_on_commit and ty_atomic_on_rollback for
 * the rest. It must not wait for another thread, nor call ty_begin, ty_read_begin, ty_snapshot, ty_close and the like
 * on the same heap; ty_snapshot and ty_close are refused on any other transactional heap, too (TY_E_ARGUMENT). A block
 * that it has allocated may be loaded and stored plainly until the commit: there ty_atomic_store stores at once, and
 * the last store of either kind counts. While more than one thread uses the heap, all other memory of its blocks may
 * only be loaded and stored through transactions: plain stores are not seen by others and not logged; plain loads may
 * see any mixture.
 *
 * Publication and privatisation: what a thread has stored plainly to its own block is visible to every thread that
 * loads the pointer to it that the commit has stored. For the opposite direction a commit is not enough. After it has
 * made a block unreachable, transactions that began before may still read the block, and those that committed before
 * may still store to it. The thread has the block to itself once ty_atomic_quiesce has returned after that commit, or
 * between ty_begin and its end, when no other transaction runs. On a transactional heap, plain stores after
 * ty_atomic_quiesce are not logged: store in a transaction, or within ty_begin. ty_atomic_free needs none of this.
 *
 * Transactions on another concurrent heap within a body, in any order, are open nested: the inner one commits at once
 * and by itself, others see it, and it stays if the outer one is rolled back or run again; then it may run again, too.
 * It does not wait: if another thread has its heap to itself (8 conflicts, ty_begin, a read section, a log without
 * room), it is rolled back with TY_E_BUSY, and the outer ones are aborted as by a conflict. The outermost one then
 * waits for that heap with nothing held, and runs again; after some time it gets all these heaps to itself. So no order
 * of heaps need be kept, and no thread starves. The same holds for ty_begin and read sections, within a body, on heaps
 * that are not concurrent. An inner transaction must not be irrevocable nor be in one that is, and it cannot wait for a
 * change (TY_E_ARGUMENT). A thread that has a transaction of ty_begin or a read section open, or is in an irrevocable
 * body, does wait for other heaps, as for a lock: keep an order among those only.
 *
 * In C a conflict cannot leave the body by itself. A load that meets one returns TY_E_BUSY and zeros, and so does every
 * load and store after it; whatever the body returns then, its effects are discarded, and it is run again. So return
 * each status to the caller: `if ((status = ty_atomic_load(txn, &account->balance, &balance, sizeof balance))) return
 * status;`
 *
 * A C++ exception that leaves a body rolls back, and leaves ty_atomically; one that leaves a nested body on the same
 * heap rolls back that part.
 *
 * ty_begin on such a heap waits for all transactions to end and blocks new ones: plain stores, procedures and tracked
 * transactions work as on any heap. So do the sections of ty_read_begin.
 *
 * Cost: a load is three loads of memory (concurrent_inline.h has it without a call); a commit is some atomic operations
 * for each word stored. The words of each 32 bytes share a lock, so keep data that different threads change further
 * apart.
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

/* When ty_atomically returns. On volatile heaps: at the commit. */
typedef enum ty_commit_mode {
    TY_COMMIT_SYNC = 0,  /* once the commit, and all before it, are durable */
    TY_COMMIT_ASYNC = 1, /* at once; ty_durable reports on the LSN and makes it durable */
    TY_COMMIT_STREAM = 2 /* once it is durable in its own log stream. It survives a crash even if commits before it do
                            not: the program must ensure that it does not depend on commits that were not durable. A
                            commit that allocates, frees or sets roots behaves as with TY_COMMIT_SYNC */
} ty_commit_mode;

typedef struct ty_atomic_options {
    size_t struct_size; /* sizeof(ty_atomic_options), set by the _INIT macro */
    ty_commit_mode commit;
    bool reads_only;  /* it stores nothing: it records less, and after two conflicts reads old values, which are kept
                         for it (at most 32 MB; if they are not enough, it runs while no other may commit) */
    bool irrevocable; /* no other may commit from its begin on, so it meets no conflict and is run once, unless it asks
                         to wait: for effects that cannot be rolled back. Only as the outermost one of its thread */
} ty_atomic_options;
#define TY_ATOMIC_OPTIONS_INIT                                                                                         \
    { sizeof(ty_atomic_options), TY_COMMIT_SYNC, false, false }

typedef struct ty_atomic_result {
    size_t struct_size; /* sizeof(ty_atomic_result), set by the caller */
    bool committed;
    uint64_t lsn;  /* of the commit, for ty_durable; if it stored nothing, of the state that it has seen */
    uint32_t runs; /* of the body */
} ty_atomic_result;

/* TY_OK commits. Any other status rolls back, and ty_atomically returns it; this includes TY_E_BUSY that the body
 * returns without a conflict. */
typedef ty_status ty_atomic_body(ty_atomic_txn *txn, void *context);

/* Runs the body until it commits or rolls back. options and result may be NULL. Within a body on the same heap it is a
 * nested part of that transaction: rolled back by itself if it returns another status than TY_OK, committed with the
 * whole; its options reads_only and commit are taken from the whole transaction, and it may be irrevocable only if that
 * is (TY_E_ARGUMENT).
 * Errors besides the body's: TY_E_ARGUMENT (not a concurrent heap; this thread has a transaction of ty_begin or a read
 * section under way on it; the body waits without having loaded anything, or within a body on another heap), TY_E_BUSY
 * (only within a body on another heap: that one is aborted, return from it; if result->committed is true, the commit
 * was not durable yet and its log has failed), TY_E_MEMORY, TY_E_FORKED, TY_E_PERMISSION (read-only); TY_E_SPACE and
 * TY_E_IO as for ty_commit: if result->committed is false, nothing has changed; if true, the commit is visible to
 * others and not durable yet. Thread-safe. */
TY_API TY_CHECKED ty_status ty_atomically(ty_heap *heap, const ty_atomic_options *options, ty_atomic_body *body,
                                          void *context, ty_atomic_result *result);

/* Load or store any bytes of the heap's blocks; 8 aligned bytes are cheapest, and 4 nearly so. Errors: TY_E_BUSY (a
 * conflict: return from the body), TY_E_ARGUMENT (outside of the part of the heap that was ever used; a store in a
 * transaction with reads_only), TY_E_MEMORY. After an error all later calls of the run return the same error, and it
 * does not commit; but TY_E_ARGUMENT for an address fails that call only. A load that fails gives zeros. For the thread
 * that runs the body, as are all functions below. */
TY_API TY_CHECKED ty_status ty_atomic_load(ty_atomic_txn *txn, const void *address, void *value, size_t bytes);
TY_API TY_CHECKED ty_status ty_atomic_store(ty_atomic_txn *txn, void *address, const void *value, size_t bytes);

/* Prefetches words at these addresses, all at once: a transaction on a large heap mostly waits for such cache misses. A
 * hint; any addresses may be given. */
TY_API void ty_atomic_prefetch(ty_atomic_txn *txn, const void *const *addresses, size_t count);

/* As ty_alloc_zeroed, ty_alloc_aligned and ty_free, as part of the transaction. A freed block is released once no
 * transaction can read it any more and its thread has ended some further transactions; or sooner, by any thread, when
 * memory is short; until then ty_free does not notice that it was freed. Errors: as those; TY_E_BUSY (the detail names
 * a conflict); TY_E_ARGUMENT (reads_only). */
TY_API void *ty_atomic_alloc(ty_atomic_txn *txn, size_t size);
TY_API void *ty_atomic_alloc_aligned(ty_atomic_txn *txn, size_t size, size_t alignment);
TY_API TY_CHECKED ty_status ty_atomic_free(ty_atomic_txn *txn, void *block);
/* Returns a block of the new size with the old one's content; the old block is freed, unless it has room. On failure
 * returns NULL, and the block is unchanged. block NULL: an allocation. */
TY_API void *ty_atomic_resize(ty_atomic_txn *txn, void *block, size_t size);

/* Roots: *address is NULL if no root has the name. While transactions run, set and look up roots with these. Errors: as
 * ty_root_set, and TY_E_BUSY. */
TY_API TY_CHECKED ty_status ty_atomic_root(ty_atomic_txn *txn, const char *name, void **address);
TY_API TY_CHECKED ty_status ty_atomic_root_set(ty_atomic_txn *txn, const char *name, void *address);

/* For `return ty_atomic_retry(txn)`: the body cannot continue in this state of the heap. It is rolled back, its thread
 * sleeps until a word that it has loaded changes, and it is run again. */
TY_API TY_CHECKED ty_status ty_atomic_retry(ty_atomic_txn *txn);
/* For `return ty_atomic_restart(txn)`: the body cannot use what it has seen. The whole transaction is rolled back and
 * run again at once, also from within a nested part. It counts as a conflict: a body that restarts 8 times runs while
 * no other may commit; if it restarts then, too, the others were not the cause, and they go first. Errors: TY_E_BUSY
 * (always, when it restarts); TY_E_ARGUMENT (irrevocable). */
TY_API TY_CHECKED ty_status ty_atomic_restart(ty_atomic_txn *txn);
/* Runs first; if it retries, it is rolled back and second is run instead. Returns the status of the one that ran
 * last. Another status than TY_OK rolls nothing back: the caller returns it, or continues. */
TY_API TY_CHECKED ty_status ty_atomic_or_else(ty_atomic_txn *txn, ty_atomic_body *first, ty_atomic_body *second,
                                              void *context);

/* Calls back after the transaction has ended, in the order of these calls: when it has committed (perhaps not durably
 * yet), or each time a run is rolled back, before the next run. The function may do what a thread outside of
 * transactions of the heap may do; for a transaction within a body on another heap, what that body may do. It must not
 * throw. Errors: TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_atomic_on_commit(ty_atomic_txn *txn, void (*function)(void *context), void *context);
TY_API TY_CHECKED ty_status ty_atomic_on_rollback(ty_atomic_txn *txn, void (*function)(void *context), void *context);

/* Returns TY_OK, or why the run cannot commit: TY_E_BUSY (a conflict), TY_E_MEMORY, TY_E_ARGUMENT. */
TY_API ty_status ty_atomic_status(const ty_atomic_txn *txn);
/* The calling thread's transaction on the heap, or NULL if it is in no body. Thread-safe. */
TY_API ty_atomic_txn *ty_current_atomic_txn(ty_heap *heap);

/* Returns once every transaction that was under way on the heap has ended, or sees all commits before the call, and all
 * these commits are stored. Waits for long transactions; new ones continue. Errors: TY_E_ARGUMENT (not a concurrent
 * heap; within a body), TY_E_MEMORY, TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_atomic_quiesce(ty_heap *heap);

typedef struct ty_atomic_stats {
    size_t struct_size; /* sizeof(ty_atomic_stats), set by the caller */
    uint64_t commits;
    uint64_t conflicts_locked;  /* on a word that another was committing to */
    uint64_t conflicts_changed; /* on a word that another had committed to */
    uint64_t conflicts_serial;  /* another one ran while no other could commit */
    uint64_t conflicts_evicted; /* an old value was needed and not kept */
    uint64_t serial;            /* transactions that ran while no other could commit */
    uint64_t old_readers;       /* transactions that read old values */
    uint64_t records;           /* of commits, in the log */
    uint64_t record_bytes;
    uint64_t snapshot_waits;           /* of transactions that allocate or free, while a snapshot copied the heap's
                                          tables */
    uint64_t longest_snapshot_wait_ns; /* of these */
    uint64_t conflicts_other_heap; /* aborted because a transaction on another heap, within the body, would have had to
                                     wait for another thread */
    uint64_t restarts;             /* by ty_atomic_restart */
} ty_atomic_stats;
/* Statistics since the heap was created or opened. Errors: TY_E_ARGUMENT (not a concurrent heap). Thread-safe. */
TY_API TY_CHECKED ty_status ty_get_atomic_stats(ty_heap *heap, ty_atomic_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
