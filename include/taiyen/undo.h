/* Taiyen: undo and redo.
 *
 * Purpose: let an application take its changes to a heap back and do them again, across sessions and crashes.
 *
 * Vocabulary: an *entry* is one recorded change. A *transaction* of undo is a row of entries between ty_undo_begin and
 * ty_undo_end, and is undone as a whole; it has a label and a time, for a menu. The *history* is what can be undone.
 * A *cycle* goes from the first ty_undo to ty_undo_exit, or to the end of a transaction that has recorded something: in
 * it, transactions are undone and redone in any number. Its end locks in what was done and forgets what was undone. A
 * *held* block is one that was freed, or whose allocation was undone: it stays where it is, with its bytes, until
 * nothing can bring it back.
 *
 * Guarantees:
 *  - Undo to the far end and redo back give the same bytes in the same blocks at the same addresses.
 *  - A call that fails changes nothing, unless its comment says otherwise.
 *  - Buffers in the heap are part of each snapshot: after a crash, the history is that of the snapshot that the heap
 *    went back to, and fits its content, in the middle of a transaction or a cycle, too. What attaches checks all of it
 *    before it is believed.
 *  - Recording never allocates; a data entry costs a copy of the bytes and some nanoseconds.
 *
 * Limits: what is changed without a record is not undone, and where recorded changes lie over it, undo gives back what
 * was recorded. While buffers are detached, an application that changes recorded memory should clear the history.
 * Volatile, archive and snapshot heaps have undo; transactional heaps do not (TY_E_UNSUPPORTED), and a heap with undo
 * buffers cannot become one. ty_each_block and the heap's statistics count kept blocks, and the block of the buffers,
 * as live ones. All functions but ty_register_procedure are externally serialised with each other on one heap; other
 * threads may allocate, free and write elsewhere in the heap meanwhile.
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

/* For new buffers; a zero means the default. */
typedef struct ty_undo_options {
    size_t struct_size;    /* sizeof(ty_undo_options), set by the _INIT macro */
    size_t undo_bytes;     /* recorded bytes that the undo buffer holds. 0: 16 MiB */
    size_t redo_bytes;     /* 0: as undo_bytes */
    size_t entries;        /* entries that each of the buffers holds. 0: undo_bytes / 64 */
    size_t kept_bytes;     /* of all kept blocks. 0: a quarter of the heap's limit */
    bool volatile_buffers; /* the recorded bytes lie outside the heap: snapshots are smaller, and the history ends with
                              the session */
    bool fixed;            /* a full buffer switches undo off, instead of forgetting the oldest transactions */
} ty_undo_options;
#define TY_UNDO_OPTIONS_INIT                                                                                           \
    { sizeof(ty_undo_options), 0, 0, 0, 0, false, false }

/* Attaches undo to a heap: takes up the buffers that the heap holds, or makes new ones. options may be NULL.
 * Buffers that hold a history are taken up as they are; they are made anew where options ask for others and the history
 * is empty, and TY_E_EXISTS where it is not.
 * Errors: TY_E_ARGUMENT, TY_E_BUSY (attached already), TY_E_UNSUPPORTED (a transactional heap), TY_E_PERMISSION
 * (read-only), TY_E_FORKED, TY_E_MEMORY, TY_E_DAMAGED (the buffers make no sense; detach with keep_history false
 * removes them; TY_E_FORMAT: they are a newer library's). O(entries). Durable with the next snapshot. */
TY_API TY_CHECKED ty_status ty_undo_attach(ty_heap *heap, const ty_undo_options *options);

/* Detaches it. keep_history: buffers in the heap stay there, to be attached again, in a later session too (closing an
 * attached heap does the same; of volatile buffers the history ends, even if the close fails). Else kept blocks and
 * buffers are freed, also of a heap that undo is not attached to; of buffers that make no sense, what they held stays.
 * Errors: TY_E_NOT_FOUND (neither attached nor buffers). */
