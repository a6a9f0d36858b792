/* Taiyen: side records that are kept in a heap's file, beside its content.
 *
 * Purpose: for code that replicates a heap's transactions (standby.h): data that it must remember about the heap for as
 * long as the heap exists, such as that another heap has superseded it. A side record is in the heap's own file, so it
 * goes where that goes; it is not part of the heap's content: no transaction, snapshot or copy by transactions (feed.h,
 * ship.h, pack.h) includes it. For tools and libraries; not in taiyen.h.
 *
 * Vocabulary:
 *   side record   up to TY_SIDE_RECORD_BYTES_MAX bytes under a number. Only its writer knows what it means.
 *
 * Guarantees: a side record is read as it was last written, whole, or, after a power failure, as of its last durable
 * write or later. It is bound to the heap's identity: another heap's file does not have it. Side records can be written
 * and read while any process has the heap open, or none.
 *
 * Cost: a write is one block; a durable one is flushed.
 */
#ifndef TAIYEN_SIDE_RECORD_H
#define TAIYEN_SIDE_RECORD_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TY_SIDE_RECORDS 2u             /* numbers 0 and 1, both used by the standby library */
#define TY_SIDE_RECORD_BYTES_MAX 1024u /* of one */

typedef struct ty_side_records ty_side_records; /* opaque; for one thread at a time */

struct ty_open_options;
/* Opens the side records of the heap at heap_path. open: only storage matters, and it must stay valid; NULL: all
 * defaults. No file is opened yet. Errors: TY_E_ARGUMENT, TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_side_records_open(const char *heap_path, const struct ty_open_options *open,
                                                 ty_side_records **side_records);
/* Closes the side records; NULL does nothing. */
TY_API void ty_side_records_close(ty_side_records *side_records);

/* Reads a side record into `bytes`, of `capacity` bytes. *size_bytes: its length; 0: it was never written.
 * Errors: TY_E_NOT_FOUND (no heap at that path), TY_E_FORMAT (the side record is longer than capacity; or the file is
 * no heap), TY_E_DAMAGED (the side record was written, and neither of its two copies is whole), TY_E_PERMISSION,
 * TY_E_IO. One thread at a time. */
TY_API TY_CHECKED ty_status ty_side_records_read(ty_side_records *side_records, uint32_t side_record, void *bytes,
                                                 size_t capacity, size_t *size_bytes);
/* Writes a side record. durable: it survives a power failure when this returns; else only a kill of the process. The
 * heap's file stays open until ty_side_records_close. The write is a compare-and-set: if another writer, in any
 * process, has changed the side record since it was last read or written here, it is refused and nothing is written. A
 * side record that was never read here is overwritten.
 * Errors: as ty_side_records_read; TY_E_BUSY (another writer has changed it: read it, and decide again),
 * TY_E_PERMISSION (the file cannot be written to), TY_E_SPACE. One thread at a time. */
TY_API TY_CHECKED ty_status ty_side_records_write(ty_side_records *side_records, uint32_t side_record,
                                                  const void *bytes, size_t size_bytes, bool durable);

#ifdef __cplusplus
}
#endif
#endif
