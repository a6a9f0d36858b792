/* Taiyen: loads of concurrent.h without a call, for programs whose transactions mostly load. Header-only, C and C++.
 *
 *     if ((status = ty_atomic_load_word(txn, &node->left, &left)))
 *         return status;
 *
 * Guarantees: those of ty_atomic_load. A program is compiled for the library's version: with a library in which a
 * transaction looks otherwise it does not link, or does not start (ty_atomic_load_window_1 is missing). C++ programs
 * get these loads by concurrent.hpp.
 *
 * Cost: some 30 instructions and three loads of memory; ty_atomic_load has a call and the value's way through memory
 * more. */
#ifndef TAIYEN_CONCURRENT_INLINE_H
#define TAIYEN_CONCURRENT_INLINE_H

#include "concurrent.h"
#include "detail/atomic_window.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ty_atomic_load, by the name of the layout that this header knows. For these functions alone. */
TY_API TY_CHECKED ty_status ty_atomic_load_window_1(ty_atomic_txn *txn, const void *address, void *value, size_t bytes);

/* Loads 8 bytes at any address of the heap's blocks; at a multiple of 8 without a call. txn and value must not be NULL.
 * Errors, thread-safety: as ty_atomic_load. */
TY_CHECKED static inline ty_status ty_atomic_load_word(ty_atomic_txn *txn, const void *address, uint64_t *value) {
    if (ty_detail_load((ty_atomic_window *)txn, (uintptr_t)address, value))
        return TY_OK;
    return ty_atomic_load_window_1(txn, address, value, sizeof *value);
}

/* The same of 4 bytes; at a multiple of 4 without a call. */
TY_CHECKED static inline ty_status ty_atomic_load_half(ty_atomic_txn *txn, const void *address, uint32_t *value) {
    const uintptr_t at = (uintptr_t)address;
    uint64_t word;
    if (at % 4 == 0 && ty_detail_load((ty_atomic_window *)txn, at & ~(uintptr_t)7, &word)) {
        *value = (uint32_t)(word >> at % 8 * 8);
        return TY_OK;
    }
    return ty_atomic_load_window_1(txn, address, value, sizeof *value);
}

#ifdef __cplusplus
}
#endif

#endif
