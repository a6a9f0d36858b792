/* Taiyen: type descriptors: where the pointers of a program's types are (library taiyen_pack).
 *
 * Purpose: describe the pointers of a type once; then heaps are relocated and defragmented without further code of the
 * program, and the pointer audit verifies that the description is true.
 *
 * Vocabulary: a *type descriptor* describes a type: its size, and its *fields*: the places in it that hold addresses,
 * or objects that do. Bytes that no field names hold no addresses. A *root's* type descriptor says what the named root
 * points to; the rest of the heap is reached from there. An object is *reached* when a root, or a pointer in a reached
 * object, points to it. The *pointer audit* walks all that is reached, and all live blocks, and reports *mismatches*:
 * where type descriptors and content differ.
 *
 * Guarantees: a type descriptor is a claim, and is not trusted: addresses are followed only to live blocks, counts only
 * as far as the block has room. A description read from a text is hostile until it is checked.
 *
 * Cost: a walk touches each reached object once, and needs memory of a bit for each 8 bytes of the blocks in use and 16
 * bytes for each block.
 *
 * Functions are thread-safe for different sets of type descriptors; one set is externally serialised.
 */
#ifndef TAIYEN_TYPES_H
#define TAIYEN_TYPES_H

#include <taiyen/base.h>
#include <taiyen/heap.h>
#include <taiyen/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ty_type ty_type;
typedef struct ty_tracer ty_tracer; /* what a hook passes its pointers to */

/* A count of consecutive objects. All zero: one. */
typedef enum ty_count_kind {
    TY_COUNT_FIXED = 0, /* `number`; 0 counts as 1 */
    TY_COUNT_FIELD = 1, /* the unsigned integer of `bytes` bytes (1, 2, 4, 8) at `offset` in the object that has the
                           field times `number` (0 counts as 1) */
    TY_COUNT_END = 2,   /* up to the address at `offset` in the object that has the field */
    TY_COUNT_BLOCK = 3  /* as many as the rest of the block has room for */
} ty_count_kind;
typedef struct ty_count {
    ty_count_kind kind;
    size_t number;
    size_t offset;
    size_t bytes;
} ty_count;

typedef enum ty_field_kind {
    TY_FIELD_POINTER = 1,   /* points to the first of `there` objects of type `descriptor`, which it reaches; or is
                               NULL */
    TY_FIELD_REFERENCE = 2, /* points anywhere into a live block that is reached in another way; or is NULL */
    TY_FIELD_PLACE = 3,     /* an address in, or just past, what the pointer at `base_offset` of the same object points
                               to (an end, a cursor): it keeps its distance from that; or is NULL */
    TY_FIELD_NESTED = 4,    /* not an address, but an object of type `descriptor` */
    TY_FIELD_HEAP = 5,      /* the heap's base (ty_heap_base), as taiyen::allocator has it; or is NULL */
    TY_FIELD_PLAIN = 6      /* words of 8 bytes that hold no addresses, whatever they look like: for example a buffer
                               with remains of earlier content. The pointer audit skips them */
} ty_field_kind;

typedef struct ty_field {
    const char *name;
    ty_field_kind kind;
    size_t offset;             /* in the object; a multiple of 8 for addresses */
    const ty_type *descriptor; /* NULL (not for TY_FIELD_NESTED): what it points to holds no addresses */
    ty_count here;             /* consecutive ones at offset. Not TY_COUNT_END */
    ty_count there;            /* TY_FIELD_POINTER: objects that the address points to */
    uint64_t tag_mask;         /* bits of the word that are not part of the address; they are kept */
    size_t base_offset;        /* TY_FIELD_PLACE */
} ty_field;

/* A hook for what fields cannot express (unions, compressed addresses). It passes every address in the object to a
 * ty_trace_ function. Called once for each reached object, after the object's fields. It may read the object, but
 * follow an address only after passing it on. */
typedef void ty_trace_callback(ty_tracer *tracer, void *object, void *context);
/* A hook for what depends on addresses (a table keyed by pointer). Called for each reached object after a move, when
 * all addresses of the heap are fixed; it may write to the object and what it points to, and must not allocate or
 * free. */
