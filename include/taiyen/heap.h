/* Taiyen: heaps and blocks.
 *
 * Purpose: allocate, resize and free blocks in a heap of any kind; inspect and verify a heap.
 *
 * Vocabulary: a *heap* is one contiguous range of reserved address space. A *block* is what an allocation returns.
 * Small blocks lie in *spans* of one *size class*; a larger block is an *extent* of whole *pages* (4,096 bytes).
 * The *limit* of a heap is the size of its reserved range: it costs address space, not memory.
 *
 * Guarantees: a block belongs to its heap by its address alone, so free and resize take no heap argument. The heap's
 * control data is kept apart from the blocks: a write past a block's end cannot corrupt it. All functions below are
 * thread-safe unless their comment says otherwise. In persistent heaps, what they change is durable with the next
 * snapshot.
 *
 * Cost: allocating and freeing a small block takes a few nanoseconds and no lock in the steady state; extents of pages
 * take O(log n) in the number of free extents, under one lock for each heap.
 */
#ifndef TAIYEN_HEAP_H
#define TAIYEN_HEAP_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which built-in table of size classes a heap uses. */
typedef enum ty_class_table {
    TY_CLASSES_CACHE_LINE = 0, /* no block touches more cache lines than it must; pages for blocks from a page up */
    TY_CLASSES_DENSE = 1       /* dense: smallest internal fragmentation, 8-byte steps for small sizes */
} ty_class_table;

typedef struct ty_heap_options {
    size_t struct_size; /* sizeof(ty_heap_options), set by the _INIT macro */
    size_t limit_bytes; /* reserved address space; 0: 64 GiB, or less where the system cannot provide that. Rounded up
                           to 64 MiB */
    void *base;         /* the base address (a multiple of 64 MiB); NULL: the library chooses one */
    ty_class_table classes;
    uint64_t numa_nodes; /* the heap's memory comes from these nodes alone, bit n for node n; 0: from where the system
                            takes it, mostly the node of the thread that first touches a page */
    bool concurrent;     /* many threads use it at once, by ty_atomically (concurrent.h) */
} ty_heap_options;
#define TY_HEAP_OPTIONS_INIT                                                                                           \
    { sizeof(ty_heap_options), 0, NULL, TY_CLASSES_CACHE_LINE, 0, false }

/* Creates a volatile heap: ordinary memory, no files. options may be NULL (all defaults).
 * Errors: TY_E_ARGUMENT, TY_E_ADDRESS (base given and taken: the text says by what), TY_E_MEMORY, TY_E_UNSUPPORTED (the
 * system refuses to bind memory to nodes). Thread-safe. */
TY_API TY_CHECKED ty_status ty_heap_create(const ty_heap_options *options, ty_heap **heap);

/* Destroys a volatile heap and all its blocks; NULL does nothing. Errors: TY_E_ARGUMENT (a persistent heap: use
 * ty_close or ty_discard); the heap is then unchanged. Externally serialised: no thread may use the heap or its blocks
 * any more; do not pass the handle a second time. */
TY_API ty_status ty_heap_destroy(ty_heap *heap);

/* The NUMA nodes that the heap's memory is bound to, as the system reports them: bit n for node n; 0: not bound.
 * Errors: TY_E_UNSUPPORTED (the system does not say). Thread-safe. */
TY_API TY_CHECKED ty_status ty_heap_get_nodes(ty_heap *heap, uint64_t *nodes);

/* The volatile heap of the NUMA node that the calling thread runs on: one for each node in a process, created by the
 * first call. It lives until the process ends or until it is destroyed; the next call then creates another. A thread
 * that moves to another node gets that node's heap in its next call; any thread may free the blocks. On a machine with
 * one node it is a heap like any other. Errors: as ty_heap_create. Thread-safe. */
TY_API TY_CHECKED ty_status ty_node_heap(ty_heap **heap);

/* Allocates a block of at least size bytes, aligned for any object of that size (to 16 bytes if size is a multiple of
 * 16, including 0, else to 8; larger blocks are not guaranteed more); its content is indeterminate.
 * A size of 0 returns a distinct block with room for a few bytes. Returns NULL and sets the error detail on failure:
 * TY_E_MEMORY (limit reached), TY_E_SPACE (an archive heap's disk is full), TY_E_ARGUMENT. */
TY_API void *ty_alloc(ty_heap *heap, size_t size);

