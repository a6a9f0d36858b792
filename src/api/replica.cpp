// The functions of replica.h.
#include "arguments.hpp"
#include "src/feed/feed.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

ty_status ty_feed_copied(ty_heap *copy, ty_feed_position *position) {
    constexpr const char *call = "read what a copy holds";
    if (ty_status status = check_heap(copy, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the place for the position"))
        return status;
    return feed_copied(copy, position);
}

ty_status ty_replica_begin(ty_heap *heap, const ty_feed_position *position, const ty_replica_options *options,
                           ty_replica **replica) {
    constexpr const char *call = "receive the transactions of another heap";
    ty_replica_options known = TY_REPLICA_OPTIONS_INIT;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the position"))
        return status;
    if (ty_status status = check_pointer(replica, call, "the place for the replica"))
        return status;
    if (options)
        if (ty_status status =
                copy_options(options, &known, sizeof known, call, "ty_replica_options", "TY_REPLICA_OPTIONS_INIT"))
            return status;
    *replica = nullptr;
    return replica_begin(heap, *position, known, replica);
}

void ty_replica_end(ty_replica *replica) {
    if (replica)
        replica_end(replica);
}

ty_status ty_replica_apply(ty_replica *replica, const ty_feed_record *records, size_t count) {
    constexpr const char *call = "take records";
    if (ty_status status = check_pointer(replica, call, "the replica"))
        return status;
    if (count)
        if (ty_status status = check_pointer(records, call, "the records"))
            return status;
    for (size_t i = 0; i < count; ++i)
        if (records[i].size_bytes)
            if (ty_status status = check_pointer(records[i].bytes, call, "what is in a record"))
                return status;
    return receive(replica, records, count);
}

ty_status ty_replica_make_durable(ty_replica *replica, ty_feed_position *position) {
    if (ty_status status = check_pointer(replica, "make what was received durable", "the replica"))
        return status;
    return replica_make_durable(replica, position);
}

ty_status ty_promote(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "promote a heap"))
        return status;
    return txn_promote(heap);
}
