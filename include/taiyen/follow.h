/* Taiyen: readers that follow a heap which another process writes to.
 *
 * TY_OPEN_FOLLOW opens a snapshot heap or a transactional heap for reading, in any number of processes, while at most
 * one has it open for writing. The heap has its own addresses, so pointers in it work.
 *
 * What it shows: one committed state, which does not change until ty_refresh. Of a snapshot heap that is a snapshot; of
 * a transactional one, concurrent or not, all transactions up to one, each whole. It is durable when it is shown. Roots
 * are looked up again after a refresh: blocks may have been freed.
 *
 * What it costs: pages that have not changed are the system's, shared by all processes. A page that has changed since
 * costs the follower 4 KiB, until the writer has checkpointed it and a refresh drops the copy. The writer pays nothing
 * while nobody follows.
 *
 * How it stays so: a follower tells the writer by a lock of the kernel which state it shows, and the writer leaves the
 * image as this state needs it, until the follower has copies of its own of what the writer is about to overwrite. A
 * thread of the library makes these, every 20 ms. So a follower keeps nobody waiting, however long it shows a state.
 *
 * Expired: a follower that does not answer (it is stopped, or has no thread: TY_BACKGROUND_CALLS) is waited for while
 * up to 64 MiB of snapshots wait in the journal, and then for one second. After that the writer overwrites what it
 * shows, and what it reads may be a mixture. ty_read_end and ty_refresh tell (TY_E_EXPIRED). So a program that can be
 * stopped reads in sections (ty_read_begin, ty_read_end), believes what it has read when ty_read_end returns TY_OK, and
 * follows no pointer for ever: until then a list may end nowhere.
 *
 * Other processes: followers need to be allowed to read the heap's files, and no more. They may be of other users, and
 * in containers with process numbers of their own. The writer may end, die and start again; a follower goes on with
 * what it opens. A forked child does not follow (TY_E_FORKED): open the heap in the child.
 *
 * Not followed (TY_E_UNSUPPORTED): archive heaps; heaps whose storage has no `hold`; mapped heaps (code.h), unless code
 * is ignored, since words of code lead to where the writer has it; heaps that a version of the library wrote to last
 * that did not heed followers. Undo and marks are the writer's: what followers see of them are the transactions and
 * snapshots that they make.
 */
#ifndef TAIYEN_FOLLOW_H
#define TAIYEN_FOLLOW_H

#include "persist.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Brings a follower to the newest state, and waits up to wait_ms for one if there is none (0: not at all). *changed
 * (may be NULL): whether it shows another one now. Waits for read sections of other threads to end; apart from
 * sections, no thread reads the heap meanwhile. Cost: of what has changed; it looks at the files every 2 ms while it
 * waits. TY_E_EXPIRED: what was read since the last refresh may be a mixture; the heap shows the newest state now.
 * Further errors: TY_E_ARGUMENT (not a follower; this thread has a read section or transaction open), TY_E_MISMATCH
 * (the heap was raised to another limit or made one of another kind, or its image was removed or replaced: close it and
 * open it again), TY_E_BUSY (its files change faster than they can be read: try again), TY_E_MEMORY, TY_E_IO,
 * TY_E_DAMAGED, TY_E_FORKED. After an error the heap shows what it did before; if it could not go on showing that,
 * ty_read_end and the next refresh return TY_E_EXPIRED. Thread-safe. */
TY_API TY_CHECKED ty_status ty_refresh(ty_heap *heap, uint32_t wait_ms, bool *changed);
/* Whether ty_refresh would have nothing to do for a shared heap (ty_open_options.shared); it costs two reads of memory.
 * False of other heaps. Thread-safe. */
TY_API bool ty_shows_newest(ty_heap *heap);

#ifdef __cplusplus
}
#endif
#endif
