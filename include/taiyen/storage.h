/* Taiyen: the storage seam.
 *
 * Purpose: all file I/O of persistent heaps goes through a table of functions. The built-in one does direct I/O on
 * Linux files; a program can wrap it or bring its own (encryption, another device, fault injection).
 *
 * Vocabulary: a *write* is in doubt until a *flush* of the same file has returned TY_OK: a power cut may lose, tear or
 * reorder what is in doubt. A change of names (open with TY_OPEN_CREATE, rename, remove) is in doubt until
 * flush_directory has returned TY_OK for the path.
 *
 * Contract: every function returns a ty_status and sets the error detail on failure (implementations outside the
 * library may use ty_error_set). Reads and writes are whole or an error. Offsets and sizes of read and write, and
 * buffers, are multiples of TY_STORAGE_BLOCK. Functions may be called from any thread, on one file at the same time,
 * and must not throw.
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
#define TY_OPEN_WRITE 1u  /* for reading and writing; else for reading only */
#define TY_OPEN_CREATE 2u /* create it; TY_E_EXISTS if it is there */
#define TY_OPEN_PRIVATE                                                                                                \
    4u /* with TY_OPEN_CREATE: for its owner alone, until protect says more. Used only with storages                   \
          that have protect */

/* How to map a file. */
#define TY_MAP_WRITE 1u  /* pages may be written; else they are read-only */
#define TY_MAP_SHARED 2u /* writes reach the file; else they stay in this process */

#define TY_STORAGE_PATH_MAX 4096u /* of a path, with its 0 */

/* An open file; the implementation defines it. */
typedef struct ty_file ty_file;

/* One of several writes handed over together. */
typedef struct ty_write {
    uint64_t offset;
    const void *buffer;
    size_t bytes;
} ty_write;

typedef struct ty_storage {
    size_t struct_size; /* sizeof(ty_storage) */
    void *context;      /* handed to every function */

    /* Opens a file. Expected: TY_E_NOT_FOUND, TY_E_EXISTS, TY_E_PERMISSION. */
    ty_status (*open)(void *context, const char *path, uint32_t flags, ty_file **file);
    /* Closes it and gives up its lock. Flushes nothing. */
    void (*close)(void *context, ty_file *file);
    /* Reads bytes at offset. Reading past the end is TY_E_IO. */
    ty_status (*read)(void *context, ty_file *file, uint64_t offset, void *buffer, size_t bytes);
    /* Writes bytes at offset, extending the file where needed. Expected: TY_E_SPACE, TY_E_IO. */
    ty_status (*write)(void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes);
    /* Makes all writes, allocations, punches and the size of the file durable. After a failure, nothing written since
     * the last successful flush may be believed durable. TY_E_IO also where no name leads to the file any more. */
    ty_status (*flush)(void *context, ty_file *file);
    /* The size of the file. */
    ty_status (*get_size)(void *context, ty_file *file, uint64_t *size_bytes);
    /* Cuts the file, or extends it with a hole that reads as zeros. */
    ty_status (*set_size)(void *context, ty_file *file, uint64_t size_bytes);
    /* Allocates disk space for a range, so that writing it cannot fail for want of space; content is kept, holes read
     * as zeros; a range beyond the end extends the file. Expected: TY_E_SPACE, TY_E_UNSUPPORTED (then the caller does
     * without). */
    ty_status (*allocate)(void *context, ty_file *file, uint64_t offset, uint64_t bytes);
    /* Gives the disk space of a range back; it then reads as zeros. Expected: TY_E_UNSUPPORTED. */
    ty_status (*punch)(void *context, ty_file *file, uint64_t offset, uint64_t bytes);
    /* The next range of the file at or after offset that may hold data other than zeros. TY_E_NOT_FOUND: none. */
    ty_status (*next_data)(void *context, ty_file *file, uint64_t offset, uint64_t *start, uint64_t *end);
    /* Maps a range of the file at exactly this address, over nothing (never replacing a mapping).
     * Expected: TY_E_ADDRESS (taken), TY_E_MEMORY. */
    ty_status (*map)(void *context, ty_file *file, void *address, size_t bytes, uint64_t offset, uint32_t flags);
    /* Unmaps what map mapped. */
    ty_status (*unmap)(void *context, ty_file *file, void *address, size_t bytes);
    /* For TY_MAP_SHARED: hands dirty pages of the mapped range to the file and waits; follow it with flush. */
    ty_status (*write_back)(void *context, ty_file *file, void *address, size_t bytes);
    /* Locks the file for this open handle, shared or exclusive, until it is closed. TY_E_BUSY: somebody else's. */
    ty_status (*lock)(void *context, ty_file *file, bool exclusive);
    /* Renames a file, replacing the target, atomically. */
    ty_status (*rename)(void *context, const char *from, const char *to);
    /* Removes a file. Expected: TY_E_NOT_FOUND. */
    ty_status (*remove)(void *context, const char *path);
    /* Makes changes of names in the folder that holds path durable. */
    ty_status (*flush_directory)(void *context, const char *path);
    /* May be NULL: then `write` is called for each. Does all the writes, in any order, several at a time; after a
     * failure any of them may have been done. They do not overlap. */
    ty_status (*write_many)(void *context, ty_file *file, const ty_write *writes, size_t count);
    /* May be NULL: then `write` and `flush` are called. Writes bytes at offset and makes them durable, and may leave
     * other writes of the file in doubt: one direct write with O_DSYNC, where there is such a thing. Several may be
     * under way at the same time. The range lies within the file and was written before. */
    ty_status (*write_durable)(void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes);
    /* May be NULL: then it is believed. Whether the open file is still usable, and some name leads to it: asked, beside
     * flush, before anything is said to be durable. Expected: TY_E_IO. */
    ty_status (*check)(void *context, ty_file *file);
    /* May be NULL: then nothing is done. Gives file the owner, group and permissions of `like`, as far as the process
     * may set them, and in no case more: TY_E_PERMISSION if somebody could open file who cannot open `like`. */
    ty_status (*protect)(void *context, ty_file *file, ty_file *like);
    /* May be NULL: then paths are taken as they are given. Writes the path of the file that path leads to through
     * links, whether there is one or not, with its 0, into the bytes of resolved: TY_STORAGE_PATH_MAX. The other files
     * of a heap lie beside that one. */
    ty_status (*resolve)(void *context, const char *path, char *resolved, size_t bytes);
    /* May be NULL: then nobody is asked. ask: until file is closed, asks whoever has the same file open for writing to
     * leave what it holds as it is, as long as that can wait. Else, for the writer: TY_E_BUSY if somebody asks. */
    ty_status (*hold)(void *context, ty_file *file, bool ask);
    /* May be NULL: then nothing keeps apart those who write beside the one that has the lock. begin: waits until no
     * other open handle of the same file has the turn, and takes it; else, or when the file is closed, gives it up. It
     * is independent of `lock` and `hold`. */
    ty_status (*turn)(void *context, ty_file *file, bool begin);
} ty_storage;

/* The built-in storage: direct I/O on files (buffered where the file system refuses it), OFD locks. Its descriptors
 * have high numbers; a program that closes them gets TY_E_IO from then on, and nothing is written to what has their
 * numbers then. A write beyond the limit of a file's size (ulimit -f) is TY_E_SPACE, and no signal. Thread-safe. */
TY_API const ty_storage *ty_storage_default(void);

/* A system_error for an operation that says behind a colon why it failed: the status' own words are left out. */
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
