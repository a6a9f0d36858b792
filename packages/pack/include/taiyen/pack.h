/* Taiyen: packed heaps: a heap as one stream, unpacked elsewhere, defragmented, or as another kind (library
 * taiyen_pack).
 *
 * Purpose: write a whole heap as one compressed stream, to a file, a pipe, memory or a callback; create a heap of any
 * kind from it, at the same address or another one, with the same layout or defragmented; and report where each address
 * went.
 *
 * Vocabulary: a *packed stream* holds a heap's live blocks, their places, and its roots; docs/reference.md describes
 * its format. An unpacked heap is *moved* if a block's address is not what it was: at another base, or *defragmented*:
 * blocks of one size in a row, all spans full except the last of each size, extents of pages after them, nothing free
 * in between. The *moves* say where each old address is now.
 *
 * Guarantees:
 *  - Bytes of free memory never get into the stream; nor do blocks that the library keeps in the heap for itself
 *    (ty_each_internal_block): an undo history, reserved blocks.
 *  - A stream that is truncated, damaged, or hostile is refused with TY_E_FORMAT or TY_E_DAMAGED, and no heap remains.
 *    Each frame has a checksum.
 *  - A heap in files gets its name when it is whole and durable: until then it is a file beside it, NAME-unpacking. So
 *    does a packed file: NAME-packing. An existing file is never replaced. Packed files are accessible to their owner
 *    only.
 *  - A moved heap is refused unless something fixes its addresses (type descriptors, a callback, or moves that the
 *    caller takes): an address is never silently wrong.
 *
 * Cost: one pass over the live blocks. Buffers: three megabytes for each thread and for two more; the layout takes a
 * bit for each block. With LZ4 about as fast as LZ4 itself.
 */
#ifndef TAIYEN_PACK_H
#define TAIYEN_PACK_H

#include "types.h"
#include <taiyen/base.h>
#include <taiyen/heap.h>
#include <taiyen/persist.h>
#include <taiyen/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ty_codec {
    TY_CODEC_LZ4 = 0,
    TY_CODEC_ZSTD = 1,
    TY_CODEC_NONE = 2 /* uncompressed */
} ty_codec;

typedef struct ty_pack_options {
    size_t struct_size; /* sizeof(ty_pack_options), set by the _INIT macro */
    ty_codec codec;
    int level;                      /* LZ4: 3 to 12, slower and denser. Zstandard: 1 to 22, or negative. 0: fast */
    uint32_t threads;               /* that compress; 0: one for each processor that the process may use */
    ty_progress_callback *progress; /* counts bytes of live blocks; false stops: TY_E_BUSY. May be NULL */
    void *progress_context;
} ty_pack_options;
#define TY_PACK_OPTIONS_INIT                                                                                           \
    { sizeof(ty_pack_options), TY_CODEC_LZ4, 0, 0, NULL, NULL }

typedef struct ty_pack_report {
    size_t struct_size; /* sizeof(ty_pack_report), set by the caller */
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t packed_bytes;    /* of the whole stream */
    uint64_t internal_blocks; /* of the library, left out */
    uint64_t duration_ns;
} ty_pack_report;

/* Takes the next bytes of the stream. An error ends the packing and is its result. */
typedef ty_status ty_pack_writer(const void *bytes, size_t size, void *context);
/* Supplies the next bytes of a stream: up to size, *got of them; 0 only at its end. An error ends the unpacking and is
 * its result. */
typedef ty_status ty_pack_reader(void *bytes, size_t size, size_t *got, void *context);

/* Packs a heap of any kind. options and report may be NULL. The writer is called in the calling thread.
 * No thread may write to the heap's blocks meanwhile; allocations of others wait. For a transactional heap, a read
 * section is held: commits wait. The callbacks must not allocate or free on the heap.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_BUSY (stopped; the calling thread's transaction is under way),
 * TY_E_UNSUPPORTED (a checked heap, a concurrent one, the heap after the process's malloc; a mapped heap, code.h, that
 * is open for reading without TY_CODE_IGNORED), TY_E_DAMAGED, and those of the writer. The heap is unchanged. */
TY_API TY_CHECKED ty_status ty_pack(ty_heap *heap, const ty_pack_options *options, ty_pack_writer *writer,
                                    void *context, ty_pack_report *report);
/* Packs to a file that must not exist yet: durable when this returns. Further errors: TY_E_EXISTS, TY_E_SPACE, TY_E_IO,
 * TY_E_NOT_FOUND, TY_E_PERMISSION. */
TY_API TY_CHECKED ty_status ty_pack_file(ty_heap *heap, const char *path, const ty_pack_options *options,
                                         ty_pack_report *report);
/* Packs to an open file, pipe or socket, from its current offset on. Flushes nothing. */
TY_API TY_CHECKED ty_status ty_pack_descriptor(ty_heap *heap, int descriptor, const ty_pack_options *options,
                                               ty_pack_report *report);
/* Packs to memory from malloc: *bytes, of *size bytes; free it with free. */
TY_API TY_CHECKED ty_status ty_pack_memory(ty_heap *heap, const ty_pack_options *options, void **bytes, size_t *size,
                                           ty_pack_report *report);

