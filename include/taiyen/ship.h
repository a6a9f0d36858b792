/* Taiyen: shipping a heap's transactions to a folder, and restoring from it (library taiyen_ship).
 *
 * Purpose: a backup that is never more than moments old. A *shipper* follows a transactional heap (feed.h), in a
 * process beside its writer, and puts *bases* and *segments* to a destination; ty_restore makes a heap of them again,
 * as it was behind any transaction that was shipped, or at a time.
 *
 * Vocabulary:
 *   destination   where objects are put: a folder, or what a program makes of the functions of ty_destination.
 *   object        bytes under a name that are there whole or not at all.
 *   base          an object with a packed copy of the heap (pack.h), as it was behind one transaction.
 *   segment       an object with the records of the transactions in a range, each with the time at which it was seen.
 *   timeline        segments without a gap. Where a shipper fell behind what the heap's log holds, it begins a new
 * timeline with a new base. Transactions between two timelines cannot be restored to; ty_ship_list shows them.
 *
 * Guarantees:
 *  - What is shipped is durable in the heap, and whole. Restoring to a transaction gives exactly what the heap held
 *    behind it (replica.h).
 *  - A shipper or a restoring process that is killed leaves objects that are whole, and no heap under the name that was
 *    asked for. The next shipper goes on where the last segment ends; the next ty_restore begins anew.
 *  - Each byte of each object is under a checksum, and segments are bound to each other by hashes. What was changed,
 *    cut, doubled, exchanged, or is of another heap, is told by name. Of what is missing, the newest objects of all
 *    alone cannot be missed.
 *  - What is damaged does not keep from the rest: a heap can be restored to all that an undamaged base and segments
 *    lead to, and shipping goes on. A damaged segment is replaced while the heap's log still has its transactions.
 *  - Times are those of the clock of the shipper's machine, which may be wrong. A time that may mean several
 *    transactions, since a clock was set, is refused with their numbers; what is to be kept does not go because of it.
 *  - Whatever is removed or merged, what was kept can be restored at each moment.
 *
 * Cost: the writer is not slowed but by the disk and the processor that both use. A base reads all of the heap. Merging
 * writes each record again once a level. Memory: a segment (16 MiB), and for a base what ty_pack needs.
 */
#ifndef TAIYEN_SHIP_H
#define TAIYEN_SHIP_H

#include "base.h"
#include "feed.h"
#include "heap.h"
#include "persist.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Destinations. */

/* Called for an object. False: no more. */
typedef bool ty_object_callback(const char *name, uint64_t size_bytes, void *context);

/* Names have letters, digits, '-' and '.'; no more than 63 bytes. The functions may be called by two threads at a time,
 * for different objects. They report failures as statuses, with ty_error_set for the detail. */
typedef struct ty_destination {
    size_t struct_size; /* sizeof(ty_destination) */
    void *context;
    /* Begins an object. */
    ty_status (*put_begin)(void *context, const char *name, void **object);
    /* Adds to its end. */
    ty_status (*put_bytes)(void *context, void *object, const void *bytes, size_t size);
    /* keep: it is whole, durable and under its name when this returns TY_OK, in the place of one that had the name;
     * on a failure, or without keep, nothing of it is. Ends the object in any case. */
    ty_status (*put_end)(void *context, void *object, bool keep);
    /* Up to size bytes from an offset: *got, less than size only at the end. TY_E_NOT_FOUND: there is no such object.
     */
    ty_status (*get)(void *context, const char *name, uint64_t offset, void *buffer, size_t size, size_t *got);
    /* Calls back for each object, in any order. */
    ty_status (*list)(void *context, ty_object_callback *callback, void *callback_context);
    /* Durable or not; TY_OK if it is not there. */
    ty_status (*remove)(void *context, const char *name);
} ty_destination;

