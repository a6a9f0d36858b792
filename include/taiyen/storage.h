/* Taiyen: the storage table.
 *
 * Purpose: all file I/O of persistent heaps goes through a table of functions. The built-in one does direct I/O on
 * Linux files; a program can wrap it or supply its own (encryption, another device, fault injection).
 *
 * Vocabulary: a *write* is unflushed until a *flush* of the same file has returned TY_OK: a power cut may lose, tear or
 * reorder unflushed writes. A change of names (open with TY_FILE_CREATE, rename, remove) is unflushed until
 * flush_directory has returned TY_OK for the path.
 *
 * Contract: every function returns a ty_status and sets the error detail on failure (implementations outside the
 * library may use ty_error_set). Reads and writes are done whole or fail. Offsets and sizes of read and write, and
 * buffers, are multiples of TY_STORAGE_BLOCK. Functions may be called from any thread, also on the same file at the
 * same time, and must not throw.
 */
#ifndef TAIYEN_STORAGE_H
#define TAIYEN_STORAGE_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TY_STORAGE_BLOCK 4096u

/* How to open a file. */
#define TY_FILE_WRITE 1u  /* for reading and writing; else for reading only */
#define TY_FILE_CREATE 2u /* create it; TY_E_EXISTS if it is there */
#define TY_FILE_PRIVATE                                                                                                \
    4u /* with TY_FILE_CREATE: accessible to its owner only, until protect grants more. Used only with storages        \
          that have protect */

/* How to map a file. */
#define TY_MAP_WRITE 1u  /* pages may be written; else they are read-only */
#define TY_MAP_SHARED 2u /* writes reach the file; else they stay in this process */

/* How to hold numbers. */
#define TY_HOLD_NONE 0u
#define TY_HOLD_SHARED 1u
#define TY_HOLD_EXCLUSIVE 2u

#define TY_STORAGE_PATH_MAX 4096u /* largest path, with its terminating 0 */

/* An open file; the implementation defines it. */
typedef struct ty_file ty_file;

/* One of several writes passed together. */
typedef struct ty_write {
    uint64_t offset;
    const void *buffer;
    size_t bytes;
} ty_write;

