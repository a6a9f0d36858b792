/* Taiyen: notes that are kept in a heap's file, beside its content.
 *
 * Purpose: for what takes a heap's transactions elsewhere (standby.h): what it has to remember of the heap for as long
 * as there is the heap, such as that another one has taken its place. A note is in the heap's own file, so it goes
 * where that goes; it is no part of the heap's content: no transaction, snapshot or copy by transactions (feed.h,
 * ship.h, pack.h) holds it. For tools and libraries; not in taiyen.h.
 *
 * Vocabulary:
 *   note       up to TY_NOTE_BYTES_MAX bytes under a number. Their meaning is the library's that writes them.
 *
 * Guarantees: a note is read as it was written last, whole, or, after a power failure, as it was at a durable write or
 * later. It is bound to the heap's identity: in another heap's file it is none. Notes are written and read while any
 * process has the heap open, or none.
 *
 * Cost: a write is one block; a durable one is flushed.
 */
#ifndef TAIYEN_NOTE_H
#define TAIYEN_NOTE_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TY_NOTES 2u             /* numbers 0 and 1, which are the standby library's */
#define TY_NOTE_BYTES_MAX 1024u /* of one */

typedef struct ty_notes ty_notes; /* opaque; of one thread at a time */

struct ty_open_options;
/* The notes of the heap at heap_path. open: the storage counts, and stays valid; NULL: all defaults. Nothing of the
 * heap is opened yet. Errors: TY_E_ARGUMENT, TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_notes_open(const char *heap_path, const struct ty_open_options *open, ty_notes **notes);
/* Frees it; NULL does nothing. */
TY_API void ty_notes_close(ty_notes *notes);

/* Reads a note into `bytes`, of `capacity` bytes. *size_bytes: how long it is; 0: it was never written.
 * Errors: TY_E_NOT_FOUND (no heap there), TY_E_FORMAT (it is longer than capacity; or the file is no heap),
 * TY_E_DAMAGED (there was one, and none of its two copies is whole), TY_E_PERMISSION, TY_E_IO. One thread at a time. */
TY_API TY_CHECKED ty_status ty_notes_read(ty_notes *notes, uint32_t note, void *bytes, size_t capacity,
                                          size_t *size_bytes);
/* Writes a note. durable: it survives a power failure when this returns; else a kill of the process. The heap's file
 * stays open until ty_notes_close. Of several that write one note at once, in whatever process, each but the first one
 * is refused: what has been read or written here last is not what stands there any more, and nothing was written. Where
 * it was never read here, whatever stands there is written over.
 * Errors: as ty_notes_read; TY_E_BUSY (another one has written it meanwhile: read it, and decide again),
 * TY_E_PERMISSION (the file cannot be written to), TY_E_SPACE. One thread at a time. */
TY_API TY_CHECKED ty_status ty_notes_write(ty_notes *notes, uint32_t note, const void *bytes, size_t size_bytes,
                                           bool durable);

#ifdef __cplusplus
}
#endif
#endif
