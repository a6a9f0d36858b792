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
 * (TY_STORES_TRACKED). Allocations are the transaction's; after its end those of the scope fail. A block is freed in
 * a transaction only: to free it outside of one ends the process with a text. So start no std::thread there: the new
 * thread frees a block that std::thread made, and has no transaction. Within ty_enter(NULL) it can be started.
 *
 * Variables of a library: what a library makes at its first use and keeps in a variable (a registry, a cache, a scratch
 * buffer), or in an object that was made outside, lies in the heap, too, if that use is in a scope. A close takes it
 * away, and so would a rollback. So use each library once outside of any scope, in each process, before its first use
 * in one (docs/how-to.md, "Put a library into a heap"). Where that was forgotten, a rollback keeps those of the
 * transaction's blocks that variables and the process's own blocks lead to, and reports them, as a close does:
 * ty_on_dangling.
 *
 * Cost: nothing for threads that are in no scope. Within one, an allocation is a call of ty_alloc and some nanoseconds
 * more; a free of a block that lies in another heap than the process's likewise, anywhere. Where the C++ run-time
 * library allocates, and only who called it tells for whom (new(std::nothrow), strings of libstdc++'s older kind), an
 * allocation costs some microseconds more. A rollback of a transaction in whose scopes blocks were allocated and not
 * freed again, and the end of a heap that was entered, read the process's variables once: 0.5 ms, and up to 1 ms more
 * for each MB of large static arrays. Such a rollback also reads the process's own blocks, while allocations and frees
 * of other threads wait: 5 ms of processor time where these are 10 MB, 0.2 s for 1 GB, and not more than that. What it
 * reports for the first time costs up to 12 such looks, which name the variable, at 256 MB at the most.
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

/* Whether allocations in scopes note from now on where they are made, for ty_each_unreachable: of all threads and heaps
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
TY_API TY_CHECKED ty_status ty_each_unreachable(ty_heap *heap, ty_site_callback *callback, void *context);

/* ---- Variables that lead to blocks that are gone. */

typedef enum ty_dangling_reason {
    TY_DANGLING_ROLLBACK = 1, /* the block was allocated in a scope of a transaction that was rolled back */
    TY_DANGLING_CLOSE = 2     /* its heap was closed, discarded or destroyed */
} ty_dangling_reason;

/* A word of a variable, or of one of the process's own blocks that a variable leads to, which leads to a block that is
 * gone: into its first byte or a later one. */
typedef struct ty_dangling {
    size_t struct_size; /* sizeof(ty_dangling) of the library */
    ty_dangling_reason reason;
    bool thread_local_data; /* the variable is a thread's own; without an object: thread-specific data */
    bool kept;              /* the block was kept: see below */
    bool indirect;          /* the word lies in a block of the process's own malloc, and the variable leads to that */
    const char *heap_path;  /* "" of a volatile heap. Texts are valid during the callback */
    const char *object;     /* path of the program or shared object that has the variable; "": no variable was found */
    const char *variable;   /* as the linker names it; "" where the object's file has no name there (it was stripped) */
    uint64_t offset;        /* in the variable; without a name in the object, or its thread-local data */
    const void *address;    /* of the word */
    const void *value;      /* what it holds */
    const void *block;
    size_t block_bytes;
    const char *text; /* all of this as one line for a person */
} ty_dangling;

/* Sets what is called for such variables, in all heaps of the process; NULL: a line each on standard error, as at
 * first. Called by the thread that rolls back or closes, when that is done; it may use any heap that is open, and may
 * not throw.
 *
 * What is looked at, at multiples of 8: the variables of the program and of all that is loaded, static and thread-local
 * (of the calling thread; on x86-64 with glibc of all threads that have allocated, also what pthread_setspecific was
 * given); of each object up to 8 MiB of these, in debug builds all. And the live blocks of the process's own malloc,
 * which is the drop-in's: up to 1 GiB of them (TY_DANGLING_OWN_BYTES_MAX), those at the lowest addresses, in debug
 * builds all. Not seen is a pointer that lies alone on a stack, in memory that a library maps itself (its own arenas),
 * in another heap, or in what dlmopen has loaded.
 *
 * At a rollback: words that lead to blocks that scopes of the transaction had allocated. These blocks, and those
 * that they lead to, are *kept*: they are not freed, and hold what the library wrote there, so that it can go on using
 * them, in scopes or outside; it may free and resize them (free, realloc) with no transaction. They are no part of the
 * heap's content: like reserved blocks (ty_reserve) they are gone at the next open, no transaction has them, and
 * ty_txn_stats.reserved_blocks counts them. Where no memory was left to keep a block, it is freed, and reported as not
 * kept. More than 16 MiB of them (TY_KEPT_BYTES_MAX) are let go at a later rollback as far as nothing leads to them any
 * more. So that a variable never leads to what a rollback has made smaller, realloc in a scope moves a block of
 * before the transaction where it would have to grow in place. Each word is reported once until its heap is closed, and
 * of a variable with a name one word at a time.
 *
 * At the end of a heap that was entered by a scope in this process: variables that lead to any of its live blocks, up
 * to 16; of the process's own blocks only where a callback is set, and in debug builds, as a program's own objects
 * often lead to a heap that is closed. Nothing can be kept: who uses such a variable ends in a crash, or, if the heap
 * is open again by then, writes to others' blocks. A variable of the program's own that is set anew after each open
 * does no harm. Thread-safe. */
typedef void ty_dangling_callback(const ty_dangling *found, void *context);
TY_API void ty_on_dangling(ty_dangling_callback *callback, void *context);

#define TY_KEPT_BYTES_MAX ((size_t)16 << 20)
#define TY_DANGLING_OWN_BYTES_MAX ((size_t)1 << 30)

#ifdef __cplusplus
}
#endif
#endif