/* The same, with all bytes zero. */
TY_API void *ty_alloc_zeroed(ty_heap *heap, size_t size);

/* The same as ty_alloc, aligned to alignment bytes: a power of two up to the heap's limit; 0: as ty_alloc does. */
TY_API void *ty_alloc_aligned(ty_heap *heap, size_t size, size_t alignment);

/* Allocates the block at exactly this address, of at least size bytes, as if ty_alloc had returned it. Allocations may
 * be replayed in any order and give the same blocks. Errors: TY_E_ARGUMENT (outside the heap, or no block of that size
 * can start there), TY_E_EXISTS (some of it is in use), TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_alloc_at(ty_heap *heap, void *address, size_t size);

/* Resizes the block to at least size bytes, in place where possible; else moves it. A block that shrinks may move, too,
 * into a hole that it fits. Content is kept up to the smaller size. In a volatile heap, huge pages of long blocks move
 * without a copy: O(size / 2 MiB). Returns the block's address (the old one is then invalid if it differs), or NULL
 * with the error detail set and the old block untouched: TY_E_MEMORY, TY_E_SPACE, TY_E_ARGUMENT (not a live block). The
 * alignment that ty_alloc_aligned gave is kept only while the block stays in place. */
TY_API void *ty_resize(void *block, size_t size);

/* Resizes in place or not at all. Errors: TY_E_MEMORY (no room after the block), TY_E_ARGUMENT. */
TY_API TY_CHECKED ty_status ty_resize_in_place(void *block, size_t size);

/* Frees a block; NULL does nothing. A pointer that is not the start of a live block of a heap (freed already, foreign,
 * interior) is refused with TY_E_ARGUMENT, and nothing changes; the error detail says what the pointer is. */
TY_API ty_status ty_free(void *block);

/* The usable size of the block: at least the size that was requested. 0, with the error detail set, if block is not a
 * live block. */
TY_API size_t ty_usable_size(const void *block);

/* The heap whose range contains the address, or NULL. O(1). */
TY_API ty_heap *ty_heap_of(const void *address);

/* The heap's lowest address. A persistent heap's never changes. NULL, with the error detail set, for NULL. O(1). */
TY_API void *ty_heap_base(ty_heap *heap);

/* The size-class table that the heap was created with; TY_CLASSES_CACHE_LINE, with the error detail set, for NULL.
 * O(1).
 */
TY_API ty_class_table ty_heap_class_table(ty_heap *heap);

typedef struct ty_block {
    void *address;
    size_t size_bytes; /* usable size */
} ty_block;

/* The live block that contains the address. Errors: TY_E_NOT_FOUND (the address is in no live block). */
TY_API TY_CHECKED ty_status ty_block_of(const void *address, ty_block *block);

/* What an extent of a heap is used for. */
typedef enum ty_extent_kind {
    TY_EXTENT_FREE = 0,   /* free pages */
    TY_EXTENT_SPAN = 1,   /* a span of small blocks of one class */
    TY_EXTENT_BLOCK = 2,  /* one block of whole pages */
    TY_EXTENT_CONTROL = 3 /* the heap's own header and tables */
} ty_extent_kind;

typedef struct ty_extent {
    ty_extent_kind kind;
    void *address;
    size_t size_bytes;
    size_t block_size_bytes; /* TY_EXTENT_SPAN: the class's block size; TY_EXTENT_BLOCK: size_bytes */
    size_t block_count;      /* blocks that fit (1 for a block of whole pages, 0 for free and control) */
    size_t live_count;       /* blocks that are allocated */
    const uint64_t *live;    /* TY_EXTENT_SPAN: bit n % 64 of word n / 64 says that block n, at address + n *
                                block_size_bytes, is live; later bits of the last word are clear. Valid during the
                                callback. NULL for other kinds */
} ty_extent;

/* Call back for each live block, or for each extent, in order of address, until the callback returns false or the end
 * is reached. Other threads' allocations on this heap wait meanwhile: the callback must not allocate or free on this
 * heap. It may inspect this heap, and use other heaps; but it deadlocks if it allocates on a heap that another thread
 * is walking while that thread's callback allocates on this one. Cancellation (pthread_cancel) is deferred until the
 * call is over. The callback may fork, and may wait for other threads, also new ones, that do not allocate on this
 * heap. It must not end its thread or leave by longjmp; a C++ exception that it throws ends the walk and leaves this
 * call with nothing left locked. The same holds for every callback that is passed to a call. The part of the heap that
 * was never used is one last free extent.
 * The walk includes blocks that the library itself has in the heap: those of undo, and the list kept for ty_reserve and
 * concurrent heaps, which a close removes if nothing is reserved; ty_each_internal_block lists them. O(extents +
 * blocks). */
