// Explicit log entries: data logged as it is, procedures, and rollback entries.
#include "transaction.hpp"

namespace taiyen {
namespace {

constexpr size_t argument_max = size_t{64} << 10;

ty_status check_procedure(const char *call, uint64_t id, size_t bytes) {
    if (!procedure_known(id))
        return failure(TY_E_ARGUMENT, "%s: no procedure %llu is registered", call, static_cast<unsigned long long>(id))
            .remedy("call ty_register_procedure first");
    if (bytes > argument_max)
        return failure(TY_E_ARGUMENT, "%s: its arguments take %zu bytes", call, bytes)
            .remedy("they may take %zu", argument_max);
    return TY_OK;
}

// Keeps bytes until the transaction ends; *offset: their place in payloads.
ty_status keep_payload(ty_txn *txn, const void *bytes, size_t count, size_t *offset) {
    txn_array<char> &payloads = txn->payloads;
    if (ty_status status = payloads.memory.provide(payloads.count + count))
        return status;
    if (count != 0)
        memcpy(payloads.end(), bytes, count);
    *offset = payloads.count;
    payloads.count += count;
    return TY_OK;
}

ty_status add_rollback(ty_txn *txn, uint64_t procedure, char *address, const void *bytes, size_t count) {
    rollback_entry entry{0, procedure, address, 0, count};
    if (ty_status status = keep_payload(txn, bytes, count, &entry.payload))
        return status;
    entry.ranges = txn->ranges.put_barrier();
    return txn->rollbacks.push(entry);
}

} // namespace

ty_status txn_log_data(ty_txn *txn, const void *address, size_t bytes) {
    constexpr const char *call = "log data";
    word_span words;
    if (ty_status status = check_owner(txn, call))
        return status;
    if (ty_status status = words_of(txn, call, address, bytes, &words))
        return status;
    return words.count != 0 ? txn->ranges.add_whole(words.first, words.count) : TY_OK;
}

ty_status txn_log_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes) {
    constexpr const char *call = "log a procedure";
    size_t payload;
    if (ty_status status = check_owner(txn, call))
        return status;
    if (txn->tracked)
        return failure(TY_E_UNSUPPORTED, "%s: the transaction finds its stores by itself, and would log them twice",
                       call)
            .remedy("leave it out, or begin the transaction with TY_STORES_DECLARED");
    if (ty_status status = check_procedure(call, id, bytes))
        return status;
    if (ty_status status = keep_payload(txn, arguments, bytes, &payload))
        return status;
    if (ty_status status = part_close(txn))
        return status;
    txn->has_procedure = true;
    txn->procedure = id;
    txn->procedure_payload = payload;
    txn->procedure_bytes = bytes;
    return TY_OK;
}

ty_status txn_on_rollback_data(ty_txn *txn, void *address, const void *old_bytes, size_t bytes) {
    constexpr const char *call = "note what a rollback puts back";
    word_span words;
    if (ty_status status = check_owner(txn, call))
        return status;
    if (ty_status status = words_of(txn, call, address, bytes, &words))
        return status;
    return words.count != 0 ? add_rollback(txn, 0, static_cast<char *>(address), old_bytes, bytes) : TY_OK;
}

ty_status txn_on_rollback_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes) {
    constexpr const char *call = "note a procedure for a rollback";
    if (ty_status status = check_owner(txn, call))
        return status;
    if (ty_status status = check_procedure(call, id, bytes))
        return status;
    return add_rollback(txn, id, nullptr, arguments, bytes);
}

ty_status memory_rollback(ty_txn *txn) {
    ty_status outcome = TY_OK;
    size_t restored = txn->ranges.count();
    for (size_t i = txn->rollbacks.count; i > 0; i--) {
        const rollback_entry &entry = txn->rollbacks.begin()[i - 1];
        const char *payload = txn->payloads.begin() + entry.payload;
        txn->ranges.restore(entry.ranges, restored);
        restored = entry.ranges;
        if (entry.procedure == 0) {
            memcpy(entry.address, payload, entry.bytes);
        } else if (ty_status status = procedure_run(txn->rt->heap, entry.procedure, payload, entry.bytes)) {
            if (outcome == TY_OK)
                outcome = failure(TY_E_DAMAGED, "roll back by the procedure %llu, which gave %s",
                                  static_cast<unsigned long long>(entry.procedure), ty_status_name(status))
                              .remedy("the rest was rolled back; rebuild the heap: ty_rebuild");
        }
    }
    txn->ranges.restore(0, restored);
    return outcome;
}

} // namespace taiyen