typedef void ty_move_callback(void *object, void *context);

struct ty_type {
    const char *name;
    size_t size_bytes;
    const ty_field *fields;
    size_t field_count;
    ty_trace_callback *trace; /* NULL: the fields are complete */
    ty_move_callback *moved;  /* NULL: nothing depends on addresses */
    void *context;
};

/* ---- In a hook. */

/* Trace an address, with what it points to, as TY_FIELD_POINTER; and one as TY_FIELD_REFERENCE. word is the place of
 * the address, in the object's block. After a move, it holds the new address when the call returns. If the set has a
 * type descriptor of the same name and size, that is used instead of `type`; else an invalid type descriptor ends the
 * pointer audit or fix with TY_E_ARGUMENT. */
TY_API void ty_trace_pointer(ty_tracer *tracer, void *word, const ty_type *type, size_t count, uint64_t tag_mask);
TY_API void ty_trace_reference(ty_tracer *tracer, void *word, uint64_t tag_mask);
/* Traces objects of another type inside this one. */
TY_API void ty_trace_nested(ty_tracer *tracer, void *objects, const ty_type *type, size_t count);
/* For an address that is stored encoded: traces what it points to, and returns the new address (the same, if nothing
 * moves), which the hook encodes and writes back. */
TY_API void *ty_trace_address(ty_tracer *tracer, const void *address, const ty_type *type, size_t count);

/* ---- Descriptions in C. TY_TYPE(struct_name, fields...) defines `const ty_type struct_name_descriptor`; declare type
 * descriptors that refer to each other first: TY_TYPE_DECLARE(struct_name). One line for each pointer:
 *
 *     struct node { struct node *next; char *text; uint32_t count; struct item *items; }; TY_TYPE(node,
 *     TY_POINTER(node, next, &node_descriptor), TY_BYTES(node, text),
 *              TY_POINTER_COUNTED(node, items, count, &item_descriptor))
 */
#define TY_TYPE_DECLARE(type) extern const ty_type type##_descriptor
#define TY_TYPE(type, ...)                                                                                             \
    static const ty_field type##_fields_[] = {__VA_ARGS__};                                                            \
    const ty_type type##_descriptor =                                                                                  \
        {#type, sizeof(struct type), type##_fields_, sizeof type##_fields_ / sizeof type##_fields_[0], NULL, NULL,     \
         NULL};
/* The same with hooks, either of which may be NULL. */
#define TY_TYPE_HOOKED(type, trace, moved, context, ...)                                                               \
    static const ty_field type##_fields_[] = {__VA_ARGS__};                                                            \
    const ty_type type##_descriptor = {                                                                                \
        #type,  sizeof(struct type), type##_fields_, sizeof type##_fields_ / sizeof type##_fields_[0], trace, moved,   \
        context};
/* A type without addresses. */
#define TY_TYPE_PLAIN(type) const ty_type type##_descriptor = {#type, sizeof(struct type), NULL, 0, NULL, NULL, NULL};

#define TY_NAME_(field) #field
#define TY_COUNT_ONE_                                                                                                  \
    { TY_COUNT_FIXED, 1, 0, 0 }
#define TY_SIZE_OF_(type, field) sizeof(((struct type *)0)->field)
/* A pointer to one object. */
#define TY_POINTER(type, field, descriptor)                                                                            \
    { TY_NAME_(field), TY_FIELD_POINTER, offsetof(struct type, field), descriptor, TY_COUNT_ONE_, TY_COUNT_ONE_, 0, 0 }
/* A pointer to as many objects as the integer `count_field` of the same struct says. */
#define TY_POINTER_COUNTED(type, field, count_field, descriptor)                                                       \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_POINTER, offsetof(struct type, field), descriptor, TY_COUNT_ONE_,                    \
            {TY_COUNT_FIELD, 1, offsetof(struct type, count_field), TY_SIZE_OF_(type, count_field)}, 0, 0              \
    }
