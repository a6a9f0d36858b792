/* Taiyen: shipping a heap's transactions to a folder, and restoring from it (library taiyen_ship).
 *
 * Purpose: a backup that is never more than moments old. A *shipper* follows a transactional heap (feed.h), in a
 * process beside its writer, and writes *bases* and *segments* to a destination; ty_restore recreates the heap from
 * them, as it was after any transaction that was shipped, or at a point in time.
 *
 * Vocabulary:
 *   destination   where objects are stored: a folder, or a program's own implementation of ty_destination.
 *   object        bytes under a name, which exist whole or not at all.
 *   base          an object with a packed copy of the heap (pack.h), as it was after one transaction.
 *   segment       an object with the records of a range of transactions, each with the time at which it was read.
 *   timeline      segments without a gap. A shipper that fell behind what the heap's log holds begins a new
 *                 timeline with a new base. Transactions between two timelines cannot be restored;
 *                 ty_ship_list shows them.
 *
 * Guarantees:
 *  - What is shipped is durable in the heap, and whole. Restoring to a transaction gives exactly the content that the
 *    heap had after it (replica.h).
 *  - A shipper or a restoring process that is killed leaves only whole objects, and no heap under the requested name.
 *    The next shipper continues where the last segment ends; the next ty_restore starts over.
 *  - Each byte of each object is under a checksum, and segments are bound to each other by hashes. An object that was
 *    changed, truncated, duplicated, exchanged, or is of another heap, is reported by name. A missing object is
 *    detected, unless only the very newest ones are missing.
 *  - Damage does not affect the rest: a heap can be restored to any transaction that an undamaged base and segments
 *    lead to, and shipping continues. A damaged segment is replaced while the heap's log still has its transactions.
 *  - Times are those of the clock of the shipper's machine, which may be wrong. A time that is ambiguous because a
 *    clock was set is refused, with the numbers of the transactions that it may mean; a clock that was set never causes
 *    the removal of what is to be kept.
 *  - At each moment of removing or merging, everything that is to be kept can be restored.
 *
 * Cost: the writer is slowed only by the disk and the processor that both use. A base reads the whole heap. Merging
 * writes each record again once for each level. Memory: a segment (16 MiB), and for a base what ty_pack needs.
 */
#ifndef TAIYEN_SHIP_H
#define TAIYEN_SHIP_H

#include <taiyen/base.h>
#include <taiyen/feed.h>
#include <taiyen/heap.h>
#include <taiyen/persist.h>
#include <taiyen/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Destinations. */

/* Called for an object. False ends the call. */
typedef bool ty_object_callback(const char *name, uint64_t size_bytes, void *context);

/* A destination. Names have letters, digits, '-' and '.', at most 63 bytes. The functions may be called by two threads
 * at a time, for different objects. They return failures as statuses, with ty_error_set for the detail. */
typedef struct ty_destination {
    size_t struct_size; /* sizeof(ty_destination) */
    void *context;
    /* Begins an object. */
    ty_status (*put_begin)(void *context, const char *name, void **object);
    /* Appends to the object. */
    ty_status (*put_bytes)(void *context, void *object, const void *bytes, size_t size);
    /* keep: when this returns TY_OK, the object is whole, durable and under its name, and replaces one that had the
     * name; on a failure, or without keep, nothing of it remains. Ends the object in any case. */
    ty_status (*put_end)(void *context, void *object, bool keep);
    /* Reads up to size bytes from an offset; *got is less than size only at the end. TY_E_NOT_FOUND: no such object.
     */
    ty_status (*get)(void *context, const char *name, uint64_t offset, void *buffer, size_t size, size_t *got);
    /* Calls back for each object, in any order. */
    ty_status (*list)(void *context, ty_object_callback *callback, void *callback_context);
    /* Removes an object, durably or not; TY_OK if it does not exist. */
    ty_status (*remove)(void *context, const char *name);
} ty_destination;

