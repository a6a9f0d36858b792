// A heap that is open beside its writer (TY_OPEN_FOLLOW): what it shows goes on by the writer's log, or by snapshots.
#pragma once

#include "opening.hpp"

namespace taiyen {

// The heap's memory is at the newest snapshot, and is protected. Brings it to the end of its log, and starts the thread
// that keeps it whole.
ty_status follow_begin(const heap_opening &state, ty_heap *heap, txn_runtime &rt);
// Of a shared heap that another process writes the log of: all from the files. *lsn: of the state that memory has then.
// With the reader-writer lock held.
ty_status follow_load(txn_runtime &rt, uint64_t *lsn);
void follow_stop_thread(txn_runtime &rt);
void follow_end(txn_runtime &rt);

} // namespace taiyen
