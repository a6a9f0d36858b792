/* Taiyen: a heap as the malloc of unmodified code.
 *
 * Purpose: put the data structures of a library that knows nothing of Taiyen into a heap. While a thread is in a scope,
 * malloc, new and the rest of their family allocate from the scope's heap. A heap in files makes the structures
 * durable.
 *
 * Needs: the drop-in malloc (libtaiyen-malloc), linked or preloaded. It handles each call of the family.
 *
 * Vocabulary: a *scope* is the part of a thread's execution between ty_enter and ty_leave. Scopes nest, and belong to
 * one thread: threads that it starts are in no scope.
 *
 * Guarantees:
 *   A block is freed and resized in its own heap: by any thread, in any scope or none. A block of a closed heap is no
 *   longer a block: freeing it ends the process with a message, as every invalid free does under the drop-in.
 *   What Taiyen allocates for itself lies in the process's heap; so does what libc and the C++ run-time library
 *   allocate for themselves, as far as the caller's address shows it (docs/design/malloc.md, "Scopes"). So link the C++
 *   run-time library dynamically. If it is part of the program or of a plug-in (-static-libstdc++), its exceptions,
 *   locales and stream buffers lie in the scope's heap: an exception that leaves a transaction is rolled back with it,
 *   and a stream that is used after the heap was closed crashes. In a statically linked program, libc's blocks lie
 *   there, too.
 *   After a crash: what the heap's kind guarantees (persist.h, txn.h).
 *
 * Transactional heaps: a scope is within a transaction of its thread, with write-fault tracking (TY_STORES_TRACKED).
 * Allocations are part of the transaction; after its end, allocations in the scope fail. A block may only be freed in a
 * transaction: freeing it outside of one ends the process with a message. So start no std::thread in such a scope: the
 * new thread frees a block that std::thread allocated, and has no transaction. Within ty_enter(NULL) it can be started.
 *
 * Variables of a library: if a library's first use is in a scope, what it allocates then and keeps in a variable (a
 * registry, a cache, a scratch buffer), or in an object created outside, lies in the heap, too. A close removes it, and
 * so would a rollback. So use each library once outside of any scope, in each process, before its first use in one
 * (docs/how-to/libraries.md). If that was forgotten, a rollback keeps those of the transaction's
 * blocks that variables and the process's own blocks point to, and reports them, as a close does: ty_on_dangling.
 *
 * Cost: nothing for threads that are in no scope. In a scope, an allocation costs a ty_alloc and some nanoseconds;
 * likewise, anywhere, the free of a block of another heap than the process's. If the C++ run-time library allocates on
 * behalf of a caller that only the call stack shows (new(std::nothrow), strings of libstdc++'s older ABI), an
 * allocation costs some microseconds more. A rollback of a transaction in whose scopes blocks were allocated and not
 * freed again, and the close of a heap that was entered, read the process's variables once: 0.5 ms, and up to 1 ms more
 * for each MB of large static arrays. Such a rollback also reads the process's own blocks, while allocations and frees
 * of other threads wait: 5 ms of processor time for 10 MB of them, 0.2 s for 1 GB, and not more than that. The first
 * report of a word costs up to 12 such passes to name the variable, over at most 256 MB.
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

#define TY_SCOPES_MAX 16u /* deepest nesting in a thread */

/* Enters a scope: until ty_leave, malloc and its family allocate from the heap, for the calling thread. NULL: from the
 * process's heap again, for blocks that must not lie in the heap of the enclosing scope. Leave before the thread ends,
 * and before the heap is closed: in a scope of a closed heap allocations fail. Errors: TY_E_UNSUPPORTED (the process
 * has no drop-in of this version; a concurrent heap, whose stores need calls; a transaction whose stores are declared),
 * TY_E_ARGUMENT (not an open heap; a transactional one on which the thread has no transaction), TY_E_PERMISSION
 * (read-only), TY_E_FORKED, TY_E_MEMORY (TY_SCOPES_MAX; or as ty_set_stores). After a failure the thread's scope is
 * unchanged. Thread-safe. */
TY_API TY_CHECKED ty_status ty_enter(ty_heap *heap);

/* Leaves the scope that the calling thread entered last; the enclosing one is in effect again. Errors: TY_E_ARGUMENT
 * (the thread is in no scope). Thread-safe. */
TY_API ty_status ty_leave(void);

/* ---- Unreachable blocks. */

