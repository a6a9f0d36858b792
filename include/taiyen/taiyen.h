/* Taiyen: memory that is durable by itself. Includes the whole C API; see each header for its guarantees and cost.
 *
 *   status.h    status codes and error details
 *   heap.h      heaps and blocks: allocate, resize, free, look, check
 *   checks.h    what checks of a volatile heap's blocks find
 *   storage.h   the seam below persistent heaps
 *   persist.h   heaps that live in files: open, snapshot, close, roots, information
 *   code.h      addresses of code in such heaps
 *   txn.h       transactions on such heaps
 *   undo.h      undo and redo of changes, across sessions
 *   feed.h    committed transactions, for a second copy
 *   replica.h   and that copy
 *   distributed.h     one transaction over several heaps, databases, queues
 *   outbox.h    messages that leave a heap and arrive in another one
 *   log.h       where a transaction log is kept, and reading one
 */
#ifndef TAIYEN_TAIYEN_H
#define TAIYEN_TAIYEN_H

#include "checks.h"
#include "code.h"
#include "concurrent.h"
#include "distributed.h"
#include "feed.h"
#include "heap.h"
#include "log.h"
#include "outbox.h"
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

/* "0.1.0": the version of the library that is linked, which may differ from TY_VERSION_*. Never NULL. */
TY_API const char *ty_version(void);

#ifdef __cplusplus
}
#endif
#endif