typedef struct ty_storage {
    size_t struct_size; /* sizeof(ty_storage) */
    void *context;      /* passed to every function */

    /* Opens a file. Expected: TY_E_NOT_FOUND, TY_E_EXISTS, TY_E_PERMISSION. */
    ty_status (*open)(void *context, const char *path, uint32_t flags, ty_file **file);
    /* Closes the file and releases its lock. Flushes nothing. */
    void (*close)(void *context, ty_file *file);
    /* Reads bytes at offset. Reading past the end is TY_E_IO. */
    ty_status (*read)(void *context, ty_file *file, uint64_t offset, void *buffer, size_t bytes);
    /* Writes bytes at offset, extending the file where needed. Expected: TY_E_SPACE, TY_E_IO. */
    ty_status (*write)(void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes);
    /* Makes all writes, allocations, punches and the size of the file durable. After a failure, nothing written since
     * the last successful flush may be believed durable. TY_E_IO also if the file has no name any more. */
    ty_status (*flush)(void *context, ty_file *file);
    /* The size of the file. */
    ty_status (*get_size)(void *context, ty_file *file, uint64_t *size_bytes);
    /* Truncates the file, or extends it with a hole that reads as zeros. */
    ty_status (*set_size)(void *context, ty_file *file, uint64_t size_bytes);
    /* Allocates disk space for a range, so that writing it cannot fail for lack of space; content is kept, holes read
     * as zeros; a range beyond the end extends the file. Expected: TY_E_SPACE, TY_E_UNSUPPORTED (the caller then
     * continues without). */
    ty_status (*allocate)(void *context, ty_file *file, uint64_t offset, uint64_t bytes);
    /* Releases the disk space of a range (punches a hole); it then reads as zeros. Expected: TY_E_UNSUPPORTED. */
    ty_status (*punch)(void *context, ty_file *file, uint64_t offset, uint64_t bytes);
    /* The next range of the file at or after offset that may hold data other than zeros. TY_E_NOT_FOUND: none. */
    ty_status (*next_data)(void *context, ty_file *file, uint64_t offset, uint64_t *start, uint64_t *end);
    /* Maps a range of the file at exactly this address, never over an existing mapping.
     * Expected: TY_E_ADDRESS (taken), TY_E_MEMORY. */
    ty_status (*map)(void *context, ty_file *file, void *address, size_t bytes, uint64_t offset, uint32_t flags);
    /* Unmaps what map mapped. */
    ty_status (*unmap)(void *context, ty_file *file, void *address, size_t bytes);
    /* For TY_MAP_SHARED: writes dirty pages of the mapped range to the file and waits; the caller then calls flush. */
    ty_status (*write_back)(void *context, ty_file *file, void *address, size_t bytes);
    /* Locks the file for this open handle, shared or exclusive, until it is closed. TY_E_BUSY: another handle has it
     * locked. */
    ty_status (*lock)(void *context, ty_file *file, bool exclusive);
    /* Renames a file, replacing the target, atomically. */
    ty_status (*rename)(void *context, const char *from, const char *to);
    /* Removes a file. Expected: TY_E_NOT_FOUND. */
    ty_status (*remove)(void *context, const char *path);
    /* Makes changes of names in the folder of path durable. */
    ty_status (*flush_directory)(void *context, const char *path);
    /* May be NULL: then `write` is called for each. Does all writes, in any order, several at a time; after a failure
     * any of them may have been done. They do not overlap. */
    ty_status (*write_many)(void *context, ty_file *file, const ty_write *writes, size_t count);
    /* May be NULL: then `write` and `flush` are called. Writes bytes at offset and makes them durable, and may leave
     * other unflushed writes of the file: one direct write with O_DSYNC where the system has it. Several may be under
     * way at the same time. The range lies within the file and was written before. */
    ty_status (*write_durable)(void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes);
    /* May be NULL: then the file counts as usable. Checks that the open file is still usable and has a name; called,
     * besides flush, before anything is reported as durable. Expected: TY_E_IO. */
    ty_status (*check)(void *context, ty_file *file);
    /* May be NULL: then nothing is done. Gives file the owner, group and permissions of `like`, as far as the process
     * may set them, and never more: TY_E_PERMISSION if a user who cannot open `like` could open file. */
    ty_status (*protect)(void *context, ty_file *file, ty_file *like);
    /* May be NULL: then paths are used as they are. Follows symbolic links and writes the path of the file that path
     * leads to, whether that exists or not, with its terminating 0, to resolved, which has room for `bytes`:
     * TY_STORAGE_PATH_MAX. The other files of a heap lie beside that file. */
    ty_status (*resolve)(void *context, const char *path, char *resolved, size_t bytes);
    /* May be NULL: then no process can follow a heap, and its writer asks nobody before it overwrites content. Locks of
     * numbers below 2^62, independent of `lock` and `turn`. With TY_HOLD_SHARED and TY_HOLD_EXCLUSIVE this handle has
     * [first, last] from then on, in that mode; TY_E_BUSY: another handle has some of it, *other is the first of these
     * numbers that was found, and nothing has changed. TY_HOLD_NONE gives numbers up, as does closing the file.
     * Exclusive only for files opened for writing. */
    ty_status (*hold)(void *context, ty_file *file, uint32_t mode, uint64_t first, uint64_t last, uint64_t *other);
    /* May be NULL: then writers beside the lock's owner are not serialised. begin true: waits until no other open
     * handle of the same file has the turn, and takes it; begin false, or closing the file, releases it. The turn is
     * independent of `lock` and `hold`. */
    ty_status (*turn)(void *context, ty_file *file, bool begin);
    /* May be NULL: then `lock` is called, shared. Takes no lock: TY_E_BUSY if another handle has the file locked
     * exclusively. */
    ty_status (*check_lock)(void *context, ty_file *file);
} ty_storage;

/* The built-in storage: direct I/O on files (buffered where the file system refuses it), OFD locks. Its descriptors
 * have high numbers; a program that closes them gets TY_E_IO from then on, and nothing is written to files that have
 * these numbers then. A write beyond the file size limit (ulimit -f) is TY_E_SPACE, not a signal. Thread-safe. */
TY_API const ty_storage *ty_storage_default(void);

/* A system_error for an operation text that gives the cause after a colon: the status's own text is left out. */
#define TY_CAUSE_IN_OPERATION (-1)
/* For implementations of a storage outside the library: sets the calling thread's error detail and returns status.
 * system_error: an errno; 0: none; or TY_CAUSE_IN_OPERATION. path may be NULL, offset UINT64_MAX, remedy NULL.
 * Thread-safe. */
TY_API ty_status ty_error_set(ty_status status, int system_error, const char *operation, const char *path,
                              uint64_t offset, const char *remedy);

#ifdef __cplusplus
}
#endif
#endif