/* A folder as a destination. writes: to put objects; the folder is made if it is not there, durably, and one process at
 * a time has it. Objects are files, written under another name, flushed, and renamed.
 * Errors: TY_E_ARGUMENT, TY_E_BUSY (another process ships to it), TY_E_NOT_FOUND, TY_E_PERMISSION, TY_E_IO,
 * TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_folder_open(const char *path, bool writes, ty_destination **destination);
/* Gives it up; NULL does nothing. Shippers with it are closed before. */
TY_API void ty_folder_close(ty_destination *destination);

/* ---- Shipping. */

typedef struct ty_shipper ty_shipper; /* opaque; of one thread at a time */

typedef struct ty_ship_options {
    size_t struct_size;                 /* sizeof(ty_ship_options), set by the _INIT macro */
    const struct ty_open_options *open; /* journal_path, log_path and storage count; NULL: all defaults */
    uint64_t segment_bytes;             /* of records in a segment at most. 0: 16 MiB */
    uint32_t merged;                    /* so many segments of a level become one of the next level. 0: 8; 1: never */
    uint64_t merged_bytes;              /* no segment gets larger than this by merging. 0: 256 MiB */
    uint64_t base_bytes;  /* a new base after so many bytes of segments. 0: 1 GiB, or the last base's size */
    uint64_t base_age_ms; /* and after that time. 0: a day */
    uint64_t keep_ms; /* for how long it can be restored to any transaction. Measured by the times between bases, up to
                         the newest one: where one shipper made both, by a clock that nobody sets; else each counts
                         for half of it at most. 0: for ever */
    uint32_t bases_min; /* so many bases are kept in any case. 0: 2 */
} ty_ship_options;
#define TY_SHIP_OPTIONS_INIT                                                                                           \
    { sizeof(ty_ship_options), NULL, 0, 0, 0, 0, 0, 0, 0 }

typedef struct ty_ship_report {
    size_t struct_size; /* sizeof(ty_ship_report), set by the caller */
    uint64_t lsn;       /* shipped up to this transaction */
    uint64_t records;   /* since the shipper was opened, as all that follows */
    uint64_t record_bytes;
    uint64_t segments;
    uint64_t bases;
    uint64_t gaps;     /* timelines that were begun since one was interrupted */
    uint64_t new_logs; /* of these, since the heap's log had been made anew: with another number of log streams, or in
                          the place of one that was removed. No larger log helps */
    uint64_t merges;
    uint64_t removed; /* objects, of those kept too long */
    bool base_under_way;
    uint64_t clock_back; /* how often the clock was found set back, by more than a second */
} ty_ship_report;

/* Makes a shipper that goes on where the destination's newest segment ends. Nothing of the heap is opened or locked.
 * options may be NULL.
 * Errors: TY_E_ARGUMENT, TY_E_MISMATCH (the destination has objects of another heap, or of another history),
 * TY_E_DAMAGED, TY_E_FORMAT, TY_E_UNSUPPORTED (the heap has no log), TY_E_NOT_FOUND, TY_E_IO, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_ship_open(const char *heap_path, const ty_destination *destination,
                                         const ty_ship_options *options, ty_shipper **shipper);
/* Gives it up, with a base that is under way; NULL does nothing. */
TY_API void ty_ship_close(ty_shipper *shipper);
/* Waits for transactions, for timeout_ms at the most; puts what there is; and does what is due: a base (in a thread of
 * its own), merging, removing. *more: there may be more to ship at once. report and more may be NULL. After an error it
 * may be called again, and goes on. Errors: those of ty_feed_read but TY_E_NOT_FOUND for a log that was written over
 * (then a new timeline is begun), those of ty_open (TY_OPEN_COPY) and ty_pack, and those of the destination. */
TY_API TY_CHECKED ty_status ty_ship_step(ty_shipper *shipper, uint32_t timeout_ms, bool *more, ty_ship_report *report);
/* Ships all there is now, and returns when the destination can be restored from up to there: also the base is there. */
TY_API TY_CHECKED ty_status ty_ship_all(ty_shipper *shipper, ty_ship_report *report);

/* ---- Looking at a destination. */