/* A folder as a destination. writes: open it for storing objects; the folder is created durably if it does not exist,
 * and only one process at a time can open it so. Objects are files, written under another name, flushed, and renamed.
 * Errors: TY_E_ARGUMENT, TY_E_BUSY (another process ships to it), TY_E_NOT_FOUND, TY_E_PERMISSION, TY_E_IO,
 * TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_folder_open(const char *path, bool writes, ty_destination **destination);
/* Closes the destination; NULL does nothing. Close its shippers first. */
TY_API void ty_folder_close(ty_destination *destination);

/* ---- Shipping. */

typedef struct ty_shipper ty_shipper; /* opaque; for one thread at a time */

typedef struct ty_ship_options {
    size_t struct_size;                 /* sizeof(ty_ship_options), set by the _INIT macro */
    const struct ty_open_options *open; /* only journal_path, log_path and storage matter; NULL: all defaults */
    uint64_t segment_bytes;             /* at most this many bytes of records in a segment. 0: 16 MiB */
    uint32_t merged;                    /* this many segments of a level are merged into one of the next level. 0: 8; 1:
                                           never */
    uint64_t merged_bytes;              /* no segment gets larger than this by merging. 0: 256 MiB */
    uint64_t base_bytes;  /* a new base after this many bytes of segments. 0: 1 GiB, or the last base's size */
    uint64_t base_age_ms; /* and after this time. 0: a day */
    uint64_t keep_ms; /* how far back any transaction can be restored to. Measured by the times between bases, up to the
                         newest one: by a monotonic clock if one shipper made both bases; else each interval counts for
                         at most half of keep_ms. 0: for ever */
    uint32_t bases_min; /* this many bases are kept in any case. 0: 2 */
} ty_ship_options;
#define TY_SHIP_OPTIONS_INIT                                                                                           \
    { sizeof(ty_ship_options), NULL, 0, 0, 0, 0, 0, 0, 0 }

typedef struct ty_ship_report {
    size_t struct_size; /* sizeof(ty_ship_report), set by the caller */
    uint64_t lsn;       /* shipped up to this transaction */
    uint64_t records;   /* since the shipper was opened, as are all fields below */
    uint64_t record_bytes;
    uint64_t segments;
    uint64_t bases;
    uint64_t gaps;     /* timelines that were begun since one was interrupted */
    uint64_t new_logs; /* of these, because the heap's log was recreated: with another number of log streams, or to
                          replace one that was removed. A larger log does not help */
    uint64_t merges;
    uint64_t removed; /* objects past their retention */
    bool base_under_way;
    uint64_t clock_back; /* how often the clock was found set back, by more than a second */
} ty_ship_report;

/* Opens a shipper, which continues where the destination's newest segment ends. It keeps no file of the heap open or
 * locked. options may be NULL.
 * Errors: TY_E_ARGUMENT, TY_E_MISMATCH (the destination has objects of another heap, or of another history),
 * TY_E_DAMAGED, TY_E_FORMAT, TY_E_UNSUPPORTED (the heap has no log), TY_E_NOT_FOUND, TY_E_IO, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_ship_open(const char *heap_path, const ty_destination *destination,
                                         const ty_ship_options *options, ty_shipper **shipper);
/* Closes the shipper and abandons a base that is under way; NULL does nothing. */
TY_API void ty_ship_close(ty_shipper *shipper);
/* Waits for transactions, at most timeout_ms; ships what it finds; and does the work that is due: a base (in a thread
 * of its own), merging, removing. *more: more may be ready to ship. report and more may be NULL. After an error it may
 * be called again, and continues. Errors: those of ty_feed_read except TY_E_NOT_FOUND for a log that was overwritten
 * (it then begins a new timeline), those of ty_open (TY_OPEN_COPY) and ty_pack, and those of the destination. */
TY_API TY_CHECKED ty_status ty_ship_step(ty_shipper *shipper, uint32_t timeout_ms, bool *more, ty_ship_report *report);
/* Ships all transactions committed so far, and returns when the destination can restore up to the last of them: the
 * base is there, too. */
TY_API TY_CHECKED ty_status ty_ship_all(ty_shipper *shipper, ty_ship_report *report);

/* ---- Inspecting a destination. */

