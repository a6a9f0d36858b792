/* Taiyen: heaps packed into a stream, and unpacked: elsewhere, smaller, as another kind (library taiyen_pack).
 *
 * Purpose: write all of a heap as one compressed stream, to a file, a pipe, memory or a callback; make a heap of any
 * kind of it again, at the same place or another one, with the same layout or defragmented; and tell where each address
 * went.
 *
 * Vocabulary: a *packed stream* holds a heap's live blocks, their places, and its roots; docs/reference.md describes
 * its format. An unpacked heap is *moved* if a block's address is not what it was: at another base, or *defragmented*:
 * blocks of one size in a row, spans full but the last of each size, runs of pages behind them, nothing free in
 * between. The *moves* say where each old address is now.
 *
 * Guarantees:
 *  - Bytes of free memory never get into the stream; nor do blocks that the library keeps in the heap for itself
 *    (ty_each_own_block): an undo history, reserved blocks.
 *  - A stream that is cut off, damaged, or made by somebody hostile is refused with TY_E_FORMAT or TY_E_DAMAGED, and no
 *    heap is left. Each frame has a checksum.
 *  - A heap in files gets its name when it is whole and durable: until then it lies beside it, as NAME-unpacking. So
 *    does a packed file, as NAME-packing. A file that is there is never replaced.
 *    Packed files are for their owner alone.
 *  - A heap that is moved without anybody who fixes its addresses (type descriptors, a callback, or moves that the
 * caller takes) is refused: never a silently wrong address.
 *
 * Cost: one pass over what is live. Buffers: three megabytes for each thread and for
 *   two more; the layout takes a bit a block. With LZ4
 * about as fast as LZ4 itself.
 */
#ifndef TAIYEN_PACK_H
#define TAIYEN_PACK_H

#include "base.h"
#include "heap.h"
#include "persist.h"
#include "status.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ty_codec {
    TY_CODEC_LZ4 = 0,
    TY_CODEC_ZSTD = 1,
    TY_CODEC_NONE = 2 /* as the bytes are */
} ty_codec;

typedef struct ty_pack_options {
    size_t struct_size; /* sizeof(ty_pack_options), set by the _INIT macro */
    ty_codec codec;
    int level;        /* LZ4: 3 to 12, slower and tighter. Zstandard: 1 to 22, or negative ones. 0: fast */
    uint32_t threads; /* that compress; 0: one for each processor that the process may use */
    ty_progress_callback *progress; /* NULL: nobody is told. False stops: TY_E_BUSY. Bytes of live blocks */
    void *progress_context;
} ty_pack_options;
#define TY_PACK_OPTIONS_INIT                                                                                           \
    { sizeof(ty_pack_options), TY_CODEC_LZ4, 0, 0, NULL, NULL }

typedef struct ty_pack_report {
    size_t struct_size; /* sizeof(ty_pack_report), set by the caller */
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t packed_bytes; /* of the whole stream */
    uint64_t own_blocks;   /* of the library, left out */
    uint64_t duration_ns;
} ty_pack_report;

/* Takes the next bytes of the stream. An error ends the packing and is its result. */
typedef ty_status ty_pack_writer(const void *bytes, size_t size, void *context);
/* Gives the next bytes of a stream: up to size, *got of them; 0 only at its end. An error is the unpacking's result. */
typedef ty_status ty_pack_reader(void *bytes, size_t size, size_t *got, void *context);

/* Packs a heap of any kind. options and report may be NULL. The writer is called in the calling thread.
 * No thread may write to the heap's blocks meanwhile; allocations of others wait. For a transactional heap, a read
 * section is held: commits wait. The callbacks must not allocate or free on the heap.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_BUSY (stopped; the calling thread's transaction is under way),
 * TY_E_UNSUPPORTED (a checked heap, a concurrent one, the heap behind the process's malloc), TY_E_DAMAGED, and those of
 * the writer. The heap is as it was. */
TY_API TY_CHECKED ty_status ty_pack(ty_heap *heap, const ty_pack_options *options, ty_pack_writer *writer,
                                    void *context, ty_pack_report *report);
