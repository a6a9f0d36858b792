// Distributed transactions whose parts wait together for one durable write: each ends in memory, and another one begins
// at once.
//
// X29: the reader-writer lock is held from the first one's end until all have their outcome. So only the next
//     distributed transaction sees what is not durable everywhere, and neither a snapshot LSN nor another record lies
//     before their outcome.
#include "write_faults.hpp"

namespace taiyen {

void txn_set_dtxn(ty_txn *txn) {
    txn->in_dtxn = true;
}

ty_status txn_refuse_dtxn(const ty_txn *txn, const char *call) {
    const uintptr_t owner = txn->owner.load(std::memory_order_acquire);
    if ((owner != this_thread() && owner != prepared_owner) || !txn->in_dtxn)
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s: the transaction is a part of a distributed transaction", call)
        .remedy("end that one (ty_dtxn_commit, ty_dtxn_rollback)");
}

ty_status txn_encode(ty_txn *txn, ty_plugin_record *record) {
    const uint8_t *bytes = nullptr;
    if (ty_status status = check_owner(txn, "commit a distributed transaction"))
        return status;
    const ty_status status = transaction_encode(txn, &bytes, &record->size_bytes);
    record->bytes = bytes;
    return status;
}

// At most half of the ring: the prepared record itself may take a little more, and the outcome must find room.
bool txn_gather_fits(ty_heap *heap, size_t bytes) {
    const taiyen::log *log = runtime_of(heap)->log;
    const log_metrics metrics = log_get_metrics(runtime_of(heap)->log);
    return bytes <= log_record_max(log) && metrics.used_bytes + bytes <= metrics.ring_bytes / 2;
}

ty_status txn_end_grouped(ty_txn *txn) {
    txn_runtime &rt = *txn->rt;
    if (txn->takes_before_images && !txn->tracked)
        undeclared_stores_in(txn);
    const ty_status status = txn->blocks.count == 0 ? TY_OK : blocks_finish_commit(txn, false);
    rt.metrics.transactions.add(1);
    rt.grouped.store(true, std::memory_order_relaxed);
    transaction_finish(txn);
    return status;
}

ty_status txn_append_grouped(ty_heap *heap, const ty_plugin_record *records, size_t count, const void *description,
                             size_t description_bytes, uint64_t *lsn) {
    txn_runtime &rt = *runtime_of(heap);
    for (size_t n = 0; n < count; ++n) {
        const bool last = n + 1 == count;
        const size_t head = last ? record_prepared_bound(description_bytes) : record_pending_bytes;
        uint8_t *place;
        if (ty_status status = log_append_begin(rt.log, head + records[n].size_bytes, &place))
            return status;
        size_t bytes = record_pending_bytes;
        if (last)
            bytes = record_put_prepared(description, description_bytes, place);
        else
            record_put_pending(place);
        memcpy(place + bytes, records[n].bytes, records[n].size_bytes);
        *lsn = log_append_end(rt.log, bytes + records[n].size_bytes);
        rt.metrics.record_bytes.add(bytes + records[n].size_bytes);
    }
    return TY_OK;
}

// X27: the outcome is the next record. A log that does not take it takes nothing else after the prepared record.
void txn_commit_grouped(ty_heap *heap) {
    txn_runtime &rt = *runtime_of(heap);
    uint64_t lsn;
    if (ty_status status = append_outcome(rt, record_outcome::committed, &lsn))
        log_break(rt.log, status);
}

ty_status txn_repair_grouped(ty_heap *heap) {
    txn_runtime &rt = *runtime_of(heap);
    uint64_t lsn;
    return log_broken(rt.log) ? snapshot_instead(rt, false, &lsn) : TY_OK;
}

void txn_release_grouped(ty_heap *heap, bool poisoned) {
    txn_runtime &rt = *runtime_of(heap);
    if (poisoned && !fault("memory_that_no_log_holds_goes_on"))
        rt.poisoned.store(true, std::memory_order_release);
    else
        snapshots_after_commit(rt);
    rt.grouped.store(false, std::memory_order_relaxed);
    objects_unlock(rt.txn);
    others_go_on(rt);
    rt.rwlock.unlock();
}

} // namespace taiyen