TY_API TY_CHECKED ty_status ty_undo_detach(ty_heap *heap, bool keep_history);

/* ---- Recording. */

/* Begins a transaction. label (at most TY_UNDO_LABEL_MAX bytes, more is cut off) is for a person; NULL: empty. In a
 * cycle, what is undone can be redone as before if the transaction is cancelled or records nothing. Only where the
 * buffers have no room for it besides, when the oldest transactions have gone, is that forgotten while it records.
 * Errors: TY_E_ARGUMENT (one is open already: they do not nest). */
#define TY_UNDO_LABEL_MAX 47u
TY_API TY_CHECKED ty_status ty_undo_begin(ty_heap *heap, const char *label);

/* All of the following need an open transaction, or a procedure that runs (TY_E_ARGUMENT). TY_E_SPACE: the transaction
 * does not fit in the buffer (fixed: with what is there already); nothing was recorded or changed, and nothing more can
 * be: ty_undo_cancel takes back what was, and the history is as before; ty_undo_end gives up the history. */

/* Records bytes at address as they are, before they are changed. They may be any bytes in the heap's live blocks; that
 * they lie in live ones is looked at by the undo, which is refused otherwise. Bytes of blocks that the same transaction
 * allocated, and bytes that a block grew by in it, need no record.
 * Errors: TY_E_ARGUMENT (not in the heap's blocks), TY_E_SPACE. A copy of bytes; O(1) beside that. */
TY_API TY_CHECKED ty_status ty_undo_record(ty_heap *heap, const void *address, size_t bytes);

/* Records that the change which follows is reversed by a registered procedure with these arguments (ty_register_
 * procedure; also in later sessions). An undo calls it; what it records then goes to the redo buffer: so it records its
 * own reversal, as any code does. A redo calls what was recorded there, and what is recorded then goes nowhere. It has
 * to return expected, usually TY_OK; else it should have changed nothing that it did not record (in a redo: nothing).
 * In a redo it must not allocate, free or resize (TY_E_UNSUPPORTED), and it never begins, ends or undoes anything.
 * Errors: TY_E_ARGUMENT (id 0), TY_E_NOT_FOUND (not registered), TY_E_SPACE. */
TY_API TY_CHECKED ty_status ty_undo_record_procedure(ty_heap *heap, uint64_t id, const void *arguments, size_t bytes,
                                                     ty_status expected);

/* As ty_alloc, ty_alloc_aligned, ty_free and ty_resize, recording their reversal: no bytes are copied to the buffers,
 * but for the end of what shrinks within a small block or a page. A freed block is kept, at its address, so an undo of
 * any size copies nothing. Its memory is given back where the image has it: from 1 MiB on at once, for what no store
 * has changed since the last snapshot, if that is checkpointed (ty_run_background_work); else by ty_heap_purge. In a
 * full heap, circular buffers forget transactions that hold blocks, oldest first. These calls know a kept block and
 * refuse it; the heap's own calls take it for a live one: a ty_free of it makes the history damaged. Errors: as those;
 * TY_E_SPACE (also: more than kept_bytes would be held). */
TY_API void *ty_undo_alloc(ty_heap *heap, size_t size);
TY_API void *ty_undo_alloc_aligned(ty_heap *heap, size_t size, size_t alignment);
TY_API TY_CHECKED ty_status ty_undo_free(ty_heap *heap, void *block);
TY_API void *ty_undo_resize(ty_heap *heap, void *block, size_t size);

/* Closes the transaction: from now on it can be undone, and a cycle is over (ty_undo_exit). One without entries leaves
 * everything as it was, a cycle and what can be redone, too.
 * Errors: TY_E_ARGUMENT (none is open); TY_E_SPACE (it had not fitted): the transaction is over, it and the history are
 * forgotten, and with fixed buffers undo is off: begin, record and end do nothing until ty_undo_clear. */
TY_API TY_CHECKED ty_status ty_undo_end(ty_heap *heap);

