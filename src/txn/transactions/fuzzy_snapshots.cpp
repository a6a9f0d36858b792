// Snapshots of a concurrent heap that stop no thread. The pages of blocks are copied while other threads store into
// them: a copy may hold stores of commits later than the snapshot LSN. A recovery repeats these stores, as the batch
// counts only once the log holds all that a copy may have.
#include "snapshot_service.hpp"

namespace taiyen {
namespace {

struct collecting {
    txn_runtime &rt;
    log_positions *redo_point;
    bool begun = false;
    bool locked = true; // the reservations: before the locks of the image
};

// X24, X25: each block is on one side of the snapshot LSN, and what has a place in the log before it is stored.
ty_status approach(void *context) {
    auto &self = *static_cast<collecting *>(context);
    atomic_transactions &transactions = *self.rt.concurrent;
    if (ty_status status = transactions.begin_snapshot(transactions))
        return status;
    self.begun = true;
    *self.redo_point = log_positions_now(self.rt.log);
    const uint64_t lsn = transactions.newest_commit(transactions);
    if (self.redo_point->count > 1) // a single ring is in the order of LSNs
        self.redo_point->lsn = lsn;
    return TY_OK;
}

ty_status tables(void *context, os::page_set &stored) {
    reservations_add_list(static_cast<collecting *>(context)->rt, stored);
    return TY_OK;
}

void resumed(void *context) {
    txn_runtime &rt = static_cast<collecting *>(context)->rt;
    rt.concurrent->have_tables(*rt.concurrent);
    reservations_unlock(rt);
    static_cast<collecting *>(context)->locked = false;
}

// X25: the batch counts once the log durably holds all that it may have of later commits. If nothing was committed
// since, the log need not be written; after a gap it must not be, before the batch counts (X21).
ty_status make_log_durable(void *context) {
    const auto &self = *static_cast<const collecting *>(context);
    const uint64_t lsn = self.rt.concurrent->newest_commit(*self.rt.concurrent);
    if (fault("concurrent_snapshot_counts_before_the_log"))
        return TY_OK;
    return lsn == self.redo_point->lsn && !fault("log_written_after_a_gap") ? TY_OK : log_wait(self.rt.log, lsn);
}

} // namespace

bool snapshots_can_be_fuzzy(txn_runtime &rt) {
    return image_allows_fuzzy(rt.heap);
}

ty_status snapshot_start_fuzzy(txn_runtime &rt, log_positions *redo_point, uint64_t *epoch) {
    collecting self{rt, redo_point};
    const image_fuzzy_callbacks fuzzy{&self, approach, tables, resumed, make_log_durable};
    reservations_lock(rt);
    ty_status status = image_snapshot_start(rt.heap, self.redo_point, &fuzzy, epoch);
    if (self.locked)
        reservations_unlock(rt);
    if (self.begun)
        rt.concurrent->end_snapshot(*rt.concurrent);
    return status;
}

} // namespace taiyen