typedef bool ty_block_callback(const ty_block *block, void *context);
typedef bool ty_extent_callback(const ty_extent *extent, void *context);
TY_API ty_status ty_each_block(ty_heap *heap, ty_block_callback *callback, void *context);
TY_API ty_status ty_each_extent(ty_heap *heap, ty_extent_callback *callback, void *context);

/* Calls back for each live block that belongs to the library and not to the program: the buffers of undo, and the
 * blocks that the program has freed and that are kept for undo, whether undo is attached or not; the list of reserved
 * blocks, and the blocks that it names: those that are reserved, or freed by a transaction and not released yet. Each
 * block once, in order of address, until the callback returns false. The callback may inspect the heap; nothing is
 * locked meanwhile. Works on a read-only heap, too, and changes nothing. Errors: TY_E_DAMAGED (undo's buffers or the
 * list are inconsistent), TY_E_MEMORY, TY_E_UNSUPPORTED (a checked heap). Externally serialised against ty_reserve,
 * ty_publish, transactions that free blocks, and undo's calls. O(blocks and entries of undo). */
TY_API ty_status ty_each_internal_block(ty_heap *heap, ty_block_callback *callback, void *context);

/* Allocates the live blocks that the extents describe, as if by ty_alloc_at for each: for a TY_EXTENT_SPAN (address,
 * block_size_bytes, live and live_count), the blocks whose bits are set in live; for a TY_EXTENT_BLOCK (address and
 * size_bytes), one block of whole pages. size_bytes or block_count of a span may be 0, else it must be that of this
 * heap's spans of that class. Other kinds are skipped. Nothing there may be in use. The content of the blocks is
 * indeterminate, but zeros in pages that the heap never used. The caller is expected to write it: where the blocks
 * nearly fill huge pages, a volatile heap asks the system for huge pages. The extents are processed in order; *made
 * (may be NULL) is how many were made or skipped: after a failure the extents before the failed one stay, and nothing
 * of that one does. Other threads' allocations on the heap wait meanwhile. O(extents). Errors: TY_E_ARGUMENT (no such
 * extent can be there, in this heap with its class table), TY_E_EXISTS (some of it is in use), TY_E_MEMORY,
 * TY_E_UNSUPPORTED (a transactional, concurrent or checked heap), TY_E_PERMISSION (read-only). Thread-safe. */
TY_API TY_CHECKED ty_status ty_make_extents(ty_heap *heap, const ty_extent *extents, size_t count, size_t *made);

/* Checks every structure of the heap top-down: header, roots (also a root that points to no live block, because its
 * block was freed), extents, bitmaps, the tree of free pages. Calls back with a text for each problem that says what is
 * wrong and where (callback may be NULL). TY_OK: sound; TY_E_DAMAGED: not. Allocations on the heap wait meanwhile: the
 * callback is restricted as that of ty_each_block. O(touched pages + free extents). */
typedef void ty_problem_callback(const char *problem, void *context);
TY_API TY_CHECKED ty_status ty_heap_verify(ty_heap *heap, ty_problem_callback *callback, void *context);

typedef struct ty_heap_stats {
    size_t struct_size; /* sizeof(ty_heap_stats), set by the caller */
    void *base;
    size_t limit_bytes;   /* reserved address space */
    size_t touched_bytes; /* from base to the end of the highest extent ever used */
    size_t live_blocks;
    size_t live_bytes;     /* usable bytes of live blocks */
    size_t control_bytes;  /* header and the touched part of the tables */
    size_t resident_bytes; /* of the range, as the kernel counts it; 0: not known (without /proc) */
    size_t free_extents;
    size_t free_bytes;         /* free within touched_bytes: free extents and free blocks of spans */
    size_t largest_free_bytes; /* largest block that could be allocated now */
    double availability;       /* how much of the free space of the touched part can actually be used, 0 to 1: for
                                  log-spaced sizes s from 16 B to the free total O, the mean of (sum over free blocks F
                                  of floor(F/s)*s) / O; 1 when nothing is free */
    double page_efficiency;    /* live_bytes / resident_bytes, 0 to 1; 1 when nothing is resident or resident_bytes is
                                  not known */
    size_t used_bytes;         /* of pages that contain blocks: what ty_heap_set_limits bounds */
} ty_heap_stats;

