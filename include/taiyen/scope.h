/* Taiyen: a heap as the malloc of unmodified code.
 *
 * Purpose: put the structures of a library that knows nothing of Taiyen into a heap. While a thread is in a scope, what
 * it allocates by malloc, new and the rest of their family lies in the scope's heap. A heap in files makes it durable.
 *
 * Needs: the drop-in malloc (libtaiyen-malloc), linked or preloaded. It takes part in each call of the family.
 *
 * Vocabulary: a *scope* is what a thread does between ty_enter and ty_leave. Scopes nest, and are a thread's own:
 * threads that it starts are in none.
 *
 * Guarantees:
 *   A block is freed and resized in the heap that it lies in: by any thread, in any scope or none. A block of a heap
 *   that was closed is no block any more: to free it ends the process with a text, as every wrong free does under the
 *   drop-in.
 *   What the library allocates for itself lies in the process's heap; so does what libc and the C++ run-time library
 *   allocate for themselves, as far as the place that calls tells it (docs/design/malloc.md, "Scopes"). So link the
 *   C++ run-time library as a shared one. Where it is part of the program or of a plug-in (-static-libstdc++), its
 *   exceptions, locales and buffers of streams lie in the scope's heap: an exception that leaves a transaction goes
 *   with it, and a stream that is used after the heap was closed crashes. In a program that is linked statically as a
 *   whole, libc's blocks lie there, too.
 *   A crash: what the heap's kind promises (persist.h, txn.h).
 *
 * Transactional heaps: a scope is within a transaction of its thread, whose stores are found by themselves
 * (TY_STORES_AUTOMATIC). Allocations are the transaction's; after its end those of the scope fail. A block is freed in
 * a transaction only: to free it outside of one ends the process with a text. So start no std::thread there: the new
 * thread frees a block that std::thread made, and has no transaction. Within ty_enter(NULL) it can be started.
 *
 * Cost: nothing for threads that are in no scope. Within one, an allocation is a call of ty_alloc and some nanoseconds
 * more; a free of a block that lies in another heap than the process's likewise, anywhere. Where the C++ run-time
 * library allocates, and only who called it tells for whom (new(std::nothrow), strings of libstdc++'s older kind), an
 * allocation costs some microseconds more.
 */
#ifndef TAIYEN_SCOPE_H
#define TAIYEN_SCOPE_H

#include "base.h"
#include "checks.h"
#include "heap.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TY_SCOPES_MAX 16u /* so many deep in a thread */

/* From now on until ty_leave, malloc and its family are of the heap, for the calling thread. NULL: of the process's
 * heap again, for what is not to lie in the heap of the scope around. Leave before the thread ends, and before the heap
 * is closed: in a scope of a heap that is closed allocations fail. Errors: TY_E_UNSUPPORTED (no drop-in of this version
 * is in the process; a concurrent heap, whose stores have calls of their own; a transaction whose stores are declared),
 * TY_E_ARGUMENT (no open heap; a transactional one, and the thread has no transaction on it), TY_E_PERMISSION (open for
 * reading only), TY_E_FORKED, TY_E_MEMORY (TY_SCOPES_MAX; or as ty_set_stores). After a failure the thread is where it
 * was. Thread-safe. */
TY_API TY_CHECKED ty_status ty_enter(ty_heap *heap);

/* Ends the scope that the calling thread entered last; the one around it counts again. Errors: TY_E_ARGUMENT (it is in
 * none). Thread-safe. */
TY_API ty_status ty_leave(void);

/* ---- What of a heap is lost. */

/* Whether allocations in scopes note from now on where they are made, for ty_each_unreached: of all threads and heaps
 * of the process. It costs some microseconds an allocation, and 16 bytes a block. Off at first; what was noted stays.
 * Errors: TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_note_sites(bool on);

/* Calls back for each site whose blocks nothing leads to from a root of the heap, by bytes, the most first, until the
 * callback returns false: what a library has allocated in a scope and leads to from outside of the heap alone, such as
 * from a static variable, and what was forgotten. The next run of the program finds none of it. Words that lie in
 * blocks at multiples of 8 lead to the block whose first byte, or a later one, they are the address of; also numbers
 * that look like one. Addresses in another form (with bits in them, as differences) are not seen. Blocks that were not
 * allocated in a scope of this process while ty_note_sites was on come together, with no frames; so may have an old
 * site what ty_free frees and another call than malloc allocates anew. The library's own blocks are not told.
 * The heap has any kind but volatile (TY_E_ARGUMENT). Errors also: TY_E_DAMAGED, TY_E_MEMORY. Externally serialised
 * against changes of the heap. O(live bytes), and 17 bytes of memory a block. */
TY_API TY_CHECKED ty_status ty_each_unreached(ty_heap *heap, ty_site_callback *callback, void *context);

#ifdef __cplusplus
}
#endif
#endif