/* A pointer to as many objects as the block has room for. */
#define TY_POINTER_BLOCK(type, field, descriptor)                                                                      \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_POINTER, offsetof(struct type, field), descriptor, TY_COUNT_ONE_,                    \
            {TY_COUNT_BLOCK, 0, 0, 0}, 0, 0                                                                            \
    }
/* A pointer to bytes without addresses: texts, numbers. */
#define TY_BYTES(type, field) TY_POINTER(type, field, NULL)
#define TY_REFERENCE(type, field)                                                                                      \
    { TY_NAME_(field), TY_FIELD_REFERENCE, offsetof(struct type, field), NULL, TY_COUNT_ONE_, TY_COUNT_ONE_, 0, 0 }
#define TY_PLACE(type, field, base_field)                                                                              \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_PLACE, offsetof(struct type, field), NULL, TY_COUNT_ONE_, TY_COUNT_ONE_, 0,          \
            offsetof(struct type, base_field)                                                                          \
    }
/* The base of the heap that the object is in. */
#define TY_HEAP_BASE(type, field)                                                                                      \
    { TY_NAME_(field), TY_FIELD_HEAP, offsetof(struct type, field), NULL, TY_COUNT_ONE_, TY_COUNT_ONE_, 0, 0 }
/* `words` words of 8 bytes, from a field on, that hold no addresses, whatever they look like. */
#define TY_PLAIN(type, field, words)                                                                                   \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_PLAIN, offsetof(struct type, field), NULL, {TY_COUNT_FIXED, words, 0, 0},            \
            TY_COUNT_ONE_, 0, 0                                                                                        \
    }
/* A tagged pointer: an address with bits of the program's own in it. */
#define TY_POINTER_TAGGED(type, field, mask, descriptor)                                                               \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_POINTER, offsetof(struct type, field), descriptor, TY_COUNT_ONE_, TY_COUNT_ONE_,     \
            mask, 0                                                                                                    \
    }
/* An array of addresses in the struct itself: `struct node *children[8]`. */
#define TY_POINTERS(type, field, descriptor)                                                                           \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_POINTER, offsetof(struct type, field), descriptor,                                   \
            {TY_COUNT_FIXED, TY_SIZE_OF_(type, field) / sizeof(void *), 0, 0}, TY_COUNT_ONE_, 0, 0                     \
    }
/* A flexible array member of pointers, with as many elements as the integer count_field says. */
#define TY_POINTERS_COUNTED(type, field, count_field, descriptor)                                                      \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_POINTER, offsetof(struct type, field), descriptor,                                   \
            {TY_COUNT_FIELD, 1, offsetof(struct type, count_field), TY_SIZE_OF_(type, count_field)}, TY_COUNT_ONE_, 0, \
            0                                                                                                          \
    }
#define TY_NESTED(type, field, descriptor)                                                                             \
    { TY_NAME_(field), TY_FIELD_NESTED, offsetof(struct type, field), descriptor, TY_COUNT_ONE_, TY_COUNT_ONE_, 0, 0 }
/* An array of structs in the struct itself: of fixed length, and of the length in count_field. */
#define TY_NESTED_ARRAY(type, field, number, descriptor)                                                               \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_NESTED, offsetof(struct type, field), descriptor, {TY_COUNT_FIXED, number, 0, 0},    \
            TY_COUNT_ONE_, 0, 0                                                                                        \
    }
#define TY_NESTED_COUNTED(type, field, count_field, descriptor)                                                        \
    {                                                                                                                  \
        TY_NAME_(field), TY_FIELD_NESTED, offsetof(struct type, field), descriptor,                                    \
            {TY_COUNT_FIELD, 1, offsetof(struct type, count_field), TY_SIZE_OF_(type, count_field)}, TY_COUNT_ONE_, 0, \
            0                                                                                                          \
    }
