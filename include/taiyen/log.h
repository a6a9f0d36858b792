/* Taiyen: write-ahead logs: sinks, and reading a log.
 *
 * Purpose: the write-ahead log of a transactional heap is a ring of fixed size on a *sink*. Normally the sink is a file
 * beside the heap (or on another device: ty_open_options.log_path), and this header is not needed. Other sinks: memory
 * (for tests, and for byte-addressable persistent memory), two sinks at once (tee), and a program's own.
 *
 * Contract of a sink: a write is durable when it returns TY_OK. Writes and reads are done whole or fail, are aligned to
 * the sink's block_bytes, and may run at the same time in several threads, on different blocks. A block that is being
 * written when the power fails may hold anything afterwards; other blocks are unchanged. A reader of the log of an open
 * heap may read blocks that are being written: the read may return anything for these, and is no failure.
 */
#ifndef TAIYEN_LOG_H
#define TAIYEN_LOG_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_log_sink {
    size_t struct_size;   /* sizeof(ty_log_sink) */
    void *context;        /* passed to every function; none may throw */
    uint32_t block_bytes; /* smallest unit that a power cut cannot tear into a neighbour: a power of two, 64 to 65536 */
    uint64_t size_bytes;  /* fixed; a multiple of block_bytes */
    /* Expected: TY_E_IO, TY_E_DAMAGED. */
    ty_status (*read)(void *context, uint64_t offset, void *buffer, size_t bytes);
    /* Durable on return. Expected: TY_E_IO, TY_E_SPACE. After a failure the blocks may hold anything. */
    ty_status (*write)(void *context, uint64_t offset, const void *buffer, size_t bytes);
    /* The heap does not use the sink any more. May be NULL. */
    void (*close)(void *context);
} ty_log_sink;

typedef struct ty_memory_log_options {
    size_t struct_size;        /* sizeof(ty_memory_log_options), set by the _INIT macro */
    bool write_back;           /* after a copy, write its cache lines back and fence, as byte-addressable persistent
                                  memory needs it (clwb, clflushopt or clflush, what the processor has) */
    uint32_t write_latency_ns; /* each write takes at least this long: emulates a device, for tests */
} ty_memory_log_options;
#define TY_MEMORY_LOG_OPTIONS_INIT                                                                                     \
    { sizeof(ty_memory_log_options), false, 0 }

/* A sink in memory that the caller owns (and has mapped from persistent memory, if it is to be durable): memory is
 * aligned to 64 bytes and size_bytes a multiple of 64, at least TY_LOG_BYTES_MIN. options may be NULL. The caller owns
 * *sink, until ty_log_sink_destroy; a heap can be opened again with its content.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_memory_log_create(void *memory, size_t size_bytes, const ty_memory_log_options *options,
                                                 ty_log_sink **sink);

/* A sink that writes to two sinks of the same size: a write is durable when both have it; a read takes the first that
 * succeeds. Its block size is the larger one of the two. The caller still owns the two.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY. Thread-safe. */
TY_API TY_CHECKED ty_status ty_tee_log_create(const ty_log_sink *first, const ty_log_sink *second, ty_log_sink **sink);

/* A sink on a file: the file is created if it does not exist (size_bytes, written once with zeros so that commits
 * overwrite), else used as it is. A heap creates its own; this function is for tees. storage NULL:
 * ty_storage_default().
 * Errors: TY_E_IO, TY_E_SPACE, TY_E_PERMISSION, TY_E_MISMATCH (another size), TY_E_MEMORY. Thread-safe. */
struct ty_storage;
TY_API TY_CHECKED ty_status ty_file_log_create(const char *path, uint64_t size_bytes, const struct ty_storage *storage,
                                               ty_log_sink **sink);

/* Frees a sink of the three functions above; NULL does nothing. No heap may be using it. Thread-safe. */
TY_API void ty_log_sink_destroy(ty_log_sink *sink);

#define TY_LOG_BYTES_MIN (1u << 20)
#define TY_LOG_STREAMS_MAX 8

/* The part of one log stream after the heap's last durable snapshot: ty_open_options.log_streams. */
typedef struct ty_log_stream {
    uint64_t start_position; /* offset of that snapshot in the stream; bytes, never decreasing */
    uint64_t end_position;   /* of the last frame that is there */
    uint64_t transactions;
    uint64_t record_bytes;
} ty_log_stream;

