// A replica: takes records from a change feed, and applies them to a copy of the heap.
#include "position.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

using namespace taiyen;

struct ty_replica {
    receiving *heap;
    ty_feed_position position;                      // after the last record applied
    ty_feed_position taken;                         // the same, or after records that wait for an outcome
    record_order order;                             // up to `taken`
    ty_feed_record waiting[record_pending_max + 1]; // records that wait, allocated by malloc
    size_t waiting_count;
};

namespace taiyen {

ty_status feed_copied(ty_heap *copy, ty_feed_position *position) {
    snapshot_position copied{};
    if (ty_status status = txn_copied(copy, &copied))
        return status;
    *position = position_of(copied);
    return TY_OK;
}

ty_status replica_begin(ty_heap *heap, const ty_feed_position &position, const ty_replica_options &options,
                        ty_replica **replica) {
    if (ty_status status = check_position(position))
        return status;
    auto *made = static_cast<ty_replica *>(os::internal_calloc(1, sizeof(ty_replica)));
    if (!made)
        return failure(TY_E_MEMORY, "receive the transactions of another heap")
            .remedy("free memory, or raise the process's limits");
    receive_start start{};
    memcpy(start.source.heap, position.heap_identity, sizeof start.source.heap);
    start.source.log = position.log_identity;
    start.lsn = position.lsn;
    start.copied = options.copied_lsn ? options.copied_lsn : position.lsn;
    start.base = options.base;
    start.logged = !options.unlogged;
    made->position = made->taken = position;
    if (ty_status status = txn_replica_begin(heap, start, &made->heap)) {
        free(made);
        return status;
    }
    *replica = made;
    return TY_OK;
}

namespace {

void forget_waiting(ty_replica *replica) {
    for (size_t n = 0; n < replica->waiting_count; ++n)
        free(const_cast<void *>(replica->waiting[n].bytes));
    replica->waiting_count = 0;
    replica->order = {};
}

ty_status keep_waiting(ty_replica *replica, const ty_feed_record &record) {
    void *bytes = os::internal_malloc(record.size_bytes);
    if (!bytes)
        return failure(TY_E_MEMORY, "take a transaction that is prepared")
            .remedy("free memory, or raise the process's limits");
    memcpy(bytes, record.bytes, record.size_bytes);
    ty_feed_record &kept = replica->waiting[replica->waiting_count++] = record;
    kept.bytes = bytes;
    return TY_OK;
}

// Applies records that were checked. The first `decided` of them decide on what waits: they are applied with that.
ty_status do_records(ty_replica *replica, const ty_feed_record *records, size_t decided, size_t count) {
    if (!replica->waiting_count || !count)
        return txn_replica_apply(*replica->heap, records, count);
    ty_feed_record all[record_pending_max + 2];
    const size_t waiting = replica->waiting_count;
    std::copy_n(replica->waiting, waiting, all);
    std::copy_n(records, decided, all + waiting);
    const ty_status first = txn_replica_apply(*replica->heap, all, waiting + decided);
    if (txn_received(*replica->heap) < records[decided - 1].lsn)
        return first; // the heap is poisoned
    forget_waiting(replica);
    const ty_status rest = txn_replica_apply(*replica->heap, records + decided, count - decided);
    return first ? first : rest;
}

void set_position(ty_feed_position &position, ty_feed_position at) {
    seal_position(at);
    position = at;
}

} // namespace

void replica_end(ty_replica *replica) {
    forget_waiting(replica);
    txn_replica_end(replica->heap);
    free(replica);
}

// LK5: all are checked before the first one is applied. What waits for an outcome is applied with it: so whatever
// happens, the heap holds all of it or nothing.
ty_status receive(ty_replica *replica, const ty_feed_record *records, size_t count) {
    ty_feed_position at = replica->taken, done = replica->position;
    const uint64_t last = txn_received(*replica->heap);
    size_t known = 0, decided = 0, ready = 0; // ready: up to there nothing waits
    record_order order = replica->order;
    for (size_t i = 0; i < count; ++i) {
        if (ty_status status = follow_step(at, records[i]))
            return status;
        if (records[i].lsn <= last)
            known = i + 1;
        else if (ty_status status = fault("received_before_all_is_checked")
                                        ? TY_OK
                                        : txn_replica_check(*replica->heap, records[i], &order))
            return status;
        if (!order.none())
            continue;
        ready = i + 1;
        done = at;
        decided = decided ? decided : ready - known;
    }
    ty_status status = ready > known ? do_records(replica, records + known, decided, ready - known) : TY_OK;
    if (txn_received(*replica->heap) < done.lsn)
        return status;
    if (ready) {
        set_position(replica->position, done);
        replica->taken = replica->position;
    }
    for (size_t i = ready; i < count; ++i) {
        ty_status kept = keep_waiting(replica, records[i]);
        if (!kept)
            continue;
        forget_waiting(replica);
        replica->taken = replica->position;
        return status ? status : kept;
    }
    set_position(replica->taken, at);
    replica->order = order;
    return status;
}

ty_status replica_make_durable(ty_replica *replica, ty_feed_position *position) {
    if (ty_status status = txn_replica_make_durable(*replica->heap))
        return status;
    if (position)
        *position = replica->position;
    return TY_OK;
}

} // namespace taiyen