/* To a file that is not there yet: durable when this returns. Errors besides: TY_E_EXISTS, TY_E_SPACE, TY_E_IO,
 * TY_E_NOT_FOUND, TY_E_PERMISSION. */
TY_API TY_CHECKED ty_status ty_pack_file(ty_heap *heap, const char *path, const ty_pack_options *options,
                                         ty_pack_report *report);
/* To an open file, pipe or socket, from its current place on. Nothing is flushed. */
TY_API TY_CHECKED ty_status ty_pack_descriptor(ty_heap *heap, int descriptor, const ty_pack_options *options,
                                               ty_pack_report *report);
/* To memory of the C library (malloc): *bytes of *size, to be freed with free. */
TY_API TY_CHECKED ty_status ty_pack_memory(ty_heap *heap, const ty_pack_options *options, void **bytes, size_t *size,
                                           ty_pack_report *report);

/* ---- Where addresses went. */

typedef struct ty_moves ty_moves;

/* Where an address of the packed heap is now, also one inside of a block; NULL if no block was there. Constant time.
 * Thread-safe. */
TY_API void *ty_moved(const ty_moves *moves, const void *old_address);
/* Gives a pointer variable, whose address is handed in, its new value: ty_move_pointer(moves, &node->next). False, with
 * the variable as it was, if it led to no block: NULL, or something elsewhere. Thread-safe. */
TY_API bool ty_move_pointer(const ty_moves *moves, void *variable);
/* New address minus old one of all blocks, if that is the same for all (another base and no more): *offset, and true.
 */
TY_API bool ty_moves_offset(const ty_moves *moves, ptrdiff_t *offset);
/* Calls back for each block, in the order of old addresses, until the callback returns false. The old address is no
 * memory any more; the block is the new one. */
typedef bool ty_move_block_callback(const void *old_address, const ty_block *block, void *context);
TY_API void ty_each_move(const ty_moves *moves, ty_move_block_callback *callback, void *context);
/* Frees what knows of the moves; NULL does nothing. */
TY_API void ty_moves_destroy(ty_moves *moves);

/* ---- Unpacking. */

typedef enum ty_place {
    TY_PLACE_SAME = 0,   /* where it was, or TY_E_ADDRESS */
    TY_PLACE_EITHER = 1, /* where it was, or elsewhere if that is taken */
    TY_PLACE_OTHER = 2   /* where the library finds a place, or at `base` */
} ty_place;

typedef enum ty_layout {
    TY_LAYOUT_SAME = 0,       /* each block keeps its distance from the base, and its size */
    TY_LAYOUT_DEFRAGMENT = 1, /* blocks are laid out anew, with the class table that the heap had. Of the alignment that
                                 ty_alloc_aligned gave, as much is kept as the new block's class has, or a page */
    TY_LAYOUT_LINE = 2,       /* and with TY_CLASSES_CACHE_LINE */
    TY_LAYOUT_PACKED = 3      /* and with TY_CLASSES_DENSE */
} ty_layout;

/* Called when a heap is unpacked that moved, before anybody else can see it and before it gets its name: roots are
 * right, and each block holds the addresses of before. An error ends the unpacking and is its result. */
typedef ty_status ty_fix_callback(ty_heap *heap, const ty_moves *moves, void *context);

