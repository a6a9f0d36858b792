// A receiver: takes the records that a follower told, and has them done in a copy of the heap.
#include "position.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

using namespace taiyen;

struct ty_receiver {
    receiving *heap;
    ty_follow_position position; // behind the last record done
    ty_follow_position taken;    // the same, or behind a prepared record that waits for its outcome
    ty_follow_record waiting;    // that one, in malloc's memory; bytes NULL: there is none
};

namespace taiyen {

ty_status follow_copied(ty_heap *copy, ty_follow_position *position) {
    snapshot_place place{};
    if (ty_status status = txn_copied(copy, &place))
        return status;
    *position = position_of(place);
    return TY_OK;
}

ty_status receive_begin(ty_heap *heap, const ty_follow_position &position, const ty_receive_options &options,
                        ty_receiver **receiver) {
    if (ty_status status = check_position(position))
        return status;
    auto *made = static_cast<ty_receiver *>(calloc(1, sizeof(ty_receiver)));
    if (!made)
        return failure(TY_E_MEMORY, "receive the transactions of another heap");
    receive_start start{};
    memcpy(start.source.heap, position.heap_identity, sizeof start.source.heap);
    start.source.log = position.log_identity;
    start.sequence = position.sequence;
    start.copied = options.copied_sequence ? options.copied_sequence : position.sequence;
    start.base = options.base;
    start.logged = !options.unlogged;
    made->position = made->taken = position;
    if (ty_status status = txn_receive_begin(heap, start, &made->heap)) {
        free(made);
        return status;
    }
    *receiver = made;
    return TY_OK;
}

namespace {

void forget_waiting(ty_receiver *receiver) {
    free(const_cast<void *>(receiver->waiting.bytes));
    receiver->waiting = {};
}

ty_status keep_waiting(ty_receiver *receiver, const ty_follow_record &record) {
    void *bytes = malloc(record.size_bytes);
    if (!bytes)
        return failure(TY_E_MEMORY, "take a transaction that is prepared");
    memcpy(bytes, record.bytes, record.size_bytes);
    receiver->waiting = record;
    receiver->waiting.bytes = bytes;
    return TY_OK;
}

// Does records that were checked; the first one with the prepared one that waits for it, if there is one.
ty_status do_records(ty_receiver *receiver, const ty_follow_record *records, size_t count) {
    if (!receiver->waiting.bytes || !count)
        return txn_receive(*receiver->heap, records, count);
    const ty_follow_record both[2] = {receiver->waiting, records[0]};
    const ty_status first = txn_receive(*receiver->heap, both, 2);
    if (txn_received(*receiver->heap) < records[0].sequence)
        return first; // the heap is spoiled
    forget_waiting(receiver);
    const ty_status rest = txn_receive(*receiver->heap, records + 1, count - 1);
    return first ? first : rest;
}

void set_position(ty_follow_position &position, ty_follow_position at) {
    seal_position(at);
    position = at;
}

} // namespace

void receive_end(ty_receiver *receiver) {
    forget_waiting(receiver);
    txn_receive_end(receiver->heap);
    free(receiver);
}

// LK5: all are checked before the first one is done. A prepared one is done with its outcome, which is the next record:
// so whatever happens, the heap holds both or neither.
ty_status receive(ty_receiver *receiver, const ty_follow_record *records, size_t count) {
    ty_follow_position at = receiver->taken, before = at;
    const uint64_t last = txn_received(*receiver->heap);
    size_t known = 0;
    bool prepared = receiver->waiting.bytes != nullptr;
    for (size_t i = 0; i < count; ++i) {
        before = at;
        if (ty_status status = follow_step(at, records[i]))
            return status;
        if (records[i].sequence <= last)
            known = i + 1;
        else if (ty_status status = txn_receive_check(*receiver->heap, records[i], &prepared))
            return status;
    }
    const bool waits = count > known && prepared; // the last one
    const size_t ready = count - known - waits;
    ty_status status = do_records(receiver, records + known, ready);
    const ty_follow_position done = waits ? before : at;
    if (txn_received(*receiver->heap) < done.sequence)
        return status;
    if (count && !(waits && count == 1))
        set_position(receiver->position, done);
    receiver->taken = receiver->position;
    if (waits) {
        if (ty_status kept = keep_waiting(receiver, records[count - 1]))
            return status ? status : kept;
        set_position(receiver->taken, at);
    }
    return status;
}

ty_status receive_stable(ty_receiver *receiver, ty_follow_position *position) {
    if (ty_status status = txn_receive_stable(*receiver->heap))
        return status;
    if (position)
        *position = receiver->position;
    return TY_OK;
}

} // namespace taiyen