/* ---- Where addresses went. */

typedef struct ty_moves ty_moves;

/* The new address of an address of the packed heap, which may be inside a block; NULL if no block was there. O(1).
 * Thread-safe. */
TY_API void *ty_moved(const ty_moves *moves, const void *old_address);
/* Updates a pointer variable, whose address is passed, to its new value: ty_move_pointer(moves, &node->next). False,
 * with the variable unchanged, if it pointed to no block: NULL, or an address elsewhere. Thread-safe. */
TY_API bool ty_move_pointer(const ty_moves *moves, void *variable);
/* If all blocks moved by the same distance (only the base differs): *offset is new address minus old, and the result is
 * true.
 */
TY_API bool ty_moves_offset(const ty_moves *moves, ptrdiff_t *offset);
/* Calls back for each block, in the order of old addresses, until the callback returns false. The old address must not
 * be dereferenced; the block is the new one. */
typedef bool ty_move_block_callback(const void *old_address, const ty_block *block, void *context);
TY_API void ty_each_move(const ty_moves *moves, ty_move_block_callback *callback, void *context);
/* Frees the moves; NULL does nothing. */
TY_API void ty_moves_destroy(ty_moves *moves);

/* ---- Unpacking. */

typedef enum ty_place {
    TY_PLACE_SAME = 0,   /* at the old address, or TY_E_ADDRESS */
    TY_PLACE_EITHER = 1, /* at the old address, or elsewhere if that is taken */
    TY_PLACE_OTHER = 2   /* where the library finds room, or at `base` */
} ty_place;

typedef enum ty_layout {
    TY_LAYOUT_SAME = 0,       /* each block keeps its distance from the base, and its size */
    TY_LAYOUT_DEFRAGMENT = 1, /* blocks get a new, dense layout, with the class table that the heap had. An alignment
                                 from ty_alloc_aligned is kept only as far as the new block's class has it, or a page */
    TY_LAYOUT_LINE = 2,       /* the same with TY_CLASSES_CACHE_LINE */
    TY_LAYOUT_PACKED = 3      /* the same with TY_CLASSES_DENSE */
} ty_layout;

/* Called when a moved heap is unpacked, before others can see it and before it gets its name: roots are right, and each
 * block holds the old addresses. An error ends the unpacking and is its result. */
typedef ty_status ty_fix_callback(ty_heap *heap, const ty_moves *moves, void *context);

typedef struct ty_unpack_options {
    size_t struct_size; /* sizeof(ty_unpack_options), set by the _INIT macro */
    ty_kind kind;       /* TY_KIND_DEFAULT: volatile without a path; with one, the kind that it was packed from if that
                           lives in files, else a snapshot heap */
    const char *path;   /* of a heap in files: nothing may exist there */
    const ty_open_options *open; /* how it is opened then; NULL: all defaults. mode, kind, limit_bytes, base and classes
                                    are ignored */
    size_t limit_bytes;          /* 0: as before. TY_E_MEMORY if that is too little */
    ty_place place;
    void *base; /* for TY_PLACE_OTHER; NULL: the library chooses one */
    ty_layout layout;
    uint32_t threads;      /* 0: one for each processor that the process may use */
    const ty_types *types; /* type descriptors that fix the addresses of a moved heap; NULL: those that the heap stores
                              (ty_types_keep), if fix is NULL */
    ty_fix_callback *fix;  /* fixes what type descriptors do not; called after that */
    void *fix_context;
    bool force; /* continue although the pointer audit has open mismatches, missing hooks among them, or nothing fixes
                   addresses */
    ty_progress_callback *progress; /* as in ty_pack_options */
    void *progress_context;
} ty_unpack_options;
#define TY_UNPACK_OPTIONS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(ty_unpack_options), TY_KIND_DEFAULT, NULL, NULL, 0, TY_PLACE_SAME, NULL, TY_LAYOUT_SAME, 0, NULL, NULL, \
            NULL, false, NULL, NULL                                                                                    \
    }

typedef struct ty_unpack_report {
    size_t struct_size; /* sizeof(ty_unpack_report), set by the caller */
    ty_kind kind;
    bool moved;
    void *old_base;
    void *base;
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t moved_blocks;   /* whose distance from the base changed */
    uint64_t old_used_bytes; /* from the base to the end of the highest block, when it was packed */
    uint64_t used_bytes;     /* and now */
    uint64_t fixed_pointers; /* by type descriptors */
    uint64_t packed_bytes;   /* read */
    uint64_t lost_roots;     /* roots that pointed to no live block */
    uint64_t duration_ns;
    char text[256]; /* all of this, as one sentence for people to read */
} ty_unpack_report;

