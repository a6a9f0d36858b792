/* The first part of a transaction of concurrent.h: what a load of a word needs, so that it can be done inline
 * (concurrent_inline.h) and without a chain of pointers. Not for programs: its layout may change with each version, and
 * ty_atomic_window_1 changes its name then, so that a program fails to link and not to run.
 *
 * Source of the protocol: Riegel, Felber, Fetzer, "A Lazy Snapshot Algorithm with Eager Validation" (2006). */
#ifndef TAIYEN_DETAIL_ATOMIC_WINDOW_H
#define TAIYEN_DETAIL_ATOMIC_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tests of the library run other threads between the accesses, and plant faults. */
#ifndef TY_DETAIL_PERTURB
#define TY_DETAIL_PERTURB() ((void)0)
#define TY_DETAIL_FAULT(site) 0
#endif

#define TY_DETAIL_HASH UINT64_C(0x9e3779b97f4a7c15)

typedef struct ty_atomic_window {
    uintptr_t base;       /* words in the bytes from here on are loaded and stored by the fast paths */
    size_t load_words;    /* their number for loads; 0: no load takes the fast path */
    size_t store_words;   /* likewise for stores */
    uint64_t written;     /* a 64-bit filter of the words in the write set */
    uint64_t *orecs;      /* ownership records: the timestamp of the last commit, or locked (above all timestamps) */
    uint64_t orec_mask;   /* of the offset of one in bytes */
    uint64_t start;       /* the transaction reads what was committed up to this timestamp */
    uint64_t **reads_end; /* the read set's end: the orecs that were read, after a NULL */
    uint64_t **reads_limit;
} ty_atomic_window;

static inline uint64_t ty_detail_filter_bit(uintptr_t word) {
    return (uint64_t)1 << (word * TY_DETAIL_HASH >> 58);
}

/* The offset of an address's orec in bytes. Neighbouring words are often changed together: 32 bytes share one. */
static inline size_t ty_detail_orec_offset(uintptr_t address, uint64_t mask) {
    return address >> 2 & mask;
}

/* Whether the fast path may access the word: it is aligned, and in the range of the window. */
static inline bool ty_detail_is_fast(uintptr_t base, size_t words, uintptr_t word) {
    const uint64_t offset = word - base;
    return (offset >> 3 | offset << 61) < words;
}

/* Reads a word. False: another transaction is committing to it, or has since the start. The order of the three
 * loads makes sure that the value is of the state at the start: a thread that sees the value of a later commit sees
 * that the orec is, or was, locked. */
static inline bool ty_detail_read(uint64_t start, const uint64_t *orec, uintptr_t word, uint64_t *value) {
    const uint64_t version = __atomic_load_n(orec, __ATOMIC_ACQUIRE);
    TY_DETAIL_PERTURB();
    *value = __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
    TY_DETAIL_PERTURB();
    return (version <= start || (TY_DETAIL_FAULT("stm_word_later_than_the_start_taken") && version >> 63 == 0)) &&
           (__atomic_load_n(orec, __ATOMIC_RELAXED) == version || TY_DETAIL_FAULT("stm_orec_read_once"));
}

/* Loads a word of 8 bytes that is not in the write set. False: nothing has changed, and ty_atomic_load does the rest.
 */
static inline bool ty_detail_load_unwritten(ty_atomic_window *window, uintptr_t word, uint64_t *value) {
    uint64_t *orec = (uint64_t *)((char *)window->orecs + ty_detail_orec_offset(word, window->orec_mask)), loaded;
    if (!ty_detail_is_fast(window->base, window->load_words, word) ||
        !ty_detail_read(window->start, orec, word, &loaded))
        return false;
    uint64_t **end = window->reads_end;
    if (end[-1] != orec) {
        if (end == window->reads_limit)
            return false;
        *end = orec;
        window->reads_end = end + 1;
    }
    *value = loaded;
    return true;
}

/* The same for any word. */
static inline bool ty_detail_load(ty_atomic_window *window, uintptr_t word, uint64_t *value) {
    return (window->written == 0 || (window->written & ty_detail_filter_bit(word)) == 0) &&
           ty_detail_load_unwritten(window, word, value);
}

#endif
