/* Taiyen: status codes and error details.
 *
 * Purpose: every call that can fail returns a ty_status to branch on; the calling thread can then read the error
 * detail: what was attempted, on which file and offset, why it failed and what to do about it.
 *
 * Guarantees: a call that fails changes nothing, except what its comment names. The detail belongs to the calling
 * thread and stays until that thread's next failing call; a successful call does not change it.
 *
 * Cost: a success costs nothing; a failure formats its text, without allocating.
 */
#ifndef TAIYEN_STATUS_H
#define TAIYEN_STATUS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ty_status {
    TY_OK = 0,
    TY_E_ARGUMENT =
        1, /* the call itself is wrong: a null, foreign or freed pointer, a bad option, a wrong kind of heap */
    TY_E_MEMORY = 2,       /* the heap's limit, or the system's memory, is reached */
    TY_E_SPACE = 3,        /* the disk is full, or a quota is reached */
    TY_E_IO = 4,           /* a read, write or flush failed */
    TY_E_NOT_FOUND = 5,    /* the file, root or block does not exist */
    TY_E_EXISTS = 6,       /* the file or block exists already */
    TY_E_BUSY = 7,         /* the heap is open elsewhere, or work is under way that excludes this call */
    TY_E_PERMISSION = 8,   /* the system, or the mode in which the heap was opened, does not allow it */
    TY_E_ADDRESS = 9,      /* the address range that the heap needs is taken */
    TY_E_FORMAT = 10,      /* not a Taiyen file, or of a version that this library does not know */
    TY_E_DAMAGED = 11,     /* a checksum or a structure is wrong */
    TY_E_MISMATCH = 12,    /* files, or type descriptors and a heap, are sound but do not belong together */
    TY_E_UNSUPPORTED = 13, /* this kernel, file system or kind of heap cannot do it */
    TY_E_FORKED = 14,      /* the heap belongs to the parent process; a forked child may only read its memory */
    TY_E_IN_DOUBT = 15,    /* a prepared transaction is neither committed nor rolled back, and its outcome cannot be
                              determined now */
    TY_E_EXPIRED = 16      /* what a follower has read was overwritten meanwhile, and may be a mixture: read again */
} ty_status;

typedef struct ty_error {
    ty_status status;
    int system_error;   /* errno of the system call that failed; 0 or TY_CAUSE_IN_OPERATION if none did */
    uint64_t offset;    /* in the file; UINT64_MAX if it does not apply */
    char operation[96]; /* what was attempted */
    char path[256];     /* the file concerned; may be empty (a longer path is cut at its beginning) */
    char remedy[256];   /* what to do about it */
} ty_error;

/* The name of a status, such as "TY_E_SPACE". Never NULL. Thread-safe. */
TY_API const char *ty_status_name(ty_status status);

/* The calling thread's last failure as one line for people to read: what, where, why, and what to do. Control
 * characters of paths and names are replaced by question marks, as in ty_error_detail. Never NULL; empty if nothing has
 * failed yet. Valid until the thread's next failing call. Thread-safe. */
TY_API const char *ty_error_text(void);

/* The same in fields. Writes *error; its status is TY_OK if nothing has failed yet. Thread-safe. */
TY_API void ty_error_detail(ty_error *error);

#ifdef __cplusplus
}
#endif
#endif