/* A type descriptor for blocks that are arrays of pointers: its one word points to `to`. */
#define TY_TYPE_POINTER_TO(name, to)                                                                                   \
    static const ty_field name##_fields_[] = {                                                                         \
        {"address", TY_FIELD_POINTER, 0, to, TY_COUNT_ONE_, TY_COUNT_ONE_, 0, 0}};                                     \
    const ty_type name##_descriptor = {#name, sizeof(void *), name##_fields_, 1, NULL, NULL, NULL};

/* ---- Sets of type descriptors. */

typedef struct ty_types ty_types;

/* Create an empty set; and free one, with the type descriptors that were read from texts. NULL does nothing. Errors:
 * TY_E_ARGUMENT, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_types_create(ty_types **types);
TY_API void ty_types_destroy(ty_types *types);

/* Adds a type descriptor and all that its fields refer to. The caller owns type descriptors, and keeps them alive as
 * long as the set. One that the set has is not added twice; two with the same name are refused. Errors: TY_E_ARGUMENT
 * (an invalid type descriptor: the detail says which field, and why), TY_E_EXISTS, TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_types_add(ty_types *types, const ty_type *type);

/* Declares that the named root points to count objects of type (count: TY_COUNT_FIXED or TY_COUNT_BLOCK; NULL: one);
 * type NULL: to bytes without addresses. Adds the type descriptor. Errors: as ty_types_add; TY_E_EXISTS (the root has
 * another type). */
TY_API TY_CHECKED ty_status ty_types_root(ty_types *types, const char *root, const ty_type *type,
                                          const ty_count *count);

/* The type descriptor of that name, or NULL. Valid until the set is destroyed. */
TY_API const ty_type *ty_types_find(const ty_types *types, const char *name);

/* What the set says of a named root: *descriptor, NULL if it points to bytes without addresses, and *count objects of
 * it (count may be NULL). Errors: TY_E_ARGUMENT, TY_E_NOT_FOUND (the set does not describe that root). Thread-safe
 * while no thread changes the set. */
TY_API TY_CHECKED ty_status ty_types_find_root(const ty_types *types, const char *root, const ty_type **descriptor,
                                               ty_count *count);

/* Binds hooks to a type descriptor that was read from a text. Errors: TY_E_NOT_FOUND, TY_E_ARGUMENT (the program added
 * it itself). */
TY_API TY_CHECKED ty_status ty_types_bind(ty_types *types, const char *name, ty_trace_callback *trace,
                                          ty_move_callback *moved, void *context);

/* Adds what a text describes (docs/reference.md, "Type descriptors in a text"): all of it, or nothing. A descriptor
 * that the set has already and that is equal stays as it is. Errors: TY_E_FORMAT (the detail names the line and what is
 * wrong), TY_E_EXISTS (a type descriptor or a root of that name differs), TY_E_MEMORY. */
TY_API TY_CHECKED ty_status ty_types_read(ty_types *types, const char *text, size_t bytes);
/* Writes the set as such a text, through a callback that gets it piece by piece; false ends it. */
typedef bool ty_text_callback(const char *text, size_t bytes, void *context);
TY_API TY_CHECKED ty_status ty_types_write(const ty_types *types, ty_text_callback *callback, void *context);

/* Stores the set in the heap as a text, in a block at the root TY_TYPES_ROOT, and replaces a stored one: then tools
 * that do not know the program can relocate and check the heap. In a transactional heap call it within a transaction of
 * the calling thread. Errors: as ty_alloc and ty_root_set. */
#define TY_TYPES_ROOT "taiyen.types"
TY_API TY_CHECKED ty_status ty_types_keep(const ty_types *types, ty_heap *heap);
/* Adds the set that a heap stores, as ty_types_read does. Errors: TY_E_NOT_FOUND (it stores none), as ty_types_read. */
TY_API TY_CHECKED ty_status ty_types_load(ty_types *types, ty_heap *heap);

/* ---- The pointer audit. */