typedef struct ty_ship_object {
    const char *name;
    bool is_base;
    uint32_t level; /* of a segment: how often it was merged */
    uint64_t first; /* transactions; of a base both are the one behind which it was made */
    uint64_t last;
    uint64_t first_ns; /* since 1970: when they were seen, or the base was made */
    uint64_t last_ns;
    uint64_t timeline; /* a number: segments of one timeline have the same */
    uint64_t size_bytes;
    bool follows; /* a segment: the one told before it ends where it begins */
} ty_ship_object;
/* Called for an object, which is valid during the call. False: no more. */
typedef bool ty_ship_object_callback(const ty_ship_object *object, void *context);
/* Tells bases and segments in the order of transactions, by their headers alone. Errors: TY_E_DAMAGED (after those that
 * are not damaged were told), TY_E_MISMATCH, those of the destination. */
TY_API TY_CHECKED ty_status ty_ship_list(const ty_destination *destination, ty_ship_object_callback *callback,
                                         void *context);
/* Reads all of it, and tells each problem. problem may be NULL. TY_E_DAMAGED: there was one. TY_E_NOT_FOUND: nothing is
 * damaged, but there is no base yet, so nothing can be restored. */
TY_API TY_CHECKED ty_status ty_ship_verify(const ty_destination *destination, ty_progress_callback *progress,
                                           ty_problem_callback *problem, void *context);

/* ---- Restoring. */

typedef struct ty_restore_options {
    size_t struct_size;                 /* sizeof(ty_restore_options), set by the _INIT macro */
    const struct ty_open_options *open; /* storage must be the default one; journal_path and log_path say where nothing
                                           may be; NULL: all defaults */
    uint64_t to_lsn;                /* behind this transaction (of one that is prepared: before it). 0: the newest */
    uint64_t to_ns;                 /* or what was seen up to that time, since 1970. 0: the newest. TY_E_MISMATCH: a
                                       clock was set, so that several transactions may be meant; the detail says which */
    bool receives;                  /* the heap goes on receiving (replica.h); else it is promoted */
    ty_progress_callback *progress; /* NULL: nobody is told. Bytes of objects. False stops: TY_E_BUSY */
    void *progress_context;
} ty_restore_options;
#define TY_RESTORE_OPTIONS_INIT                                                                                        \
    { sizeof(ty_restore_options), NULL, 0, 0, false, NULL, NULL }

typedef struct ty_restore_report {
    size_t struct_size; /* sizeof(ty_restore_report), set by the caller */
    uint64_t base_lsn;
    uint64_t lsn;
    uint64_t time_ns; /* at which the last transaction was seen */
    uint64_t records; /* behind the base */
    uint64_t record_bytes;
    uint64_t base_ns; /* how long it took: of the base, and of the records */
    uint64_t records_ns;
    bool incomplete;           /* what follows is there, and cannot be used: see ty_restore */
    ty_feed_position position; /* from which a heap that goes on receiving is fed (feed.h, replica.h) */
} ty_restore_report;

/* Makes a heap at heap_path, where nothing may be. It gets its name when it is whole and durable. Until then it lies
 * beside it, as NAME-restoring; what a killed one left there is taken away. options and report may be NULL.
 * What is damaged is passed over where something else has it: an older base does for a newer one. Where an object
 * behind the last transaction is damaged, or is there and another one before it is not, the heap is made as far as it
 * can be, unless a transaction's number is asked for: then the result is TY_E_DAMAGED, the heap has its name, and the
 * report is given, with incomplete set. The detail says how far it is, and why not further. Errors: TY_E_EXISTS,
 * TY_E_NOT_FOUND (no base at or before what is asked for, or what follows was not shipped), TY_E_DAMAGED (an object;
 * the detail names it), TY_E_MISMATCH (to_ns; objects of another heap), TY_E_ADDRESS, TY_E_BUSY (stopped, or the same
 * name is being restored), those of ty_unpack and ty_replica_apply and of the destination. Thread-safe. */
TY_API TY_CHECKED ty_status ty_restore(const ty_destination *destination, const char *heap_path,
                                       const ty_restore_options *options, ty_restore_report *report);

#ifdef __cplusplus
}
#endif
#endif
