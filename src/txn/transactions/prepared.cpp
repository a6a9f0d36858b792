// Two-phase commit: a transaction's record is in the log before it is known whether it counts.
//
// X27: from the append of a prepared record to that of its outcome the gate is held. So the outcome is the next record,
//      no snapshot's mark lies between the two, and at most the last transaction of a log is in doubt.
#include "automatic.hpp"

namespace taiyen {
namespace {

// What an open needs to append again (L4), and a turn, must have room whatever else is in the ring: else a transaction
// in doubt could not be settled.
bool has_room_to_settle(taiyen::log *log) {
    const log_figures figures = log_get_figures(log);
    return figures.used_bytes <= figures.ring_bytes / 8 * 5;
}

ty_status refuse_prepare(const ty_txn *txn, const char *call, size_t bytes) {
    if (ty_status status = check_owner(txn, call))
        return status;
    const txn_runtime &rt = *txn->rt;
    if (rt.txn_forked())
        return failure(TY_E_FORKED, "%s: the heap belongs to the parent process", call)
            .remedy("roll the transaction back");
    if (bytes > description_max)
        return failure(TY_E_ARGUMENT, "%s: a description of %zu bytes", call, bytes)
            .remedy("%zu bytes are allowed", description_max);
    if (log_partitions(rt.log) > 1)
        return failure(TY_E_UNSUPPORTED, "%s: the heap's log has several partitions", call)
            .remedy("close the heap, and open it with log_partitions = 1");
    return TY_OK;
}

ty_status no_room(const char *call) {
    return failure(TY_E_SPACE, "%s: the log has no room for its record", call)
        .remedy("roll back, take a snapshot and do it again; or make the heap's log larger (log_bytes)");
}

} // namespace

ty_status txn_prepare_begin(ty_txn *txn, const void *description, size_t bytes, uint64_t *sequence) {
    constexpr const char *call = "prepare a transaction";
    if (ty_status status = refuse_prepare(txn, call, bytes))
        return status;
    txn_runtime &rt = *txn->rt;
    if (!has_room_to_settle(rt.log))
        return no_room(call);
    txn->description = bytes != 0 ? description : "";
    txn->description_bytes = bytes;
    ty_status status = transaction_append(txn, sequence);
    txn->description = nullptr;
    if (status != TY_OK)
        return status == TY_E_SPACE ? no_room(call) : status;
    txn->prepared = *sequence;
    if (txn->twinned)
        automatic_leave(rt);
    txn->ranges.set_bounds(0, 0);
    txn->preparer.store(this_thread(), std::memory_order_relaxed);
    txn->owner.store(prepared_owner, std::memory_order_release);
    return TY_OK;
}

ty_status txn_prepare(ty_txn *txn, const void *description, size_t bytes) {
    uint64_t sequence;
    taiyen::log *log = txn->rt->log; // afterwards another thread may end it
    if (ty_status status = txn_prepare_begin(txn, description, bytes, &sequence))
        return status;
    return log_wait(log, sequence);
}

ty_status take_prepared(ty_txn *txn, const char *call) {
    uintptr_t owner = prepared_owner;
    if (txn->owner.compare_exchange_strong(owner, this_thread(), std::memory_order_acquire))
        return TY_OK;
    return check_owner(txn, call);
}

void leave_prepared(ty_txn *txn) {
    if (txn->prepared != 0)
        txn->owner.store(prepared_owner, std::memory_order_release);
}

ty_status append_outcome(txn_runtime &rt, record_outcome outcome, uint64_t *sequence) {
    taiyen::log *log = rt.log;
    uint8_t *place;
    if (ty_status status = log_append_begin(log, record_outcome_bytes, &place))
        return status;
    record_put_outcome(outcome, place);
    *sequence = log_append_end(log, record_outcome_bytes);
    rt.figures.record_bytes.add(record_outcome_bytes);
    return TY_OK;
}

void append_rollback(ty_txn *txn) {
    uint64_t sequence;
    if (txn->rt->txn_forked()) // the log is the parent's
        return;
    if (ty_status status = append_outcome(*txn->rt, record_outcome::rolled_back, &sequence))
        log_break(txn->rt->log, status);
}

bool has_prepared(const txn_runtime &rt) {
    return rt.txn->preparer.load(std::memory_order_relaxed) == this_thread();
}

ty_status refuse_own_prepared(const txn_runtime &rt, const char *call) {
    if (!has_prepared(rt))
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s: this thread has prepared a transaction on the heap", call)
        .remedy("commit it or roll it back first");
}

} // namespace taiyen
