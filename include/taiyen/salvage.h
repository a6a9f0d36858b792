/* Taiyen: salvage: the content of a damaged heap. For tools: taiyen.h does not include it.
 *
 * Purpose: an open accepts a heap whole or refuses it. These calls take what can be read: they create another heap from
 * it, and report what is missing.
 *
 * Vocabulary: the *last good epoch* is the newest snapshot up to which all batches that the image does not hold are
 * whole. A page is *damaged* if its bytes do not match its checksum, or are those of a later snapshot; and *missing* if
 * the file ends before it, it cannot be read, or it is a hole where something was written. If a file is truncated, all
 * pages past its end that the heap has used are missing, written or not. Pages are *of several moments* if the image
 * may have been partly checkpointed to a later snapshot, by a journal that cannot be read to its end; or if an archive
 * heap's program ended while it was open. Then any page may be of a later moment; those known to be are reported as
 * damaged.
 *
 * Guarantees: the files of the damaged heap are only read. No file is replaced. Whatever the files hold, the calls
 * return. Damaged pages are salvaged as they are, and do not hold what the program wrote: inspect them before use.
 * Fields of the heap's header that can be derived without it are restored.
 */
#ifndef TAIYEN_SALVAGE_H
#define TAIYEN_SALVAGE_H

#include "base.h"
#include "heap.h"
#include "persist.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_salvage_report {
    size_t struct_size; /* sizeof(ty_salvage_report), set by the caller */
    ty_kind kind;       /* of the damaged heap */
    void *base;
    size_t limit_bytes;
    bool header_doubtful;   /* neither of the image's headers had the right checksum; a plausible one was used */
    uint64_t image_epoch;   /* what the image holds */
    uint64_t epoch;         /* the last good epoch, which was salvaged */
    uint64_t durable_epoch; /* acknowledged, as far as the image's header knows */
    uint64_t batches;       /* batches of the journal that were whole and are in the new image */
    uint64_t batch_pages;
    uint64_t pages;           /* written to the new image, without those of batches */
    uint64_t damaged_pages;   /* of these; copied as they are */
    uint64_t missing_pages;   /* zeros in the new image */
    uint64_t problems;        /* reported */
    uint64_t unchecked_pages; /* of `pages`: not zeros, and without a checksum, so that damage cannot be detected. All
                                 pages of an archive heap; else those whose part of the checksum table is damaged or cut
                                 off, those written while the heap was an archive heap, or garbage where nothing was
                                 ever written */
    bool closed;              /* in order; else a damaged end of the journal looks like a crash */
    bool several_moments;     /* pages may be of several moments */
    uint64_t later_pages;     /* of damaged_pages: of a later snapshot (or not updated by an unfinished one) */
    uint64_t state;           /* fingerprint of the damaged files, as they were read: ty_salvage_redo compares it */
} ty_salvage_report;

/* Called for each damaged or missing page; page 0 is at the heap's base. */
typedef void ty_salvage_page_callback(uint64_t page, bool missing, void *context);

/* Creates an archive heap, closed, at out_path: the pages of the image at path, and over them the journal's batches up
 * to the last good epoch. It has its own identity and the address of the old heap; an open shows whether the result is
 * a valid heap. options: only storage and journal_path matter (NULL: all defaults). Calls back with a text for each
 * problem, and for each damaged or missing page; either callback, and report, may be NULL. Errors: TY_E_NOT_FOUND,
 * TY_E_EXISTS (out_path), TY_E_BUSY (the heap is open for writing), TY_E_FORMAT (not a heap, or of another version),
 * TY_E_DAMAGED (neither header of the image is plausible: address and size of the heap are unknown), TY_E_SPACE,
 * TY_E_IO. Durability: out_path exists whole and durable, or not at all. Thread-safe. */
TY_API TY_CHECKED ty_status ty_salvage(const char *path, const ty_open_options *options, const char *out_path,
                                       ty_problem_callback *problem, ty_salvage_page_callback *page, void *context,
                                       ty_salvage_report *report);

typedef struct ty_salvage_redone {
    size_t struct_size;    /* sizeof(ty_salvage_redone), set by the caller */
    uint64_t transactions; /* redone; those that share one outcome count as one */
    uint64_t stopped_at;   /* the LSN of the first one that was read, and not redone; 0: none */
    uint64_t in_doubt;     /* records of prepared transactions without an outcome in the log: not redone */
    uint64_t left_out;     /* as in ty_log_info */
    bool log_damaged;      /* the log cannot be read after the last one */
    char text[256];        /* why it stopped, or what is wrong with the log; empty: no problem */
} ty_salvage_redone;

/* Redoes the transactions that the log of the damaged heap at path has after the last good epoch, as recovery would: up
 * to the LSN `until`, to the first one that cannot be read or redone, or to the end. Each is redone whole. heap is the
 * heap that ty_salvage created from it, opened as a transactional heap, and not written to; salvaged is the report of
 * ty_salvage. options: only storage, journal_path, log_path and log matter. A log that is missing, damaged or not that
 * of the heap's last open is reported only in *report (which may be NULL). A truncated log is read as if zeros had been
 * cut off, and reported. Errors: TY_E_DAMAGED (transaction stopped_at does not fit the heap, and was redone in part:
 * discard the heap, salvage again, and pass the LSN before as `until`), TY_E_BUSY (the damaged files are in use, or
 * have changed since ty_salvage read them), TY_E_ADDRESS (the heap is not the salvaged copy), TY_E_ARGUMENT,
 * TY_E_UNSUPPORTED (the damaged heap had no log), TY_E_MEMORY, TY_E_SPACE, TY_E_IO. Durability: what was redone is
 * durable. Externally serialised. */
TY_API TY_CHECKED ty_status ty_salvage_redo(ty_heap *heap, const char *path, const ty_open_options *options,
                                            const ty_salvage_report *salvaged, uint64_t until,
                                            ty_salvage_redone *report);

#ifdef __cplusplus
}
#endif
#endif
