/* Taiyen: undo and redo.
 *
 * Purpose: let an application undo and redo its changes to a heap, across sessions and crashes.
 *
 * Vocabulary: an *entry* is one recorded change. An undo *transaction* is the sequence of entries between ty_undo_begin
 * and ty_undo_end, and is undone as a whole; it has a label and a time, for a menu. The *history* is all transactions
 * that can be undone.
 * A *cycle* goes from the first ty_undo to ty_undo_exit, or to the end of a transaction that has recorded something: in
 * it, any number of transactions can be undone and redone. Its end makes the changes final and forgets what was undone.
 * A *kept* block is one that was freed, or whose allocation was undone: it stays in its place, with its content, until
 * no undo or redo can restore it.
 *
 * Guarantees:
 *  - Undoing the whole history and redoing it gives the same bytes in the same blocks at the same addresses.
 *  - A call that fails changes nothing, unless its comment says otherwise.
 *  - Buffers in the heap are part of each snapshot: after a crash, the history is that of the snapshot that was
 *    recovered, and matches its content, also in the middle of a transaction or a cycle. An attach checks all of it
 *    before it is used.
 *  - Recording never allocates; a data entry costs a copy of the bytes and some nanoseconds.
 *
 * Limits: a change that was not recorded is not undone; where recorded changes overlap it, undo restores what was
 * recorded. While buffers are detached, an application that changes recorded memory should clear the history. Volatile,
 * archive and snapshot heaps support undo; transactional heaps do not (TY_E_UNSUPPORTED), and a heap with undo buffers
 * cannot become one. ty_each_block and the heap's statistics count kept blocks, and the block of the buffers, as live
 * ones. All functions but ty_register_procedure are externally serialised with each other on one heap; other threads
 * may allocate, free and write elsewhere in the heap meanwhile.
 */
#ifndef TAIYEN_UNDO_H
#define TAIYEN_UNDO_H

#include "base.h"
#include "heap.h"
#include "status.h"
#include "txn.h" /* ty_procedure, ty_register_procedure */

