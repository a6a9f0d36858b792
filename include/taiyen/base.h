/* Taiyen: definitions that all public headers share. Included by all of them; programs need not include it.
 *
 * In all headers, a comment applies to the declarations after it, up to the next empty line.
 *
 * Thread-safety phrases used in all headers, with these exact meanings:
 *   "Thread-safe"            any threads may call it at the same time, on the same heap.
 *   "Externally serialised"  no other call on the same heap may run at the same time.
 */
#ifndef TAIYEN_BASE_H
#define TAIYEN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TY_VERSION_MAJOR 0
#define TY_VERSION_MINOR 1
#define TY_VERSION_PATCH 0

#if defined(_WIN32)
#error "Taiyen runs on Linux"
#else
#define TY_API __attribute__((visibility("default")))
#endif

/* The caller must check the result. */
#define TY_CHECKED __attribute__((warn_unused_result))

/* A heap of any kind. Owned by the library; valid until it is destroyed, closed or discarded. Calls with one of the
 * last 64 handles that ended so are refused with TY_E_ARGUMENT; an older handle is like freed memory, and may be
 * another heap's. */
typedef struct ty_heap ty_heap;

#endif
