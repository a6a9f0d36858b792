/* Taiyen: durable memory. Includes the whole C API; see each header for its guarantees and cost.
 *
 *   status.h        status codes and error details
 *   heap.h          heaps and blocks: allocate, resize, free, inspect, verify
 *   checks.h        memory checks on a volatile heap
 *   scope.h         a heap as the malloc of unmodified code
 *   storage.h       the storage table below persistent heaps
 *   persist.h       heaps that live in files: open, snapshot, close, roots, information
 *   code.h          addresses of code in such heaps
 *   txn.h           transactions on such heaps
 *   concurrent.h    many writers at once on one heap
 *   follow.h        readers in other processes, which follow the writer
 *   marks.h         going back to the last snapshot, or to marks
 *   undo.h          undo and redo of changes, across restarts
 *   feed.h          change feeds: committed transactions, for a second copy
 *   replica.h       replicas: that copy
 *   log.h           write-ahead logs: sinks, and reading a log
 */
#ifndef TAIYEN_TAIYEN_H
#define TAIYEN_TAIYEN_H

#include "checks.h"
#include "code.h"
#include "concurrent.h"
#include "feed.h"
#include "follow.h"
#include "heap.h"
#include "log.h"
#include "marks.h"
#include "persist.h"
#include "replica.h"
#include "scope.h"
#include "status.h"
#include "storage.h"
#include "txn.h"
#include "undo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the linked library, such as "0.1.0", which may differ from TY_VERSION_*. Never NULL. */
TY_API const char *ty_version(void);

#ifdef __cplusplus
}
#endif
#endif
