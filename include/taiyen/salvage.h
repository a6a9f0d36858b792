/* Taiyen: what can be had of a damaged heap. For tools: taiyen.h does not include it.
 *
 * Purpose: an open believes a heap whole or refuses it. These calls take what is there: they make another heap of it,
 * and tell what is missing.
 *
 * Vocabulary: the *last good epoch* is the newest snapshot up to which all batches that the image does not hold are
 * whole. A page is *damaged* if its bytes are not what its checksum says, or are those of a later snapshot; and
 * *missing* if the file is cut off before it, it cannot be read, or it is a hole where something was written. Of a file
 * that is cut off, all pages behind its end that the heap has used are missing, written or not. Pages are *of several
 * moments* where the image may have been brought to a later snapshot in part, by a journal that cannot be read to its
 * end; or where an archive heap's program ended while it was open. Then any page may be of a later moment; as damaged
 * are told those that are known to be.
 *
 * Guarantees: the files of the damaged heap are only read. No file is replaced. Whatever they hold, the calls return.
 * What is salvaged is not what the program wrote where a page is damaged: look before you use it. Of the heap's header,
 * all is put back that is known without it.
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
    ty_kind kind;       /* that the damaged heap has */
    void *base;
    size_t limit_bytes;
    bool header_doubtful;   /* neither of the image's headers had the right checksum; one that makes sense was taken */
    uint64_t image_epoch;   /* what the image holds */
    uint64_t epoch;         /* the last good one, which was salvaged */
    uint64_t durable_epoch; /* as far as the image's header knows what had been acknowledged */
    uint64_t batches;       /* of the journal, that were whole and are in the new image */
    uint64_t batch_pages;
    uint64_t pages;           /* that were written to the new image, batches not counted */
    uint64_t damaged_pages;   /* of these: they were taken as they are */
    uint64_t missing_pages;   /* zeros in the new image */
    uint64_t problems;        /* that were told */
    uint64_t unchecked_pages; /* of `pages`: not zeros, and without a checksum, so that damage cannot be told. All of an
                                 archive heap; else where the table of checksums is damaged or cut off, what was written
                                 while the heap was an archive heap, or trash where nothing was ever written */
    bool closed;              /* in order. Else the end of a journal that was damaged looks like a crash */
    bool several_moments;     /* pages may be of several moments */
    uint64_t later_pages;     /* of damaged_pages: of a later snapshot (or left as it was by one that was not done) */
    uint64_t state;           /* of the damaged files, as they were read: ty_salvage_redo compares it */
} ty_salvage_report;

/* Told of each damaged or missing page, by its number from the heap's base on. */
typedef void ty_salvage_page_callback(uint64_t page, bool missing, void *context);

/* Makes an archive heap, closed, at out_path: the pages of the image at path, and over them the journal's batches up to
 * the last good epoch. It has an identity of its own and the address of the old one; whether it makes a heap, an open
 * tells. Of options, storage and journal_path count (NULL: all defaults). Calls back with a text for each thing that is
 * wrong, and for each page that is; either callback, and report, may be NULL. Errors: TY_E_NOT_FOUND, TY_E_EXISTS
 * (out_path), TY_E_BUSY (the heap is open for writing), TY_E_FORMAT (no heap, or of another version), TY_E_DAMAGED
 * (neither header of the image makes sense: address and size of the heap are unknown), TY_E_SPACE, TY_E_IO. Durability:
 * out_path is there, whole and durable, or not at all. Thread-safe. */
TY_API TY_CHECKED ty_status ty_salvage(const char *path, const ty_open_options *options, const char *out_path,
                                       ty_problem_callback *problem, ty_salvage_page_callback *page, void *context,
                                       ty_salvage_report *report);

typedef struct ty_salvage_redone {
    size_t struct_size;    /* sizeof(ty_salvage_redone), set by the caller */
    uint64_t transactions; /* that were done again; those that one outcome decides on count as one */
    uint64_t stopped_at;   /* the LSN of the first one that was read, and not done; 0: none */
    uint64_t in_doubt;     /* records of transactions that were prepared, and have no outcome there: not done */
    uint64_t left_out;     /* as ty_log_info has it */
    bool log_damaged;      /* what stands behind the last one cannot be read */
    char text[256];        /* why it stopped, or what is wrong with the log; empty: nothing */
} ty_salvage_redone;

/* Does the transactions again that the log of the damaged heap at path has behind the last good epoch, as a recovery
 * would: up to the LSN `until`, to the first one that cannot be read or done, or to the end. Each is done whole.
 * heap is what ty_salvage made of that heap, open as a transactional heap, and not written to; salvaged is what it
 * told. Of options, storage, journal_path, log_path and log count. A log that is missing, damaged or not that of the
 * heap's last open is told by report alone (which may be NULL). One that was cut is read as if zeros had been cut off,
 * and told. Errors: TY_E_DAMAGED (transaction stopped_at does not fit the heap, and was done in part: discard it,
 * salvage again, and give the LSN before as `until`), TY_E_BUSY (the damaged files are in use, or are not as ty_salvage
 * read them), TY_E_ADDRESS (the heap is no copy), TY_E_ARGUMENT, TY_E_UNSUPPORTED (there was no log), TY_E_MEMORY,
 * TY_E_SPACE, TY_E_IO. Durability: what was done is durable. Externally serialised. */
TY_API TY_CHECKED ty_status ty_salvage_redo(ty_heap *heap, const char *path, const ty_open_options *options,
                                            const ty_salvage_report *salvaged, uint64_t until,
                                            ty_salvage_redone *report);

#ifdef __cplusplus
}
#endif
#endif
