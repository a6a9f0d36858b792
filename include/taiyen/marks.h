/* Taiyen: going back.
 *
 * Purpose: return a heap, in place, to a state that it had: a time step that failed, a search that backtracks, a game
 * that rolls back frames, an edit that is only tried. Nothing is declared or recorded: the heap finds the pages that
 * changed.
 *
 * Vocabulary: a *mark* is a state of the heap with a name, to which ty_return_to goes, forwards and backwards, any
 * number of times, until ty_drop_mark. Marks form a tree: the mark that was made or returned to last is the *current*
 * one, and the next mark is its child. ty_revert goes to the last snapshot; it needs no mark.
 *
 * Pointers: a return changes the content of blocks, and which blocks there are. A pointer that a program holds outside
 * the heap stays right if its block is live in the state that is returned to; otherwise it leads to free memory. So
 * find blocks again through roots, or hold pointers only to blocks that are older than the mark.
 *
 * Guarantees:
 *  - After a return the heap has the blocks, bytes, roots and undo history of the mark, at the same addresses. The
 *    handle stays valid. Undo is detached where its buffers are not those that were attached at the mark.
 *  - A call that fails changes nothing.
 *  - Marks take no part in snapshots: ty_snapshot saves the state that the heap has. They end with the process, and
 *    with the heap; but for *durable* ones (ty_mark_options), which the next open finds. Such a mark is whole or not
 *    there, whatever happens to the process and the power. On a snapshot heap it is a snapshot, too, and a return to it
 *    counts with the next one. Durable marks are a tree of their own, with a current one of their own. They lie in a
 *    file beside the image, `atlas.ty-marks`, which a copy of the files needs if it is to have them. Copies that the
 *    library makes (pack.h, TY_OPEN_COPY, salvage.h) have none.
 *  - On a transactional or concurrent heap a mark or return has the heap to itself, and waits for that. A return of a
 *    transactional heap is one transaction, and durable when it returns. A change feed does not have it: followers
 *    begin with a new base. Of a distributed transaction (distributed.h) the other heaps keep their parts; an outbox
 *    (outbox.h) goes back, and its receiver may be ahead then.
 *
 * Limits: no archive heaps, and none with checks. Where a snapshot heap records its code (code.h), a
 * return to a durable mark of an earlier open repoints words as an open does (TY_E_MISMATCH: it cannot); a
 * transactional one returns to these by `taiyen return` alone. The limit of a heap that has durable marks cannot be
 * raised. While one of these functions runs, no other thread may use the blocks of a heap without transactions, as
 * during ty_snapshot; allocations of other threads wait. A forked child has no marks: but for ty_branch, these
 * functions fail with TY_E_FORKED there on a heap that had marks.
 *
 * Cost: a mark copies the pages that changed since the current one, and a return those that differ: 1 to 4 us each. To
 * find them the kernel reads the page tables: 0.5 ms for each GiB in use. The first mark of a volatile heap copies all
 * that the heap uses. A copy takes 4 KiB of memory; pages of zeros take none. From the first mark or revert on the heap
 * keeps the memory of freed blocks for itself, until it ends. A durable mark writes the pages that changed since the
 * current durable mark to its file, and flushes it three times; a checkpoint copies there what it overwrites for the
 * first time. Copies of marks that are dropped give their room to others.
 */
#ifndef TAIYEN_MARKS_H
#define TAIYEN_MARKS_H

#include "base.h"
#include "heap.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TY_MARK_NAME_MAX 63u

/* The heap becomes as its last snapshot left it; everything since is gone, blocks, bytes and roots. For snapshot heaps.
 * No page is written to a file. Waits for a snapshot that was started. Marks stay.
 * Errors: TY_E_ARGUMENT, TY_E_UNSUPPORTED (another kind of heap, or one with checks), TY_E_PERMISSION (read-only),
 * TY_E_FORKED, TY_E_MEMORY, TY_E_IO, TY_E_DAMAGED (a page in the files); nothing has changed then. No other thread may
 * use the heap's blocks meanwhile. */
TY_API TY_CHECKED ty_status ty_revert(ty_heap *heap);

typedef struct ty_mark_options {
    size_t struct_size;   /* sizeof(ty_mark_options), set by the _INIT macro */
    bool durable;         /* of ty_mark: it is there in later opens, too. For heaps in files */
    bool no_wait;         /* TY_E_BUSY if a transaction is under way or readers are in the heap, as for ty_begin */
    uint64_t limit_bytes; /* of ty_mark, a durable one: TY_E_SPACE if more of the file of marks would be in use then; 0:
                             no limit but 16 TiB. What checkpoints copy there comes on top: at the most what the heap
                             had at the first mark */
} ty_mark_options;
#define TY_MARK_OPTIONS_INIT                                                                                           \
    { sizeof(ty_mark_options), false, false, 0 }