/* What a log file says. The first fields are known without its heap. */
typedef struct ty_log_info {
    size_t struct_size; /* sizeof(ty_log_info), set by the caller */
    uint32_t format_version;
    uint8_t heap_identity[16];
    uint64_t log_identity;
    uint64_t size_bytes; /* of its rings, one for each log stream */
    uint32_t block_bytes;
    bool of_heap;            /* a heap was given, and the log is its log; the fields below are then known */
    uint64_t start_position; /* offset of the heap's last durable snapshot in the log; bytes, never decreasing. In the
                                first log stream, as is the next */
    uint64_t end_position;   /* of the last frame that is there */
    uint64_t first_lsn;      /* of the first transaction after the snapshot */
    uint64_t transactions;   /* after the snapshot: what an open would replay */
    uint64_t frames;
    uint64_t record_bytes; /* of those transactions, without padding */
    uint64_t data_entries;
    uint64_t changed_bytes;
    uint64_t operations; /* allocations, frees, resizes, roots */
    uint64_t procedures;
    uint32_t streams;  /* known without the heap */
    uint64_t left_out; /* transactions that an open would not replay: one before them is missing, so they were not
                          acknowledged. Only in a log with several log streams */
    ty_log_stream in_stream[TY_LOG_STREAMS_MAX];
    uint64_t in_doubt; /* the LSN of the last transaction, if it is prepared and has no outcome; else 0 */
} ty_log_info;

/* The kind of a log entry that ty_log_read delivers. */
typedef enum ty_log_entry_kind {
    TY_LOG_TRANSACTION = 0, /* a transaction begins: LSN, position, size_bytes of its record */
    TY_LOG_DATA = 1,        /* changed bytes: address, size_bytes, bytes */
    TY_LOG_ALLOC = 2,       /* address, size_bytes */
    TY_LOG_FREE = 3,        /* address */
    TY_LOG_RESIZE = 4,      /* address, size_bytes: in place */
    TY_LOG_ROOT = 5,        /* address (or NULL), bytes: its name, size_bytes long */
    TY_LOG_PROCEDURE = 6,   /* procedure, bytes: its arguments, size_bytes long */
    TY_LOG_PREPARED = 7,    /* the transaction commits if its outcome, the next entry, says so; bytes: its description,
                               size_bytes long */
    TY_LOG_OUTCOME = 8,     /* of the transaction before, and of pending ones before that; size_bytes: 1: committed, 0:
                               rolled back */
    TY_LOG_PENDING =
        9 /* the transaction commits if the prepared one that follows does: one of several distributed transactions */
} ty_log_entry_kind;

typedef struct ty_log_entry {
    ty_log_entry_kind kind;
    uint16_t stream;  /* the log stream of the transaction, from 0 on */
    bool independent; /* replayed even if one before it is missing (TY_COMMIT_STREAM) */
    uint64_t lsn;
    uint64_t position;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t procedure;
    const void *bytes;
} ty_log_entry;
/* Called for an entry, which is valid during the call; false ends the call. */
typedef bool ty_log_entry_callback(const ty_log_entry *entry, void *context);

/* Reads the log of the heap at heap_path from its last durable snapshot to its end, calls back for each entry until the
 * callback returns false (callback may be NULL), and fills info (may be NULL). The files are those that an open with
 * these options would use: journal_path, log_path, log and storage matter alone. NULL: all defaults. heap_path NULL:
 * only the header of the log is read. Changes nothing; needs read permission; works while the heap is open elsewhere:
 * it delivers all that was acknowledged before the call, and later transactions as far as they are written, perhaps not
 * durably. Image and journal together say where the snapshot is: if a journal that is needed is missing, the log is not
 * read. Errors: TY_E_NOT_FOUND, TY_E_FORMAT, TY_E_UNSUPPORTED (the heap has no log), TY_E_MISMATCH (not this heap's
 * log, or its journal is missing or not its own), TY_E_DAMAGED (acknowledged transactions are unreadable; the detail
 * says where), TY_E_BUSY (some entries were delivered, and the heap's writer overwrote the rest meanwhile: read again),
 * TY_E_IO. Thread-safe.
 */
struct ty_open_options;
TY_API TY_CHECKED ty_status ty_log_read(const char *heap_path, const struct ty_open_options *options, ty_log_info *info,
                                        ty_log_entry_callback *callback, void *context);

#ifdef __cplusplus
}
#endif
#endif
