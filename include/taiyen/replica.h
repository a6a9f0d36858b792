/* Taiyen: receiving the transactions of another heap.
 *
 * Purpose: a second copy that stays like the first. A *replica* takes the records that a change feed told (feed.h), and
 * does each one again in a copy of the heap, as a transaction with the same LSN. So it serves for restoring
 * to any transaction, and for a copy that follows its source and can be read meanwhile.
 *
 * Vocabulary:
 *   source     the heap that the records are of.
 *   copy       a heap in files that holds what the source held behind one of its transactions: copies of the source's
 *              files (opened by TY_OPEN_COPY and packed, or copied while it was closed), or unpacked at the same
 *              address with the same layout.
 *   receiving heap   a copy that has a replica, or had one: its header says so, and until ty_promote nobody else can
 *              write to it. What else needs to be known is the position, which the program keeps.
 *   promoted   a heap that received, and is written to now: its history is its own, and it never receives again.
 *
 * Guarantees:
 *  - Behind the record of a transaction the heap's memory holds what the source's held behind it: the words of blocks,
 *    which blocks there are, and the roots. Blocks that the library keeps for itself (ty_each_own_block) may differ.
 *  - What is not the next record, or was changed on its way, is refused, and changes nothing (ty_feed_check). A
 * record that is hostile, but has the right hash, can do to the copy's blocks and roots what a program with the source
 * in its hands can do, and no more: it is refused where it does not fit, never a fault of the library. A registered
 *    procedure is called with what stands in the record, and checks that itself. Who must not be believed must not be
 *    let near the records: the hash is none that only the source can make.
 *  - A transaction in two phases (ty_prepare) is done with its outcome, and so are distributed transactions that have
 * one outcome: a replica keeps their records until that comes. So a heap that receives never has anything in doubt,
 * and asks nobody.
 *  - Whatever happens, the files hold a number of whole transactions, in order: those of the last
 * ty_replica_make_durable, or more. A replica that died goes on from there with records from any position before it.
 *  - Readers of the heap (ty_read_begin; ty_atomically with reads_only) see whole transactions. They may see some that
 *    a power cut takes back, until these are received again.
 *
 * Cost: of a record a checksum, two passes over its bytes, what it stores, and a copy to the log, if that is kept.
 * Readers wait while up to 256 KiB of records are done, and the replica waits for readers.
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

typedef struct ty_replica ty_replica; /* opaque; of one thread at a time */

typedef struct ty_replica_options {
    size_t struct_size;  /* sizeof(ty_replica_options), set by the _INIT macro */
    uint64_t copied_lsn; /* of a copy that has not received yet: the source's transaction that it was made behind
                                 (ty_feed_copied). 0: that of the position */
    const void *base;    /* the source's ty_heap_base. Needed for a copy that was unpacked, which has another
                            identity; TY_E_ADDRESS if the copy lies elsewhere. NULL: not known */
    bool unlogged;       /* what is received is not written to the heap's log: durable with ty_replica_make_durable,
                            ty_snapshot and ty_close alone. For restoring; and faster */
} ty_replica_options;
#define TY_REPLICA_OPTIONS_INIT                                                                                        \
    { sizeof(ty_replica_options), 0, NULL, false }

/* Where a heap's content stands that was opened by TY_OPEN_COPY or TY_OPEN_READ_ONLY: behind its transaction
 * position->LSN. A change feed of the source goes on from there. Errors: TY_E_ARGUMENT (the heap has no log, or is
 * open for writing), TY_E_BUSY (it holds transactions behind one that was not there yet: take another copy).
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_feed_copied(ty_heap *copy, ty_feed_position *position);

/* Makes a replica of a heap that is open for writing, and the heap one that receives, if it is none yet. The records
 * to come follow at the position, which is at or before the heap's last transaction: those up to that are checked, and
 * otherwise left out. options may be NULL. Nobody is in a transaction or a read section of the heap, else it waits.
 * Errors: TY_E_ARGUMENT (no transactional heap, the position is damaged, base is missing), TY_E_MISMATCH (the heap
 * receives from another one, was written to since it was copied, was promoted, or lacks transactions before the
 * position), TY_E_ADDRESS, TY_E_BUSY (it has a replica, or reserved blocks), TY_E_UNSUPPORTED (the options
 * track_stores and check_stores), TY_E_SPACE, TY_E_IO, TY_E_MEMORY, TY_E_FORKED. Durable: that the heap receives.
 * Thread-safe. */
TY_API TY_CHECKED ty_status ty_replica_begin(ty_heap *heap, const ty_feed_position *position,
                                             const ty_replica_options *options, ty_replica **replica);
/* Ends it, and frees it; NULL does nothing. The heap still receives. To be called before the heap is closed. */
TY_API void ty_replica_end(ty_replica *replica);

/* Takes records, the next ones in order. Many at a time are faster. They are done when it returns, and not yet durable.
 * Errors: TY_E_MISMATCH, TY_E_DAMAGED (a record is not the next one, was changed, or is none of such a heap),
 * TY_E_NOT_FOUND (a procedure is not registered), TY_E_ARGUMENT: nothing was done of any of them. TY_E_SPACE, TY_E_IO:
 * they are done, and what does not get into the log could not be made durable; ty_replica_make_durable tries again.
 * Where the detail says so (TY_E_DAMAGED: a record does not fit the heap; or a procedure failed), the heap is to be
 * discarded (ty_discard): its files hold what was before. One thread at a time. */
TY_API TY_CHECKED ty_status ty_replica_apply(ty_replica *replica, const ty_feed_record *records, size_t count);

/* Makes all that was received durable. *position: behind the last one, to go on from; may be NULL. Errors: TY_E_SPACE,
 * TY_E_IO, TY_E_DAMAGED (the heap is to be discarded). One thread at a time. */
TY_API TY_CHECKED ty_status ty_replica_make_durable(ty_replica *replica, ty_feed_position *position);

/* The heap receives no more: from now on it is written to as any other, and has a history of its own, for ever.
 * Durable when it returns, with all that was received. Errors: TY_E_ARGUMENT (it receives nothing), TY_E_BUSY (end the
 * replica first), TY_E_SPACE, TY_E_IO, TY_E_FORKED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_promote(ty_heap *heap);

#ifdef __cplusplus
}
#endif
#endif