/* Exact counts; other threads' allocations wait meanwhile. O(touched pages). */
TY_API TY_CHECKED ty_status ty_heap_get_stats(ty_heap *heap, ty_heap_stats *stats);

/* Statistics of one size class, or (block_bytes 0) of the blocks of whole pages. */
typedef struct ty_class_stats {
    size_t struct_size; /* sizeof(ty_class_stats) of the library */
    size_t block_bytes;
    size_t spans;       /* or blocks of whole pages */
    size_t span_bytes;  /* their pages */
    size_t block_count; /* that fit */
    size_t live_blocks;
    size_t live_bytes; /* usable bytes of live blocks */
} ty_class_stats;

/* Calls back for each size class that has spans, in rising order, and for the blocks of whole pages, last, until the
 * callback returns false. Exact counts of one moment; other threads' allocations wait while blocks are counted, not
 * during the callbacks. Errors: TY_E_MEMORY, TY_E_DAMAGED. Thread-safe. O(touched pages). */
typedef bool ty_class_callback(const ty_class_stats *stats, void *context);
TY_API TY_CHECKED ty_status ty_each_class(ty_heap *heap, ty_class_callback *callback, void *context);

/* A size class of a heap, whether it is in use or not. */
typedef struct ty_size_class {
    size_t block_bytes;
    size_t span_bytes; /* a power of two, up to 64 KiB; spans start at multiples of it from the heap's base */
} ty_size_class;

/* Writes the first `room` size classes of the heap, in rising order, and to *count the number of all (at most 128).
 * Larger blocks are extents of pages. Errors: TY_E_ARGUMENT. Thread-safe. */
TY_API TY_CHECKED ty_status ty_heap_size_classes(ty_heap *heap, ty_size_class *classes, size_t room, size_t *count);

/* What a thread caches of a heap for its own allocations. */
typedef struct ty_thread_stats {
    size_t struct_size; /* sizeof(ty_thread_stats) of the library */
    uint64_t thread;    /* as gettid gives it */
    size_t spans;       /* that it owns: other threads don't allocate from them */
    size_t span_bytes;
    size_t free_bytes; /* of free blocks in them */
} ty_thread_stats;

/* Calls back for each thread that has used the heap and has not ended, in no order. As ty_each_class. */
typedef bool ty_thread_callback(const ty_thread_stats *stats, void *context);
TY_API TY_CHECKED ty_status ty_each_thread(ty_heap *heap, ty_thread_callback *callback, void *context);

/* Limits of a volatile heap below its limit_bytes, in bytes of the pages that contain blocks: those of spans, whole
 * even where they are partly free, and those of blocks of whole pages. */
typedef void ty_limit_callback(ty_heap *heap, size_t used_bytes, void *context);
typedef struct ty_heap_limits {
    size_t struct_size;         /* sizeof(ty_heap_limits), set by the _INIT macro */
    size_t soft_bytes;          /* 0: none */
    size_t hard_bytes;          /* an allocation that would go beyond fails with TY_E_MEMORY; 0: none */
    ty_limit_callback *reached; /* called when the soft limit is exceeded, after the allocation that exceeds it, in that
                                   thread and with no lock held; again only after usage has dropped below the limit. It
                                   may allocate and free. NULL: no call */
    void *context;
} ty_heap_limits;
#define TY_HEAP_LIMITS_INIT                                                                                            \
    { sizeof(ty_heap_limits), 0, 0, NULL, NULL }

/* Sets both limits; blocks already allocated stay, also beyond them. ty_alloc_at counts but is never refused.
 * Errors: TY_E_ARGUMENT, TY_E_UNSUPPORTED (a persistent heap). Thread-safe. */
TY_API TY_CHECKED ty_status ty_heap_set_limits(ty_heap *heap, const ty_heap_limits *limits);

/* Returns the memory of free pages to the system now. In snapshot heaps it also evicts private copies of pages that the
 * image holds unchanged (but not of pages first used since the heap was opened); no other thread may write to the heap
 * meanwhile. *released_bytes (may be NULL) is the number of bytes released. */
TY_API ty_status ty_heap_purge(ty_heap *heap, size_t *released_bytes);

#ifdef __cplusplus
}
#endif
#endif