/* Takes back what the open transaction has recorded, and ends it; a cycle goes on. Errors: TY_E_ARGUMENT (none is
 * open); as ty_undo. */
TY_API TY_CHECKED ty_status ty_undo_cancel(ty_heap *heap);

/* ---- Undo and redo. */

/* Undoes the last transaction that is not undone yet; the first one begins a cycle. What the redo buffer cannot hold
 * is undone all the same: then fewer transactions can be redone (fixed: none, until the exit).
 * Errors: TY_E_ARGUMENT (a transaction is open), TY_E_NOT_FOUND (nothing to undo, or a procedure is not registered: the
 * text says which), TY_E_DAMAGED (the buffer's bytes are not what was recorded, or a block of it was freed by others),
 * TY_E_MISMATCH (a procedure did not return what is expected). Everything is then as it was; but where redo did not
 * hold the transaction, what was undone of it stays: TY_E_DAMAGED, and the history is forgotten. */
TY_API TY_CHECKED ty_status ty_undo(ty_heap *heap);

/* Does the transaction that was undone last again. Errors: as ty_undo; if a procedure fails in a transaction after
 * another one, what that one did stays: TY_E_DAMAGED, and the history is forgotten. */
TY_API TY_CHECKED ty_status ty_redo(ty_heap *heap);

/* Ends the cycle: what is undone stays undone and is forgotten; blocks that only it held are freed. Does nothing
 * outside of one. A transaction need not wait for it: see ty_undo_end. */
TY_API TY_CHECKED ty_status ty_undo_exit(ty_heap *heap);

/* Forgets the history, ends an open transaction or cycle as things are, and switches undo on again. */
TY_API TY_CHECKED ty_status ty_undo_clear(ty_heap *heap);

/* ---- What there is. */

typedef struct ty_undo_step {
    const char *label;
    uint64_t time_unix_ns; /* of ty_undo_end */
    uint64_t entries;
    uint64_t bytes; /* recorded */
    bool undone;    /* to be redone; else to be undone */
} ty_undo_step;
/* Calls back for each transaction, from the one that would be redone last to the one that would be undone last (so: a
 * menu from bottom to top), until the callback returns false. The label is valid during the callback. Of a heap that is
 * open for reading only, of the buffers that it holds (of volatile ones, nothing is told): TY_E_NOT_FOUND if there are
 * none. */
typedef bool ty_undo_step_callback(const ty_undo_step *step, void *context);
TY_API ty_status ty_undo_history(ty_heap *heap, ty_undo_step_callback *callback, void *context);

typedef struct ty_undo_stats {
    size_t struct_size;  /* sizeof(ty_undo_stats), set by the caller */
    uint64_t undoable;   /* transactions */
    uint64_t redoable;   /* transactions */
    uint64_t undo_bytes; /* recorded bytes in the undo buffer */
    uint64_t undo_size;  /* that it can hold */
    uint64_t redo_bytes; /* the same for redo */
    uint64_t redo_size;
    uint64_t undo_entries;
    uint64_t redo_entries;
    uint64_t size_entries; /* that each can hold */
    uint64_t kept_blocks;
    uint64_t kept_bytes;
    uint64_t forgotten; /* transactions, since the attach, to make room for others */
    bool reattached;    /* the buffers were in the heap already */
    bool lost_volatile; /* they were volatile, of a session that did not end in order: blocks it held were freed */
    bool open;          /* a transaction is open */
    bool full;          /* and does not fit */
    bool cycle;         /* between ty_undo and ty_undo_exit */
    bool off;           /* by a full fixed buffer */
} ty_undo_stats;
/* Writes *stats; of a heap that is open for reading only, as ty_undo_history. O(1); of one that is open for reading
 * only, O(entries). Errors: TY_E_ARGUMENT (not attached); of a heap that is open for reading only TY_E_NOT_FOUND, and
 * TY_E_DAMAGED (what the buffers hold makes no sense). */
TY_API TY_CHECKED ty_status ty_get_undo_stats(ty_heap *heap, ty_undo_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
