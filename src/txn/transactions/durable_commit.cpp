// Where a commit becomes durable: its record is on the disk, in the log or in a durable snapshot.
#include "bodies.hpp"
#include "snapshot_service.hpp"

namespace taiyen {

namespace {

// An open that found the ring full cannot append again what it believed: a snapshot makes it durable instead.
ty_status durable_by_snapshot(txn_runtime &rt) {
    if (must_not_wait()) // X31: a thread in a body waits for nobody on another heap
        return bodies_abort_for({blocker::kind::full_log, nullptr, nullptr, &rt});
    if (has_own(rt))
        return failure(TY_E_SPACE, "make transactions of the generation before durable: the log is full")
            .remedy("end the transaction under way first: then a snapshot does it");
    uint64_t epoch = 0;
    if (ty_status status = txn_snapshot_start(rt.heap, &epoch))
        return status;
    return txn_snapshot_wait(rt.heap, epoch);
}

} // namespace

// X4: an acknowledged transaction is in the log after the newest durable snapshot, or in that snapshot.
ty_status make_durable(txn_runtime &rt, uint64_t lsn) {
    return rt.sharing != nullptr ? sharing_make_durable(rt, lsn) : make_durable_in_log(rt, lsn);
}

ty_status make_durable_in_log(txn_runtime &rt, uint64_t lsn) {
    for (;;) {
        if (lsn > log_last(rt.log) && rt.unlogged.load(std::memory_order_relaxed))
            return durable_by_snapshot(rt);
        const bool early = fault("acknowledged_before_the_write_returned") && log_last(rt.log) >= lsn;
        ty_status status = early ? TY_OK : log_wait(rt.log, lsn);
        if (!status || log_durable(rt.log) >= lsn)
            return TY_OK;
        if (!log_broken(rt.log))
            status = status == TY_E_SPACE && !fault("full_log_not_made_durable") ? durable_by_snapshot(rt) : status;
        else if (!has_own(rt)) // within a transaction there can be no snapshot
            status = snapshots_repair(rt);
        if (status)
            return status;
    }
}

} // namespace taiyen