#ifdef __cplusplus
extern "C" {
#endif

/* Options for new buffers; zero means the default. */
typedef struct ty_undo_options {
    size_t struct_size;    /* sizeof(ty_undo_options), set by the _INIT macro */
    size_t undo_bytes;     /* capacity of the undo buffer in recorded bytes. 0: 16 MiB */
    size_t redo_bytes;     /* 0: as undo_bytes */
    size_t entries;        /* capacity of each buffer in entries. 0: undo_bytes / 64 */
    size_t kept_bytes;     /* limit on the size of all kept blocks. 0: a quarter of the heap's limit */
    bool volatile_buffers; /* the recorded bytes lie outside the heap: snapshots are smaller, and the history ends when
                              the heap is closed */
    bool fixed;            /* a full buffer switches undo off, instead of forgetting the oldest transactions */
} ty_undo_options;
#define TY_UNDO_OPTIONS_INIT                                                                                           \
    { sizeof(ty_undo_options), 0, 0, 0, 0, false, false }

/* Attaches undo to a heap: uses the buffers that the heap holds, or creates new ones. options may be NULL.
 * Buffers that hold a history are used as they are. If options ask for other buffers, they are recreated if the history
 * is empty, else TY_E_EXISTS.
 * Errors: TY_E_ARGUMENT, TY_E_BUSY (attached already), TY_E_UNSUPPORTED (a transactional heap), TY_E_PERMISSION
 * (read-only), TY_E_FORKED, TY_E_MEMORY, TY_E_DAMAGED (the buffers are inconsistent; a detach with keep_history false
 * removes them), TY_E_FORMAT (the buffers are of a newer library). O(entries). Durable with the next snapshot. */
TY_API TY_CHECKED ty_status ty_undo_attach(ty_heap *heap, const ty_undo_options *options);

/* Detaches undo. keep_history: buffers in the heap stay there and can be attached again, also after the next open.
 * Closing an attached heap does the same; a history in volatile buffers ends then, even if the close fails. Else kept
 * blocks and buffers are freed, also if undo is not attached; if the buffers are inconsistent, the kept blocks stay
 * allocated. Errors: TY_E_NOT_FOUND (neither attached nor buffers). */
TY_API TY_CHECKED ty_status ty_undo_detach(ty_heap *heap, bool keep_history);

/* ---- Recording. */

/* Begins a transaction. label (truncated to TY_UNDO_LABEL_MAX bytes) is for people to read; NULL: empty. In a cycle,
 * undone transactions can still be redone if this one is cancelled or records nothing. They are forgotten while it
 * records only if the buffers lack room for both even after the oldest transactions are forgotten. Errors:
 * TY_E_ARGUMENT (a transaction is open already: they do not nest). */
#define TY_UNDO_LABEL_MAX 47u
TY_API TY_CHECKED ty_status ty_undo_begin(ty_heap *heap, const char *label);

/* The following functions need an open transaction, or a running procedure (else TY_E_ARGUMENT). TY_E_SPACE: the
 * transaction does not fit in the buffer (fixed: beside what is there already). The call recorded and changed nothing,
 * and nothing more can be recorded: ty_undo_cancel undoes what was recorded and leaves the history as before;
 * ty_undo_end discards the history. */

/* Records the bytes at address as they are, before they are changed. They may be any bytes in the heap's live blocks;
 * the undo checks that they are in live blocks, and is refused otherwise. Bytes of blocks that the same transaction
 * allocated, and bytes that a block grew by in it, need no record.
 * Errors: TY_E_ARGUMENT (outside the heap's blocks), TY_E_SPACE. Cost: a copy of the bytes; O(1) otherwise. */
TY_API TY_CHECKED ty_status ty_undo_record(ty_heap *heap, const void *address, size_t bytes);

/* Records that the following change is reversed by a registered procedure with these arguments (ty_register_procedure;
 * must be registered after later opens, too). An undo calls it; what it records goes to the redo buffer, so it records
 * its own reversal, as any code does. A redo calls what was recorded there; records made then are dropped. The
 * procedure must return expected, usually TY_OK; if it returns another status, it must have changed only what it
 * recorded (in a redo: nothing). In a redo it must not allocate, free or resize (TY_E_UNSUPPORTED), and it must never
 * begin, end or undo anything. Errors: TY_E_ARGUMENT (id 0), TY_E_NOT_FOUND (not registered), TY_E_SPACE. */
TY_API TY_CHECKED ty_status ty_undo_record_procedure(ty_heap *heap, uint64_t id, const void *arguments, size_t bytes,
                                                     ty_status expected);

/* As ty_alloc, ty_alloc_aligned, ty_free and ty_resize, recording their reversal: no bytes are copied to the buffers,
 * except the end of a block that shrinks within a small block or a page. A freed block is kept, at its address, so an
 * undo of any size copies nothing. Its memory is released where the image has the content: for blocks of 1 MiB or more
 * at once, for pages that are unchanged since the last snapshot, if that is checkpointed (ty_run_background_work); else
 * by ty_heap_purge. In a full heap, circular buffers forget transactions that keep blocks, oldest first. These calls
 * recognise a kept block and refuse it; the heap's own calls treat it as a live one: a ty_free of it damages the
 * history. Errors: as those; TY_E_SPACE (also if more than kept_bytes would be kept). */
TY_API void *ty_undo_alloc(ty_heap *heap, size_t size);
TY_API void *ty_undo_alloc_aligned(ty_heap *heap, size_t size, size_t alignment);
TY_API TY_CHECKED ty_status ty_undo_free(ty_heap *heap, void *block);
TY_API void *ty_undo_resize(ty_heap *heap, void *block, size_t size);

/* Ends the transaction: from now on it can be undone, and a cycle is over (ty_undo_exit). A transaction without entries
 * changes nothing: a cycle continues, and what can be redone stays.
 * Errors: TY_E_ARGUMENT (no transaction is open); TY_E_SPACE (it did not fit): the transaction is over, it and the
 * history are forgotten, and with fixed buffers undo is off: begin, record and end do nothing until ty_undo_clear. */
TY_API TY_CHECKED ty_status ty_undo_end(ty_heap *heap);

/* Undoes what the open transaction has recorded, and ends it; a cycle continues. Errors: TY_E_ARGUMENT (no transaction
 * is open); as ty_undo. */
TY_API TY_CHECKED ty_status ty_undo_cancel(ty_heap *heap);

/* ---- Undo and redo. */

/* Undoes the last transaction that is not undone yet; the first call begins a cycle. A transaction that the redo buffer
 * cannot hold is undone all the same: then fewer transactions can be redone (fixed: none, until the exit).
 * Errors: TY_E_ARGUMENT (a transaction is open), TY_E_NOT_FOUND (nothing to undo, or a procedure is not registered: the
 * detail says which), TY_E_DAMAGED (the buffer's bytes are not what was recorded, or other code has freed one of its
 * blocks), TY_E_MISMATCH (a procedure did not return the expected status). Everything is then as it was; but if the
 * redo buffer could not hold the transaction, the part already undone stays undone: TY_E_DAMAGED, and the history is
 * forgotten. */
TY_API TY_CHECKED ty_status ty_undo(ty_heap *heap);

/* Redoes the transaction that was undone last. Errors: as ty_undo; if a procedure fails after another procedure of the
 * same transaction succeeded, the effect of that one stays: TY_E_DAMAGED, and the history is forgotten. */
TY_API TY_CHECKED ty_status ty_redo(ty_heap *heap);

/* Ends the cycle: what is undone stays undone and is forgotten; blocks kept only for it are freed. Does nothing outside
 * of a cycle. A new transaction does not need it: see ty_undo_end. */
TY_API TY_CHECKED ty_status ty_undo_exit(ty_heap *heap);

/* Forgets the history, ends an open transaction or cycle without changing the heap's content, and switches undo on
 * again. */
TY_API TY_CHECKED ty_status ty_undo_clear(ty_heap *heap);

/* ---- History and statistics. */

typedef struct ty_undo_step {
    const char *label;
    uint64_t time_unix_ns; /* of ty_undo_end */
    uint64_t entries;
    uint64_t bytes; /* recorded */
    bool undone;    /* to be redone; else to be undone */
} ty_undo_step;
/* Calls back for each transaction, from the one that would be redone last to the one that would be undone last (a menu
 * from bottom to top), until the callback returns false. The label is valid during the callback. On a read-only heap it
 * lists the buffers that the heap holds (volatile ones not at all): TY_E_NOT_FOUND if it has none. */
typedef bool ty_undo_step_callback(const ty_undo_step *step, void *context);
TY_API ty_status ty_undo_history(ty_heap *heap, ty_undo_step_callback *callback, void *context);

typedef struct ty_undo_stats {
    size_t struct_size;  /* sizeof(ty_undo_stats), set by the caller */
    uint64_t undoable;   /* transactions */
    uint64_t redoable;   /* transactions */
    uint64_t undo_bytes; /* recorded bytes in the undo buffer */
    uint64_t undo_size;  /* capacity */
    uint64_t redo_bytes; /* the same for redo */
    uint64_t redo_size;
    uint64_t undo_entries;
    uint64_t redo_entries;
    uint64_t size_entries; /* capacity of each */
    uint64_t kept_blocks;
    uint64_t kept_bytes;
    uint64_t forgotten; /* transactions forgotten since the attach, to make room for others */
    bool reattached;    /* the heap had buffers already */
    bool lost_volatile; /* its buffers were volatile and it was not closed in order: kept blocks were freed */
    bool open;          /* a transaction is open */
    bool full;          /* it does not fit in the buffer */
    bool cycle;         /* between ty_undo and ty_undo_exit */
    bool off;           /* switched off by a full fixed buffer */
} ty_undo_stats;
/* Writes *stats; on a read-only heap, of the buffers that it holds, as ty_undo_history. O(1); on a read-only heap
 * O(entries). Errors: TY_E_ARGUMENT (not attached); on a read-only heap TY_E_NOT_FOUND, and TY_E_DAMAGED (the buffers
 * are inconsistent). */
TY_API TY_CHECKED ty_status ty_get_undo_stats(ty_heap *heap, ty_undo_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
