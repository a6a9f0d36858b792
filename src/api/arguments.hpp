// Checks of callers' arguments, shared by the public functions. Each refusal is TY_E_ARGUMENT and says which argument
// is wrong and how to repair it.
#pragma once

#include "src/heap/heap.hpp"
#include <cstddef>
#include <cstring>
#include <taiyen/taiyen.h>

namespace taiyen {

// Public structs grow at their end, and a program may have been compiled with a shorter or a longer one than the
// library knows. Their first field, struct_size, says which.
// O1: a shorter one counts as if the missing fields were zero; of a longer one, the unknown rest must be zero.
// O2: nothing beyond struct_size is read or written.
inline constexpr size_t struct_size_max = 4096; // larger ones were never initialised

// Copies the caller's options into `known`, which is zeroed first. name: the type; init: the macro that initialises it.
ty_status copy_options(const void *given, void *known, size_t known_bytes, const char *call, const char *name,
                       const char *init);

// Whether the caller's struct_size of an output can be right; given may be NULL (refused).
ty_status check_output(const void *given, const char *call, const char *name);

// Copies a result to the caller, up to struct_size, and zeroes what the library does not know. struct_size is kept.
void copy_output(const void *known, size_t known_bytes, void *given);

// `what` completes "cannot CALL: ... is NULL".
ty_status refuse_null(const char *call, const char *what);
inline ty_status check_pointer(const void *pointer, const char *call, const char *what) {
    return pointer ? TY_OK : refuse_null(call, what);
}

// Whether it is a handle of an open heap, as far as heap_is_open can detect. Not inline, as it has many callers.
ty_status check_heap(const ty_heap *heap, const char *call);

// A path of a file: not NULL, not empty, not too long for the system.
ty_status check_path(const char *path, const char *call, const char *what);

// The fields that describe a new heap.
ty_status check_new_heap(size_t limit_bytes, const void *base, int classes, const char *call);

// Whether the bits are known TY_CHECK_ values.
ty_status check_checks(unsigned checks, const char *call);

// An alignment that a block of the heap can have.
ty_status check_alignment(ty_heap *heap, size_t alignment, const char *call);

// The arguments of a root: its name is valid, its address in the heap or NULL.
ty_status check_root(ty_heap *heap, const char *name, const void *address, const char *call);

// The number in a field of an enumeration type, which need not be one of its values before it is checked.
template <class Enum>
int number_of(const Enum &field) {
    static_assert(sizeof(Enum) == sizeof(int));
    int number;
    memcpy(&number, &field, sizeof number);
    return number;
}

// The caller's options, checked, with the storage to use; NULL: all defaults. In persist.cpp.
ty_status take_open_options(const ty_open_options *options, const char *call, ty_open_options *known);

// In txn.cpp.
ty_status check_txn_options(const ty_txn_options &options, const char *call);

// A storage of the caller's: long enough, with every function, and nothing unknown.
ty_status check_storage(const ty_storage *storage, const char *call);

// For functions that return a pointer: the status is in the thread's detail.
inline void *none(ty_status) {
    return nullptr;
}

} // namespace taiyen
