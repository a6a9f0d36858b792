// The functions of receive.h.
#include "../link/link.hpp"
#include "arguments.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

ty_status ty_follow_copied(ty_heap *copy, ty_follow_position *position) {
    constexpr const char *call = "tell what a copy holds";
    if (ty_status status = check_heap(copy, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the place for the position"))
        return status;
    return follow_copied(copy, position);
}

ty_status ty_receive_begin(ty_heap *heap, const ty_follow_position *position, const ty_receive_options *options,
                           ty_receiver **receiver) {
    constexpr const char *call = "receive the transactions of another heap";
    ty_receive_options known = TY_RECEIVE_OPTIONS_INIT;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the position"))
        return status;
    if (ty_status status = check_pointer(receiver, call, "the place for the receiver"))
        return status;
    if (options)
        if (ty_status status =
                copy_options(options, &known, sizeof known, call, "ty_receive_options", "TY_RECEIVE_OPTIONS_INIT"))
            return status;
    *receiver = nullptr;
    return receive_begin(heap, *position, known, receiver);
}

void ty_receive_end(ty_receiver *receiver) {
    if (receiver)
        receive_end(receiver);
}

ty_status ty_receive(ty_receiver *receiver, const ty_follow_record *records, size_t count) {
    constexpr const char *call = "take records";
    if (ty_status status = check_pointer(receiver, call, "the receiver"))
        return status;
    if (count)
        if (ty_status status = check_pointer(records, call, "the records"))
            return status;
    for (size_t i = 0; i < count; ++i)
        if (records[i].size_bytes)
            if (ty_status status = check_pointer(records[i].bytes, call, "what is in a record"))
                return status;
    return receive(receiver, records, count);
}

ty_status ty_receive_make_durable(ty_receiver *receiver, ty_follow_position *position) {
    if (ty_status status = check_pointer(receiver, "make what was received durable", "the receiver"))
        return status;
    return receive_make_durable(receiver, position);
}

ty_status ty_promote(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "promote a heap"))
        return status;
    return txn_promote(heap);
}
