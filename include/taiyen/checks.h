/* Taiyen: checks of how a program uses the blocks of a volatile heap, and what they find.
 *
 * Purpose: find writes past a block's ends, frees of what is no block, uses of freed blocks and blocks that nobody
 * frees, and tell the block, its size and where it was allocated and freed. Started on a heap by ty_heap_start_checks.
 *
 * Vocabulary: a *site* is the calls that led to an allocation or a free, and the thread. The *quarantine* holds blocks
 * that were freed back for a while, so that what still uses them is found. A *finding* is one thing that is wrong.
 *
 * Guarantees: a finding goes to the heap's callback; without one its text goes to standard error and the process is
 * aborted (after leaks it goes on). What the checks know lies apart from the blocks and from the heap. Thread-safe.
 *
 * Cost: nothing for heaps without checks. A checked heap takes one lock a call, and up to 100 bytes a block; with
 * sites, some microseconds a call. Sampling alone costs next to nothing and is meant to be left on.
 */
#ifndef TAIYEN_CHECKS_H
#define TAIYEN_CHECKS_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is checked: the sum of these, in ty_check_options.checks. With any of them freed blocks stay in the quarantine
 * for a while and a resize that grows moves the block, so that a pointer to the old place is found out. Blocks are then
 * aligned to 16 bytes or as asked for, and lie on as many cache lines as they happen to. */
enum {
    TY_CHECK_BOUNDS = 1,      /* bytes before and right behind each block are watched: when it is freed or resized, by
                                 ty_heap_verify, and at the heap's end */
    TY_CHECK_GUARD_PAGES = 2, /* each block ends where a page starts that can be neither read nor written, and freed
                                 ones become such: the access itself is found. At least 8 KiB a block. Only as many
                                 blocks as an eighth of what vm.max_map_count allows; the others have bounds */
    TY_CHECK_FREED = 4,       /* freed blocks are filled: a write into one is found when it leaves the quarantine, by
                                 ty_heap_verify, and at the heap's end */
    TY_CHECK_SITES = 8,       /* where blocks were allocated and freed, and by which thread */
    TY_CHECK_LEAKS = 16       /* the sites of blocks still live at the heap's end; implies TY_CHECK_SITES */
};

typedef enum ty_finding_kind {
    TY_FINDING_WRITE_BEFORE = 1,  /* bytes before a block were written to */
    TY_FINDING_WRITE_BEHIND = 2,  /* bytes behind a block were written to */
    TY_FINDING_WRITE_FREED = 3,   /* bytes of a block were written to after it was freed */
    TY_FINDING_FREED_TWICE = 4,   /* a free or resize of a block that is freed already */
    TY_FINDING_INTERIOR_FREE = 5, /* a free or resize of what lies inside a block */
    TY_FINDING_WILD_FREE = 6,     /* a free or resize of another address in the heap */
    TY_FINDING_ACCESS = 7,        /* an access to a guard page or to a block that was freed. The callback runs in the
                                   handler of the signal: only what is async-signal-safe is allowed there. Then the
                                   fault takes its course: SIGSEGV goes to the handler that was there before */
    TY_FINDING_LEAK = 8           /* blocks allocated at a site were not freed when the heap ended */
} ty_finding_kind;

/* Where something was done. frame_count 0: it was not recorded. */
typedef struct ty_site {
    void *const *frames; /* return addresses, the innermost first */
    size_t frame_count;
    uint64_t thread; /* as gettid gives it; 0: not recorded, or several threads (of leaks) */
} ty_site;

typedef struct ty_finding {
    size_t struct_size; /* sizeof(ty_finding) of the library */
    ty_finding_kind kind;
    ty_heap *heap;
    void *address;      /* the first byte that is wrong, or the pointer that was handed in */
    void *block;        /* of leaks, one of them; NULL: no block is there */
    size_t size_bytes;  /* of the block, as asked for */
    size_t block_count; /* of leaks: how many blocks, and their bytes; else 1 and size_bytes */
    size_t total_bytes;
    ty_site allocated;
    ty_site freed;
    const char *text; /* all of this for a person: several lines */
} ty_finding;

/* Called without a lock held, on the thread whose call found it; it may use the heap, but for TY_FINDING_ACCESS and at
 * the heap's end. The finding and what it points to are valid during the call. When it returns the call that found it
 * goes on: a free of what is no live block is refused with TY_E_ARGUMENT, a block with damaged bounds is freed. */
typedef void ty_finding_callback(const ty_finding *finding, void *context);

typedef struct ty_check_options {
    size_t struct_size;      /* sizeof(ty_check_options), set by the _INIT macro */
    unsigned checks;         /* TY_CHECK_ values */
    unsigned sample_every;   /* every so many times that a thread takes blocks from the heap's tables one block gets a
                                guard page and its site recorded, where checks is 0; 0: never; 1000 costs nothing */
    size_t quarantine_bytes; /* 0: 16 MiB with TY_CHECK_FREED, TY_CHECK_GUARD_PAGES or samples, else 256 KiB */
    ty_finding_callback *found; /* NULL: the text goes to standard error, and the process is aborted */
    void *found_context;
} ty_check_options;
#define TY_CHECK_OPTIONS_INIT                                                                                          \
    { sizeof(ty_check_options), 0, 0, 0, NULL, NULL }

/* Starts checks of a volatile heap, right after ty_heap_create and until its end. A heap with checks has no ty_alloc_at
 * and no undo (TY_E_UNSUPPORTED); one that only samples has no undo.
 * Errors: TY_E_ARGUMENT, TY_E_BUSY (the heap has been used), TY_E_UNSUPPORTED (a persistent heap, or no handler of
 * faults can be installed), TY_E_MEMORY. Externally serialised. */
TY_API TY_CHECKED ty_status ty_heap_start_checks(ty_heap *heap, const ty_check_options *options);

/* The live blocks of one site. */
typedef struct ty_site_use {
    size_t struct_size; /* sizeof(ty_site_use) of the library */
    ty_site site;
    size_t block_count;
    size_t total_bytes; /* as asked for */
    void *block;        /* one of them */
    size_t size_bytes;  /* its size */
    const char *text;   /* all of this for a person: several lines */
} ty_site_use;

/* Calls back for each site that has live blocks, by bytes, the most first, until the callback returns false. The heap
 * needs TY_CHECK_SITES or TY_CHECK_LEAKS, else TY_E_UNSUPPORTED. Allocations on the heap wait while the sites are
 * summed up, not during the callbacks. Errors also: TY_E_MEMORY. Thread-safe. O(blocks). */
typedef bool ty_site_callback(const ty_site_use *use, void *context);
TY_API TY_CHECKED ty_status ty_each_site(ty_heap *heap, ty_site_callback *callback, void *context);

#ifdef __cplusplus
}
#endif
#endif