typedef enum ty_audit_mismatch_kind {
    TY_AUDIT_DEAD = 1,   /* a field's addresses that point to no live block, or not as the type descriptor says */
    TY_AUDIT_HIDDEN = 2, /* words that no field names and that are addresses in live blocks, or just past one; or the
                            heap's base */
    TY_AUDIT_LEAK = 3,   /* unreachable live blocks */
    TY_AUDIT_CODE = 4,   /* words that no field names and that point into a program or a library */
    TY_AUDIT_ROOT = 5,   /* a root without a type descriptor, or a root of the set that the heap does not have */
    TY_AUDIT_HOOK = 6    /* objects of a type descriptor from a text whose hook is not bound (ty_types_bind): addresses
                            in them are unknown, or would be wrong after a move */
} ty_audit_mismatch_kind;

typedef struct ty_audit_mismatch {
    size_t struct_size; /* sizeof(ty_audit_mismatch) of the library */
    ty_audit_mismatch_kind kind;
    bool open; /* relocation is refused because of it. Not open are leaks and code; hidden words past the end of objects
                  or in bytes without a type descriptor, if most others at that offset are no addresses: they are
                  remains of what the block held before. At offsets that a smaller block would not have, remains are
                  common: there, most words must point to blocks that nothing else points to. Nor are words in an object
                  that look like addresses because of their padding: few of those point to the first byte of a block */
    const char *descriptor; /* the type; for bytes without a type "TYPE.FIELD"; for a leak the call site, if known */
    const char *field;      /* NULL: no field names it */
    size_t offset;          /* in the type */
    uint64_t count;         /* number of such words, or blocks */
    uint64_t of;            /* out of this many (words that are not 0 at that offset; blocks of that size) */
    uint64_t bytes;         /* of a leak */
    const void *example;    /* one of them: the word's address, or the block's */
    uint64_t value;         /* the word's value; 0 for a block */
    const char *text;       /* all of this, as one line for people to read */
} ty_audit_mismatch;
typedef bool ty_audit_callback(const ty_audit_mismatch *mismatch, void *context); /* false ends the reports */

typedef struct ty_audit {
    size_t struct_size; /* sizeof(ty_audit), set by the caller */
    uint64_t blocks;    /* live ones, except the library's own */
    uint64_t reached_blocks;
    uint64_t objects;  /* reached; nested ones are not counted */
    uint64_t pointers; /* words that fields or hooks name and that are not NULL */
    uint64_t mismatches;
    uint64_t open_mismatches;
    uint64_t duration_ns;
} ty_audit;

/* Runs the pointer audit and fills *audit. callback and audit may be NULL. TY_OK: no mismatch is open; TY_E_MISMATCH:
 * some are. Further errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_UNSUPPORTED (a checked heap), TY_E_DAMAGED. No thread may
 * write to the heap meanwhile. Nothing is changed. */
TY_API TY_CHECKED ty_status ty_audit_pointers(ty_heap *heap, const ty_types *types, ty_audit_callback *callback,
                                              void *context, ty_audit *audit);

/* ---- Fixing. */

/* Returns the new address of an old one, which may be inside a block; NULL if no live block was there. */
typedef void *ty_moved_callback(const void *old_address, void *context);

typedef struct ty_fixes {
    size_t struct_size; /* sizeof(ty_fixes), set by the caller */
    uint64_t objects;
    uint64_t pointers; /* words that were changed, or found right already */
    uint64_t dead;     /* words that point to no block: left as they were */
    uint64_t duration_ns;
} ty_fixes;

/* Fixes addresses after a move, in a heap whose roots are right and whose blocks hold the old addresses: gives every
 * address that is reached its new value, once, then calls the move hooks. fixes may be NULL. Errors: as
 * ty_audit_pointers, except TY_E_MISMATCH; TY_E_UNSUPPORTED (a type descriptor from a text needs a hook that is not
 * bound). No thread may use the heap meanwhile. A program that knows its own structures can do the same with ty_moved
 * (pack.h). */
TY_API TY_CHECKED ty_status ty_fix_pointers(ty_heap *heap, const ty_types *types, ty_moved_callback *moved,
                                            void *context, ty_fixes *fixes);

#ifdef __cplusplus
}
#endif
#endif