/* Switches the recording of allocation sites on or off, for ty_each_unreachable: for allocations in scopes, in all
 * threads and heaps of the process. It costs some microseconds for each allocation, and 16 bytes for each block.
 * Initially off; what was recorded stays. Errors: TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_note_sites(bool on);

/* Calls back for each site that has blocks which are unreachable from the heap's roots, by descending bytes, until the
 * callback returns false: blocks that a library has allocated in a scope and points to only from outside of the heap,
 * such as from a static variable, and leaks. The next run of the program cannot find them. The scan is conservative: a
 * word in a block, at a multiple of 8, points to the block that contains the address; so does a number that looks like
 * one. Encoded addresses (tagged, as differences) are not seen. Blocks that were not allocated in a scope of this
 * process while ty_note_sites was on are reported together, without frames; a block that ty_free freed and another call
 * than malloc reused may have its old site. The library's own blocks are not reported. Any kind of heap but volatile
 * (TY_E_ARGUMENT). Further errors: TY_E_DAMAGED, TY_E_MEMORY. Externally serialised against changes of the heap. O(live
 * bytes), and 17 bytes of memory for each block. */
TY_API TY_CHECKED ty_status ty_each_unreachable(ty_heap *heap, ty_site_callback *callback, void *context);

/* ---- Dangling variables: they point to blocks that are gone. */

typedef enum ty_dangling_reason {
    TY_DANGLING_ROLLBACK = 1, /* the block was allocated in a scope of a transaction that was rolled back */
    TY_DANGLING_CLOSE = 2     /* its heap was closed, discarded or destroyed */
} ty_dangling_reason;

/* A dangling word: a word of a variable, or of one of the process's own blocks that a variable points to, which points
 * to a block that is gone, at its first byte or a later one. */
typedef struct ty_dangling {
    size_t struct_size; /* sizeof(ty_dangling) of the library */
    ty_dangling_reason reason;
    bool thread_local_data; /* the variable is thread-local; without an object: thread-specific data */
    bool kept;              /* the block was kept: see below */
    bool indirect;          /* the word lies in a block of the process's own malloc, which the variable points to */
    const char *heap_path;  /* "" for a volatile heap. Texts are valid during the callback */
    const char *object;     /* path of the program or shared object that has the variable; "": no variable was found */
    const char *variable;   /* its symbol name; "" if the object's file has none there (it was stripped) */
    uint64_t offset;        /* in the variable; without a name, in the object or its thread-local data */
    const void *address;    /* of the word */
    const void *value;      /* what it holds */
    const void *block;
    size_t block_bytes;
    const char *text; /* all of this, as one line for people to read */
} ty_dangling;

/* Sets the callback for dangling variables, for all heaps of the process; NULL, the default: one line each on standard
 * error. Called in the thread that rolls back or closes, after that is done; it may use any heap that is open, and must
 * not throw.
 *
 * Scanned, at multiples of 8, are the variables of the program and of all loaded objects, static and thread-local (of
 * the calling thread; on x86-64 with glibc of all threads that have allocated, and what pthread_setspecific was given):
 * up to 8 MiB of each object, in debug builds all. Also the live blocks of the process's own malloc, which is the
 * drop-in's: up to 1 GiB of them (TY_DANGLING_MALLOC_BYTES_MAX), those at the lowest addresses, in debug builds all.
 * Not seen is a pointer that is only on a stack, in memory that a library maps itself (its own arenas), in another
 * heap, or in what dlmopen has loaded.
 *
 * At a rollback it reports words that point to blocks that scopes of the transaction had allocated. These blocks, and
 * those that they point to, are *kept*: they are not freed, and hold what the library wrote there, so that it can
 * continue to use them, in scopes or outside; it may free and resize them (free, realloc) without a transaction. They
 * are not part of the heap's content: like reserved blocks (ty_reserve) they are gone at the next open, belong to no
 * transaction, and are counted in ty_txn_stats.reserved_blocks. If memory is too short to keep a block, it is freed,
 * and reported as not kept. When more than 16 MiB are kept (TY_KEPT_BYTES_MAX), a later rollback frees those that
 * nothing points to any more. So that a variable never points to a block that a rollback has shrunk, realloc in a scope
 * moves a block from before the transaction instead of growing it in place. Each word is reported once until its heap
 * is closed, and of a named variable one word at a time.
 *
 * At the close of a heap that a scope of this process has entered it reports variables that point to any of its live
 * blocks, up to 16; words in the process's own blocks only if a callback is set, and in debug builds, as a program's
 * own objects often point to a closed heap. Nothing can be kept: a program that uses such a variable crashes or, if the
 * heap is open again by then, writes to other blocks. A variable that the program sets again after each open is
 * harmless. Thread-safe. */
typedef void ty_dangling_callback(const ty_dangling *found, void *context);
TY_API void ty_on_dangling(ty_dangling_callback *callback, void *context);

#define TY_KEPT_BYTES_MAX ((size_t)16 << 20)
#define TY_DANGLING_MALLOC_BYTES_MAX ((size_t)1 << 30)

#ifdef __cplusplus
}
#endif
#endif
