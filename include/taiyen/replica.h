/* Taiyen: replicas, heaps that receive the transactions of another heap.
 *
 * Purpose: a second copy that follows the first. A *replica* takes the records that a change feed delivered (feed.h),
 * and redoes each one in a copy of the heap, as a transaction with the same LSN. It serves to restore to any
 * transaction, and for a copy that follows its source and can be read meanwhile.
 *
 * Vocabulary:
 *   source     the heap that the records are of.
 *   copy       a heap in files with the content that the source had after one of its transactions: copies of the
 *              source's files (opened by TY_OPEN_COPY and packed, or copied while it was closed), or unpacked at the
 *              same address with the same layout.
 *   receiving heap   a copy that has a replica, or had one: its header says so, and until ty_promote nothing else can
 *              write to it. Apart from that only the position must be known, which the program stores.
 *   promoted   a heap that received, and is now written to: its history is its own, and it never receives again.
 *
 * Guarantees:
 *  - After the record of a transaction the heap's memory holds what the source's held after it: the words of blocks,
 *    which blocks are allocated, and the roots. Blocks that the library keeps for itself (ty_each_internal_block) may
 *    differ.
 *  - A record that is not the next one, or was changed on its way, is refused, and changes nothing (ty_feed_check). A
 *    hostile record with the right hash can do to the copy's blocks and roots what a program that has the source open
 *    can do, and no more: it is refused if it does not fit, and never makes the library fault. A registered procedure
 *    is called with the record's arguments, and must check them itself. Keep untrusted parties away from the records:
 *    anyone can compute the hash.
 *  - A transaction in two phases (ty_prepare) is applied with its outcome, and so are distributed transactions that
 *    share one outcome: a replica keeps their records until then. So a receiving heap never has a transaction in doubt,
 *    and asks no coordinator.
 *  - Whatever happens, the files hold a number of whole transactions, in order: those up to the last
 *    ty_replica_make_durable, or more. A replica that crashed continues from there with records from any position
 *    before it.
 *  - Readers of the heap (ty_read_begin; ty_atomically with reads_only) see whole transactions. They may see some that
 *    a power cut removes, until these are received again.
 *
 * Cost: for each record a checksum, two passes over its bytes, its stores, and a copy to the log, unless unlogged.
 * Readers wait while up to 256 KiB of records are applied, and the replica waits for readers.
 */
#ifndef TAIYEN_REPLICA_H
#define TAIYEN_REPLICA_H

#include "base.h"
#include "feed.h"
#include "heap.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_replica ty_replica; /* opaque; for one thread at a time */

typedef struct ty_replica_options {
    size_t struct_size;  /* sizeof(ty_replica_options), set by the _INIT macro */
    uint64_t copied_lsn; /* for a copy that has not received yet: the source's transaction after which it was made
                            (ty_feed_copied). 0: that of the position */
    const void *base;    /* the source's ty_heap_base. Needed for a copy that was unpacked, which has another
                            identity; TY_E_ADDRESS if the copy lies elsewhere. NULL: not known */
    bool unlogged;       /* what is received is not written to the heap's log: it becomes durable only with
                            ty_replica_make_durable, ty_snapshot and ty_close. Faster; for restoring */
} ty_replica_options;
#define TY_REPLICA_OPTIONS_INIT                                                                                        \
    { sizeof(ty_replica_options), 0, NULL, false }

/* The position of the content of a heap that was opened by TY_OPEN_COPY or TY_OPEN_READ_ONLY: after its transaction
 * position->lsn. A change feed of the source continues from there. Errors: TY_E_ARGUMENT (the heap has no log, or is
 * open for writing), TY_E_BUSY (it has transactions after one that was not logged yet: take another copy).
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_feed_copied(ty_heap *copy, ty_feed_position *position);

/* Opens a replica on a heap that is open for writing, and makes that a receiving heap, if it is none yet. The records
 * to come follow at the position, which is at or before the heap's last transaction: records up to that are checked,
 * and otherwise skipped. options may be NULL. Waits for transactions and read sections of the heap to end. Errors:
 * TY_E_ARGUMENT (not a transactional heap, the position is damaged, base is missing), TY_E_MISMATCH (the heap receives
 * from another one, was written to since it was copied, was promoted, or lacks transactions before the position),
 * TY_E_ADDRESS, TY_E_BUSY (it has a replica, or reserved blocks), TY_E_UNSUPPORTED (the options track_stores and
 * check_stores), TY_E_SPACE, TY_E_IO, TY_E_MEMORY, TY_E_FORKED. Durability: the heap is durably a receiving one when
 * this returns. Thread-safe. */
TY_API TY_CHECKED ty_status ty_replica_begin(ty_heap *heap, const ty_feed_position *position,
                                             const ty_replica_options *options, ty_replica **replica);
/* Closes the replica; NULL does nothing. The heap stays a receiving one. Call it before the heap is closed. */
TY_API void ty_replica_end(ty_replica *replica);

/* Applies records, the next ones in order. Many at a time are faster. They are applied when it returns, and not yet
 * durable. Errors: TY_E_MISMATCH, TY_E_DAMAGED (a record is not the next one, was changed, or cannot be of such a
 * heap), TY_E_NOT_FOUND (a procedure is not registered), TY_E_ARGUMENT: none of them was applied. TY_E_SPACE, TY_E_IO:
 * they are applied, and those that did not get into the log could not be made durable; ty_replica_make_durable tries
 * again. If the detail says so (TY_E_DAMAGED: a record does not fit the heap; or a procedure failed), discard the heap
 * (ty_discard): its files hold the state before. One thread at a time. */
TY_API TY_CHECKED ty_status ty_replica_apply(ty_replica *replica, const ty_feed_record *records, size_t count);

/* Makes all that was received durable. *position: after the last transaction, to continue from; may be NULL. Errors:
 * TY_E_SPACE, TY_E_IO, TY_E_DAMAGED (discard the heap). One thread at a time. */
TY_API TY_CHECKED ty_status ty_replica_make_durable(ty_replica *replica, ty_feed_position *position);

/* Promotes a receiving heap: from now on it is writable as any other, and has its own history for ever. Durable when it
 * returns, with all that was received. Errors: TY_E_ARGUMENT (not a receiving heap), TY_E_BUSY (end the replica first),
 * TY_E_SPACE, TY_E_IO, TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_promote(ty_heap *heap);

#ifdef __cplusplus
}
#endif
#endif