/* Marks the state that the heap has now. The name has 1 to TY_MARK_NAME_MAX bytes, none of them below 32.
 * options may be NULL. No other thread may use the blocks of a heap without transactions meanwhile.
 * Errors: TY_E_ARGUMENT (also: within a transaction of this thread on the heap, or within a body of ty_atomically on
 * any), TY_E_EXISTS (a mark has this name), TY_E_BUSY (no_wait; blocks are reserved), TY_E_UNSUPPORTED (the kind of
 * heap; checks; undo with volatile buffers), TY_E_PERMISSION, TY_E_FORKED, TY_E_MEMORY, TY_E_IO; a durable one also
 * TY_E_SPACE (the disk; limit_bytes: drop marks), TY_E_MISMATCH (the file of marks is another heap's), and as
 * ty_snapshot. Thread-safe on a heap with transactions, else externally serialised. Durability: a durable one is
 * durable when it returns. */
TY_API TY_CHECKED ty_status ty_mark(ty_heap *heap, const char *name, const ty_mark_options *options);

/* The heap becomes as it was at the mark. What changed since the current mark is gone, unless it is marked first.
 * options may be NULL. No other thread may use the blocks of a heap without transactions meanwhile.
 * Errors: as ty_mark and ty_revert, and TY_E_NOT_FOUND (no such mark); on a transactional heap also as ty_snapshot.
 * Threads: as ty_mark. Durability: on a transactional heap it is durable when it returns, else with the next
 * snapshot. */
TY_API TY_CHECKED ty_status ty_return_to(ty_heap *heap, const char *name, const ty_mark_options *options);

/* A branch: a new snapshot heap in files under this path, at the same address, with what the heap has now: blocks,
 * bytes, roots, undo history. Both go on by themselves; a process can have one of them open at a time. For snapshot and
 * transactional heaps, also those that are open read-only or at a mark (ty_open_options.mark); not for archive heaps,
 * volatile ones, or ones with checks. The branch of a transactional heap has no log: open it as TY_TRANSACTIONAL for
 * one. A heap that is open for reading and has a record of its code (TY_CODE_MAPPED) is branched where it is open with
 * TY_CODE_IGNORED.
 * In a forked child of a process that has a snapshot heap open for writing, it makes a heap of the child's copy: call
 * ty_discard then, open the branch, and go on with the same pointers. Call it before the parent closes the heap, and
 * soon: once the parent has checkpointed a snapshot that it took after the fork, it is refused (TY_E_BUSY).
 * Cost: a write of all that the heap uses; zeros take no room. Allocations of other threads wait meanwhile.
 * Errors: TY_E_ARGUMENT, TY_E_EXISTS (the path), TY_E_UNSUPPORTED, TY_E_BUSY, TY_E_FORKED (in a child, a transactional
 * heap), TY_E_MISMATCH (a file that may be needed has a name of the new ones), TY_E_SPACE, TY_E_IO, TY_E_MEMORY; there
 * is no new heap then. No other thread may use the blocks of a heap without transactions meanwhile. Durability: the
 * branch is durable when this returns. */
TY_API TY_CHECKED ty_status ty_branch(ty_heap *heap, const char *path);

/* Drops a mark; the heap stays as it is. Copies that no other mark needs are freed.
 * Errors: TY_E_ARGUMENT, TY_E_NOT_FOUND, TY_E_FORKED; of a durable one also TY_E_PERMISSION, TY_E_IO and TY_E_SPACE: it
 * is gone, but the next open may find it again. Thread-safe. */
TY_API ty_status ty_drop_mark(ty_heap *heap, const char *name);

typedef struct ty_mark_info {
    size_t struct_size;
    const char *name;
    const char
        *parent; /* the mark that was current when it was made, or what is left of that one's ancestors; NULL: none */
    uint64_t time_ns;       /* when it was made, since 1970 */
    uint64_t changed_pages; /* since its parent */
    uint64_t copied_bytes;  /* memory that these take; in the file, of a durable mark */
    bool current;
    bool durable;
} ty_mark_info;
/* False ends the list. The info is valid during the call. It must not call functions of marks.h. */
typedef bool ty_mark_callback(const ty_mark_info *info, void *context);

/* Calls back for each mark, in the order of names. Of a copy of files in use (TY_OPEN_COPY): for the durable ones that
 * the files have now.
 * Errors: TY_E_ARGUMENT, TY_E_FORKED; of a copy as ty_open. Thread-safe. */
TY_API ty_status ty_each_mark(ty_heap *heap, ty_mark_callback *callback, void *context);

#ifdef __cplusplus
}
#endif

#endif