typedef struct ty_unpack_options {
    size_t struct_size; /* sizeof(ty_unpack_options), set by the _INIT macro */
    ty_kind kind;     /* TY_KIND_DEFAULT: volatile without a path; with one a snapshot heap, or as it was packed if that
                         was a kind that lives in files */
    const char *path; /* of a heap in files: nothing may be there */
    const ty_open_options *open; /* how it is opened then; NULL: all defaults. mode, kind, limit_bytes, base and classes
                                    are not looked at */
    size_t limit_bytes;          /* 0: as it was. TY_E_MEMORY if that is too little */
    ty_place place;
    void *base; /* of TY_PLACE_OTHER; NULL: the library finds a place */
    ty_layout layout;
    uint32_t threads;      /* 0: one for each processor that the process may use */
    const ty_types *types; /* that fix the addresses of a moved heap; NULL: those that the heap keeps
                                (ty_types_keep), if there is no fix */
    ty_fix_callback *fix;  /* fixes what type descriptors do not; called after them */
    void *fix_context;
    bool force; /* go on where the pointer audit has open findings, hooks among them, or nobody fixes
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
    uint64_t old_used_bytes; /* from the base to the end of the highest block, as it was packed */
    uint64_t used_bytes;     /* and now */
    uint64_t fixed_pointers; /* by type descriptors */
    uint64_t packed_bytes;   /* read */
    uint64_t lost_roots;     /* that led to no live block */
    uint64_t duration_ns;
    char text[256]; /* all of this as one sentence for a person */
} ty_unpack_report;

/* Makes a heap of a stream. options, heap, moves and report may be NULL; heap NULL: a heap in files is closed in order
 * (without a path it is TY_E_ARGUMENT). *moves is to be destroyed by the caller, and outlives the heap.
 * Errors: TY_E_ARGUMENT, TY_E_FORMAT (no packed heap, or of another version), TY_E_DAMAGED (also where bytes follow its
 * end), TY_E_ADDRESS, TY_E_MEMORY, TY_E_MISMATCH (type descriptors and content differ; the detail names the first
 * finding), TY_E_UNSUPPORTED (moved, and nobody fixes addresses), TY_E_BUSY (stopped; the same path is being unpacked
 * elsewhere), those of ty_open and of the reader. Then there is no heap, and nothing under its path (but for a failure
 * of the last open of a heap in files, which is whole by then, and can be opened again). Thread-safe. */
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
    ty_fix_callback *fix;  /* a failure, or what it throws, leaves a heap that is to be discarded */
    void *fix_context;
    bool force;
    uint32_t threads;               /* 0: one for each processor that the process may use */
    ty_progress_callback *progress; /* bytes of live blocks, twice. In the first half, false stops: TY_E_BUSY */
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

/* Lays the blocks of a heap out anew, in the heap itself, as TY_LAYOUT_DEFRAGMENT does; fixes their addresses, takes a
 * snapshot, and gives free memory back. Pointers that the program has elsewhere are wrong afterwards, but for what its
 * fix callback does about them. The live blocks are kept packed in memory meanwhile. options and report may be NULL.
 * Of a snapshot heap, what was done since the last snapshot is made durable first; whatever happens then, the files
 * hold the heap of before or the compacted one, and the disk's space goes back as the snapshot is checkpointed, or with
 * ty_close. Of an archive heap, a crash meanwhile leaves a mixture. Errors: TY_E_ARGUMENT; TY_E_PERMISSION,
 * TY_E_FORKED; TY_E_UNSUPPORTED (nobody fixes addresses; a transactional heap: open it as a snapshot heap; a concurrent
 * or checked one), TY_E_BUSY (undo has its buffers in the heap; stopped), TY_E_MISMATCH (type descriptors and content
 * differ), TY_E_MEMORY, TY_E_SPACE, TY_E_IO. The heap is then as it was; or it is compacted, if only the snapshot
 * failed, which can be taken again; or, where the detail says so, it is to be discarded, and its files hold the heap of
 * before. No thread may use the heap meanwhile. */
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

/* What a stream's first 128 bytes say. Errors: TY_E_FORMAT, TY_E_DAMAGED, those of the reader. */
TY_API TY_CHECKED ty_status ty_read_pack_info(ty_pack_reader *reader, void *context, ty_pack_info *info);
TY_API TY_CHECKED ty_status ty_read_pack_info_file(const char *path, ty_pack_info *info);

/* Goes over a whole stream as ty_unpack does, but makes no heap: all checksums, and that it is whole. Memory: as
 * ty_unpack without the heap. Errors: as ty_unpack. */
TY_API TY_CHECKED ty_status ty_verify_pack(ty_pack_reader *reader, void *context, ty_progress_callback *progress,
                                           void *progress_context, ty_pack_info *info);

#ifdef __cplusplus
}
#endif
#endif
