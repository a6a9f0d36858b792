// A receiver: takes the records that a follower told, and has them done in a copy of the heap.
#include "position.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

using namespace taiyen;

struct ty_receiver {
    receiving *heap;
    ty_follow_position position; // behind the last record taken
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
    made->position = position;
    if (ty_status status = txn_receive_begin(heap, start, &made->heap)) {
        free(made);
        return status;
    }
    *receiver = made;
    return TY_OK;
}

void receive_end(ty_receiver *receiver) {
    txn_receive_end(receiver->heap);
    free(receiver);
}

// LK5: all are checked before the first one is done.
ty_status receive(ty_receiver *receiver, const ty_follow_record *records, size_t count) {
    ty_follow_position at = receiver->position;
    const uint64_t last = txn_received(*receiver->heap);
    size_t known = 0;
    for (size_t i = 0; i < count; ++i) {
        if (ty_status status = follow_step(at, records[i]))
            return status;
        if (records[i].sequence <= last)
            known = i + 1;
        else if (ty_status status = txn_receive_check(*receiver->heap, records[i]))
            return status;
    }
    const ty_status status = txn_receive(*receiver->heap, records + known, count - known);
    if (txn_received(*receiver->heap) >= at.sequence) {
        seal_position(at);
        receiver->position = at;
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
