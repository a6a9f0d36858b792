// Two-phase commit: a transaction's record is in the log before it is known whether it counts.
//
// X27: the reader-writer lock is held from the append of a prepared record to that of its outcome. So the outcome is
//     the next record, no snapshot LSN lies between the two, and at most the last transaction of a log is in doubt.
// X28: it counts if and only if its outcome says so, or a snapshot that stands for the outcome.
#include "write_faults.hpp"

namespace taiyen {
namespace {

constexpr uint64_t look_wait_ns = 1'000'000'000;

// What an open needs to append again (L4: recovery makes durable what it believed), and a wrap, must have room whatever
// else is in the ring: otherwise a transaction in doubt could not be resolved.
bool has_room_for_outcome(taiyen::log *log) {
    const log_metrics metrics = log_get_metrics(log);
    return metrics.used_bytes <= metrics.ring_bytes / 8 * 5;
}

ty_status refuse_prepare(const ty_txn *txn, const char *call, size_t bytes) {
    if (ty_status status = check_owner(txn, call))
        return status;
    if (bytes > description_max)
        return failure(TY_E_ARGUMENT, "%s: a description of %zu bytes", call, bytes)
            .remedy("%zu bytes are allowed", description_max);
    return txn_prepare_check(txn->rt->heap, call);
}

ty_status no_room(const char *call) {
    return failure(TY_E_SPACE, "%s: the log has no room for its record", call)
        .remedy("roll back, take a snapshot and do it again; or make the heap's log larger (log_bytes)");
}

} // namespace

ty_status txn_prepare_begin(ty_txn *txn, const void *description, size_t bytes, uint64_t *lsn) {
    constexpr const char *call = "prepare a transaction";
    if (ty_status status = refuse_prepare(txn, call, bytes))
        return status;
    txn_runtime &rt = *txn->rt;
    if (!has_room_for_outcome(rt.log))
        return no_room(call);
    txn->description = bytes != 0 ? description : "";
    txn->description_bytes = bytes;
    ty_status status = transaction_append(txn, lsn);
    txn->description = nullptr;
    if (status != TY_OK)
        return status == TY_E_SPACE ? no_room(call) : status;
    txn->prepared = *lsn;
    if (txn->takes_before_images)
        write_faults_leave(rt);
    txn->ranges.set_bounds(0, 0);
    txn->preparer.store(this_thread(), std::memory_order_relaxed);
    if (!fault("prepared_rolled_back_with_its_thread"))
        txn->owner.store(prepared_owner, std::memory_order_release);
    return TY_OK;
}

ty_status txn_prepare(ty_txn *txn, const void *description, size_t bytes) {
    uint64_t lsn;
    taiyen::log *log = txn->rt->log; // afterwards another thread may end it
    if (ty_status status = txn_prepare_begin(txn, description, bytes, &lsn))
        return status;
    return log_wait(log, lsn);
}

ty_status txn_prepare_check(ty_heap *heap, const char *call) {
    const txn_runtime *rt = runtime_of(heap);
    if (rt == nullptr || (rt->log == nullptr && rt->sharing == nullptr))
        return failure(TY_E_ARGUMENT, "%s: the heap is not transactional, or open for reading only", call)
            .remedy("open it for writing with the kind TY_TRANSACTIONAL");
    if (ty_status status = refuse_shared(*rt, call))
        return status;
    if (rt->txn_forked())
        return failure(TY_E_FORKED, "%s: the heap belongs to the parent process", call)
            .remedy("do it there, and leave it alone here");
    if (log_streams(rt->log) > 1)
        return failure(TY_E_UNSUPPORTED, "%s: the heap's log has several log streams", call)
            .remedy("close the heap, and open it with log_streams = 1");
    return TY_OK;
}

const char *txn_log_path_elsewhere(ty_heap *heap) {
    const txn_runtime &rt = *runtime_of(heap);
    return rt.log_elsewhere ? rt.log_path : "";
}

void txn_prepare_ask(ty_heap *heap, uint64_t lsn) {
    log_ask(runtime_of(heap)->log, lsn);
}

ty_status txn_prepare_wait(ty_heap *heap, uint64_t lsn) {
    return log_wait(runtime_of(heap)->log, lsn);
}

// JO1 (distributed.md): a resolver asks only for what cannot change any more.
ty_status txn_look_at_open(const uint8_t identity[16], bool readers,
                           ty_status (*look)(ty_heap *heap, ty_plugin_opened how, void *context), void *context) {
    txn_runtime *rt = runtime_hold(identity, readers);
    if (rt == nullptr)
        return TY_E_NOT_FOUND;
    constexpr const char *call = "look at a heap that is open";
    ty_status status = TY_OK;
    if (rt->log == nullptr) {
        status = look(rt->heap, rt->holds.copied ? TY_PLUGIN_COPY : TY_PLUGIN_READS, context);
        runtime_release(*rt);
        return status;
    }
    if (txn_current(rt->heap) != nullptr || rt->txn->owner.load(std::memory_order_relaxed) == prepared_owner ||
        in_section(*rt))
        status =
            failure(TY_E_BUSY, "%s: a transaction is under way", call).at(image_path(rt->heap)).remedy("end it first");
    // A writer, or the heap's close, may wait for this thread: so this wait is short.
    const uint64_t until = os::now_ns() + look_wait_ns;
    bool entered = false;
    while (status == TY_OK && !(entered = rt->rwlock.try_lock_shared()) && os::now_ns() < until)
        os::give_way();
    if (status == TY_OK && !entered)
        status = failure(TY_E_BUSY, "%s: it is being written to", call).at(image_path(rt->heap)).remedy("try again");
    if (entered && rt->poisoned.load(std::memory_order_relaxed)) {
        rt->rwlock.unlock_shared();
        status = refuse_poisoned(*rt, call);
    } else if (entered) {
        status = look(rt->heap, TY_PLUGIN_WRITES, context);
        const uint64_t last = log_last(rt->log);
        rt->rwlock.unlock_shared();
        if (status == TY_OK && !fault("vote_of_an_open_heap_not_durable"))
            status = log_wait(rt->log, last);
    }
    runtime_release(*rt);
    return status;
}

ty_status txn_prepare_room(ty_heap *heap, bool no_wait) {
    txn_runtime &rt = *runtime_of(heap);
    const log_metrics metrics = log_get_metrics(rt.log);
    if (metrics.used_bytes <= metrics.ring_bytes / 2)
        return TY_OK;
    if (no_wait)
        return failure(TY_E_BUSY, "begin a transaction that can be prepared: a snapshot has to make room in the log")
            .at(image_path(heap))
            .remedy("take one, or leave no_wait out");
    return snapshots_make_room(rt);
}

ty_status take_prepared(ty_txn *txn, const char *call) {
    uintptr_t owner = prepared_owner;
    if (txn->owner.compare_exchange_strong(owner, this_thread(), std::memory_order_acquire))
        return TY_OK;
    return check_owner(txn, call);
}

ty_status leave_prepared(ty_txn *txn, ty_status status) {
    if (txn->prepared == 0)
        return status;
    const ty_error why = keep_error();
    const ty_status status_of_rollback =
        failure(TY_E_IN_DOUBT, "commit a prepared transaction: neither the log nor a snapshot takes it (%s)",
                ty_status_name(status))
            .at(image_path(txn->rt->heap))
            .cause(why.system_error)
            .remedy("it is prepared as before: commit it again when the disk can be written to");
    txn->owner.store(prepared_owner, std::memory_order_release); // from here on the heap may be closed
    return status_of_rollback;
}

ty_status append_outcome(txn_runtime &rt, record_outcome outcome, uint64_t *lsn) {
    taiyen::log *log = rt.log;
    uint8_t *place;
    if (ty_status status = log_append_begin(log, record_outcome_bytes, &place))
        return status;
    record_put_outcome(outcome, place);
    *lsn = log_append_end(log, record_outcome_bytes);
    rt.metrics.record_bytes.add(record_outcome_bytes);
    return TY_OK;
}

void append_rollback(ty_txn *txn) {
    uint64_t lsn;
    if (txn->rt->txn_forked()) // the log is the parent's
        return;
    if (ty_status status = append_outcome(*txn->rt, record_outcome::rolled_back, &lsn))
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