/* Creates a heap from a stream. options, heap, moves and report may be NULL; heap NULL: a heap in files is closed in
 * order (without a path: TY_E_ARGUMENT). The caller destroys *moves, which may outlive the heap.
 * Errors: TY_E_ARGUMENT, TY_E_FORMAT (not a packed heap, or of another version), TY_E_DAMAGED (also if bytes follow its
 * end), TY_E_ADDRESS, TY_E_MEMORY, TY_E_MISMATCH (type descriptors and content differ; the detail names the first
 * mismatch), TY_E_UNSUPPORTED (moved, and nothing fixes addresses), TY_E_BUSY (stopped; or the same path is being
 * unpacked elsewhere), those of ty_open and of the reader. After an error no heap exists, and nothing under its path
 * (except if the final open of a heap in files fails: the heap is whole then, and can be opened again). Thread-safe. */
TY_API TY_CHECKED ty_status ty_unpack(ty_pack_reader *reader, void *context, const ty_unpack_options *options,
                                      ty_heap **heap, ty_moves **moves, ty_unpack_report *report);
TY_API TY_CHECKED ty_status ty_unpack_file(const char *path, const ty_unpack_options *options, ty_heap **heap,
                                           ty_moves **moves, ty_unpack_report *report);
/* Reads no more than the stream's bytes. */
TY_API TY_CHECKED ty_status ty_unpack_descriptor(int descriptor, const ty_unpack_options *options, ty_heap **heap,
                                                 ty_moves **moves, ty_unpack_report *report);
TY_API TY_CHECKED ty_status ty_unpack_memory(const void *bytes, size_t size, const ty_unpack_options *options,
                                             ty_heap **heap, ty_moves **moves, ty_unpack_report *report);

/* ---- Compaction. */

typedef struct ty_compact_options {
    size_t struct_size;    /* sizeof(ty_compact_options), set by the _INIT macro */
    const ty_types *types; /* as in ty_unpack_options, as are the next three */
    ty_fix_callback *fix;  /* after a failure or an exception, the heap must be discarded */
    void *fix_context;
    bool force;
    uint32_t threads;               /* 0: one for each processor that the process may use */
    ty_progress_callback *progress; /* counts bytes of live blocks, twice. In the first half, false stops: TY_E_BUSY */
    void *progress_context;
} ty_compact_options;
#define TY_COMPACT_OPTIONS_INIT                                                                                        \
    { sizeof(ty_compact_options), NULL, NULL, NULL, false, 0, NULL, NULL }

typedef struct ty_compact_report {
    size_t struct_size; /* sizeof(ty_compact_report), set by the caller */
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t moved_blocks;
    uint64_t old_used_bytes; /* from the base to the end of the highest block */
    uint64_t used_bytes;
    uint64_t fixed_pointers;
    uint64_t duration_ns;
} ty_compact_report;

/* Compacts a heap in place: defragments its blocks as TY_LAYOUT_DEFRAGMENT does, fixes their addresses, takes a
 * snapshot, and releases free memory. Pointers that the program has elsewhere are wrong afterwards, unless its fix
 * callback updates them. The live blocks are kept packed in memory meanwhile. options and report may be NULL.
 * A snapshot heap is first made durable; whatever happens then, its files hold either the heap as before or the
 * compacted one, and disk space is released when the snapshot is checkpointed, or by ty_close. An archive heap is left
 * as a mixture by a crash meanwhile.
 * Errors: TY_E_ARGUMENT; TY_E_PERMISSION, TY_E_FORKED; TY_E_UNSUPPORTED (nothing fixes addresses; a transactional heap:
 * open it as a snapshot heap; a concurrent or checked one), TY_E_BUSY (undo has its buffers in the heap; stopped),
 * TY_E_MISMATCH (type descriptors and content differ), TY_E_MEMORY, TY_E_SPACE, TY_E_IO. After an error the heap is
 * unchanged; or it is compacted, if only the snapshot failed, which can be taken again; or, if the detail says so, it
 * must be discarded, and its files hold the heap as before. No thread may use the heap meanwhile. */
TY_API TY_CHECKED ty_status ty_compact(ty_heap *heap, const ty_compact_options *options, ty_compact_report *report);

typedef struct ty_pack_info {
    size_t struct_size; /* sizeof(ty_pack_info), set by the caller */
    uint32_t format_version;
    ty_kind kind;
    ty_class_table classes;
    void *base;
    size_t limit_bytes;
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t roots;
    uint64_t packed_unix_s;
} ty_pack_info;

/* Reads the header of a stream, its first 128 bytes. Errors: TY_E_FORMAT, TY_E_DAMAGED, those of the reader. */
TY_API TY_CHECKED ty_status ty_read_pack_info(ty_pack_reader *reader, void *context, ty_pack_info *info);
TY_API TY_CHECKED ty_status ty_read_pack_info_file(const char *path, ty_pack_info *info);

/* Verifies a whole stream as ty_unpack does, without creating a heap: all checksums, and that it is complete. Memory:
 * as ty_unpack without the heap. Errors: as ty_unpack. */
TY_API TY_CHECKED ty_status ty_verify_pack(ty_pack_reader *reader, void *context, ty_progress_callback *progress,
                                           void *progress_context, ty_pack_info *info);

#ifdef __cplusplus
}
#endif
#endif