typedef struct ty_ship_object {
    const char *name;
    bool is_base;
    uint32_t level; /* of a segment: how often it was merged */
    uint64_t first; /* transactions; of a base, both are the one after which it was made */
    uint64_t last;
    uint64_t first_ns; /* since 1970: when they were read, or the base was made */
    uint64_t last_ns;
    uint64_t timeline; /* number of its timeline, the same for all its segments */
    uint64_t size_bytes;
    bool follows; /* a segment: the previous segment of the list ends where this one begins */
} ty_ship_object;
/* Called for an object, which is valid during the call. False ends the call. */
typedef bool ty_ship_object_callback(const ty_ship_object *object, void *context);
/* Lists bases and segments in the order of transactions; reads only their headers. Errors: TY_E_DAMAGED (after all
 * undamaged ones were listed), TY_E_MISMATCH, those of the destination. */
TY_API TY_CHECKED ty_status ty_ship_list(const ty_destination *destination, ty_ship_object_callback *callback,
                                         void *context);
/* Reads the whole destination and reports each problem. problem may be NULL. TY_E_DAMAGED: a problem was found.
 * TY_E_NOT_FOUND: nothing is damaged, but no base exists yet, so nothing can be restored. */
TY_API TY_CHECKED ty_status ty_ship_verify(const ty_destination *destination, ty_progress_callback *progress,
                                           ty_problem_callback *problem, void *context);

/* ---- Restoring. */

typedef struct ty_restore_options {
    size_t struct_size;                 /* sizeof(ty_restore_options), set by the _INIT macro */
    const struct ty_open_options *open; /* storage must be the default one; nothing may exist at journal_path and
                                           log_path yet; NULL: all defaults */
    uint64_t to_lsn;                /* to the state after this transaction (a prepared one: before it). 0: the newest */
    uint64_t to_ns;                 /* or to what was read up to this time, since 1970. 0: the newest. TY_E_MISMATCH: a
                                       clock was set, so the time is ambiguous; the detail lists the possible
                                       transactions */
    bool receives;                  /* the heap stays a receiving one (replica.h); else it is promoted */
    ty_progress_callback *progress; /* counts bytes of objects; false stops: TY_E_BUSY. May be NULL */
    void *progress_context;
} ty_restore_options;
#define TY_RESTORE_OPTIONS_INIT                                                                                        \
    { sizeof(ty_restore_options), NULL, 0, 0, false, NULL, NULL }

typedef struct ty_restore_report {
    size_t struct_size; /* sizeof(ty_restore_report), set by the caller */
    uint64_t base_lsn;
    uint64_t lsn;
    uint64_t time_ns; /* at which the last transaction was read */
    uint64_t records; /* after the base */
    uint64_t record_bytes;
    uint64_t base_ns; /* duration: of the base, and of the records */
    uint64_t records_ns;
    bool incomplete;           /* later objects exist and cannot be used: see ty_restore */
    ty_feed_position position; /* from which a receiving heap is fed (feed.h, replica.h) */
} ty_restore_report;

/* Restores a heap to heap_path, where nothing may exist. The heap gets its name when it is whole and durable. Until
 * then it is a file beside it, NAME-restoring; what a killed restore left there is removed. options and report may be
 * NULL.
 * A damaged object is skipped if others hold its content: an older base replaces a newer one. If an object that is
 * needed is damaged, or missing although later ones exist, the heap is restored as far as possible, unless to_lsn is
 * set: the result is TY_E_DAMAGED, the heap has its name, and the report is filled, with incomplete set. The detail
 * says how far the heap was restored, and why not further.
 * Errors: TY_E_EXISTS, TY_E_NOT_FOUND (no base at or before the requested transaction, or the transaction was not
 * shipped), TY_E_DAMAGED (an object; the detail names it), TY_E_MISMATCH (to_ns; objects of another heap),
 * TY_E_ADDRESS, TY_E_BUSY (stopped, or the same name is being restored), those of ty_unpack and ty_replica_apply and of
 * the destination. Thread-safe. */
TY_API TY_CHECKED ty_status ty_restore(const ty_destination *destination, const char *heap_path,
                                       const ty_restore_options *options, ty_restore_report *report);

#ifdef __cplusplus
}
#endif
#endif
