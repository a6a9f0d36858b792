/* Taiyen: memory checks on a volatile heap: bounds, freed blocks, leaks, sampling.
 *
 * Purpose: detect writes outside a block's bounds, frees of pointers that are no block, uses of freed blocks, and
 * leaks, and report the block, its size and where it was allocated and freed. Started on a heap by
 * ty_heap_start_checks.
 *
 * Vocabulary: a *site* is the call stack of an allocation or a free, and the thread. The *quarantine* delays the reuse
 * of freed blocks, so that uses after free are detected. A *finding* is one error that was detected.
 *
 * Guarantees: a finding goes to the heap's callback; without one its text goes to standard error and the process is
 * aborted (after leaks it continues). The checks keep their data apart from the blocks and from the heap. Thread-safe.
 *
 * Cost: nothing for heaps without checks. A checked heap takes one lock for each call, and up to 100 bytes for each
 * block; with sites, some microseconds for each call. Sampling alone costs almost nothing and is meant to stay on in
 * production.
 */
#ifndef TAIYEN_CHECKS_H
#define TAIYEN_CHECKS_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is checked: the sum of these, in ty_check_options.checks. With any of them, freed blocks stay in the quarantine
 * for a while, and a resize that grows a block moves it, so that uses of the old pointer are detected. Blocks are then
 * aligned to 16 bytes, or as requested, without regard to cache lines. */
enum {
    TY_CHECK_BOUNDS = 1,      /* guard bytes before and after each block, checked when it is freed or resized, by
                                 ty_heap_verify, and when the heap is destroyed */
    TY_CHECK_GUARD_PAGES = 2, /* each block ends at a guard page that can be neither read nor written, and the pages of
                                 freed blocks become such: the access itself is detected. Takes at least 8 KiB for each
                                 block. Only for as many blocks as an eighth of vm.max_map_count; the others get guard
                                 bytes */
    TY_CHECK_FREED = 4,       /* freed blocks are filled with a pattern: a write into one is detected when it leaves the
                                 quarantine, by ty_heap_verify, and when the heap is destroyed */
    TY_CHECK_SITES = 8,       /* where blocks were allocated and freed, and by which thread */
    TY_CHECK_LEAKS = 16       /* the sites of blocks still live when the heap is destroyed; implies TY_CHECK_SITES */
};

typedef enum ty_finding_kind {
    TY_FINDING_WRITE_BEFORE = 1,  /* bytes before a block were written to */
    TY_FINDING_WRITE_BEHIND = 2,  /* bytes after a block were written to */
    TY_FINDING_WRITE_FREED = 3,   /* bytes of a block were written to after it was freed */
    TY_FINDING_FREED_TWICE = 4,   /* a free or resize of a block that is freed already */
    TY_FINDING_INTERIOR_FREE = 5, /* a free or resize of a pointer into a block */
    TY_FINDING_WILD_FREE = 6,     /* a free or resize of another address in the heap */
    TY_FINDING_ACCESS = 7,        /* an access to a guard page or to a freed block. The callback runs in the signal
                                     handler: it may only use async-signal-safe functions. Then SIGSEGV goes to the
                                     handler that was installed before */
    TY_FINDING_LEAK = 8           /* blocks allocated at a site were not freed when the heap was destroyed */
} ty_finding_kind;

/* The call stack of an allocation or a free. frame_count 0: not recorded. */
typedef struct ty_site {
    void *const *frames; /* return addresses, the innermost first */
    size_t frame_count;
    uint64_t thread; /* as from gettid; 0: not recorded, or several threads (for leaks) */
} ty_site;

typedef struct ty_finding {
    size_t struct_size; /* sizeof(ty_finding) of the library */
    ty_finding_kind kind;
    ty_heap *heap;
    void *address;      /* the first byte that is wrong, or the pointer that was passed */
    void *block;        /* for leaks, one of them; NULL: no block is at the address */
    size_t size_bytes;  /* of the block, as requested */
    size_t block_count; /* for leaks: how many blocks, and their bytes; else 1 and size_bytes */
    size_t total_bytes;
    ty_site allocated;
    ty_site freed;
    const char *text; /* all of this, for people to read: several lines */
} ty_finding;

/* Called without a lock held, in the thread whose call detected it. It may use the heap, except for TY_FINDING_ACCESS
 * and while the heap is destroyed. The finding and what it points to are valid during the call. When it returns, the
 * call that detected the finding continues: a free of a pointer that is no live block is refused with TY_E_ARGUMENT, a
 * block with damaged guard bytes is freed. */
typedef void ty_finding_callback(const ty_finding *finding, void *context);

typedef struct ty_check_options {
    size_t struct_size;         /* sizeof(ty_check_options), set by the _INIT macro */
    unsigned checks;            /* TY_CHECK_ values */
    unsigned sample_every;      /* sampling, if checks is 0: each time a thread has taken blocks from the heap's tables
                                   this many times, one block gets a guard page and its site is recorded. 0: never; 1000
                                   costs nothing measurable */
    size_t quarantine_bytes;    /* 0: 16 MiB with TY_CHECK_FREED, TY_CHECK_GUARD_PAGES or samples, else 256 KiB */
    ty_finding_callback *found; /* NULL: the text goes to standard error, and the process is aborted */
    void *found_context;
} ty_check_options;
#define TY_CHECK_OPTIONS_INIT                                                                                          \
    { sizeof(ty_check_options), 0, 0, 0, NULL, NULL }

/* Starts checks on a volatile heap, right after ty_heap_create; they stay on until it is destroyed. A heap with checks
 * supports neither ty_alloc_at nor undo (TY_E_UNSUPPORTED); one that only samples does not support undo.
 * Errors: TY_E_ARGUMENT, TY_E_BUSY (the heap has been used), TY_E_UNSUPPORTED (a persistent heap, or the fault handler
 * cannot be installed), TY_E_MEMORY. Externally serialised. */
TY_API TY_CHECKED ty_status ty_heap_start_checks(ty_heap *heap, const ty_check_options *options);

/* The live blocks of one site. */
typedef struct ty_site_use {
    size_t struct_size; /* sizeof(ty_site_use) of the library */
    ty_site site;
    size_t block_count;
    size_t total_bytes; /* as requested */
    void *block;        /* one of them */
    size_t size_bytes;  /* its size */
    const char *text;   /* all of this, for people to read: several lines */
} ty_site_use;

/* Calls back for each site that has live blocks, by descending bytes, until the callback returns false. The heap needs
 * TY_CHECK_SITES or TY_CHECK_LEAKS, else TY_E_UNSUPPORTED. Allocations on the heap wait while the sites are summed up,
 * not during the callbacks. Further errors: TY_E_MEMORY. Thread-safe. O(blocks). */
typedef bool ty_site_callback(const ty_site_use *use, void *context);
TY_API TY_CHECKED ty_status ty_each_site(ty_heap *heap, ty_site_callback *callback, void *context);

#ifdef __cplusplus
}
#endif
#endif
