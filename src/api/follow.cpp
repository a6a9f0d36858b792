// The functions of follow.h.
#include "../link/link.hpp"
#include "arguments.hpp"
#include "callbacks.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

// A follower may know a heap that is closed by now.
ty_status check_follower(const ty_follower *follower, const char *call) {
    if (ty_status status = check_pointer(follower, call, "the follower"))
        return status;
    ty_heap *heap = follow_heap(follower);
    return heap ? check_heap(heap, call) : TY_OK;
}

} // namespace

ty_status ty_follow_open(const char *heap_path, const ty_follow_options *options, ty_follower **follower) {
    constexpr const char *call = "follow a heap";
    ty_follow_options known = TY_FOLLOW_OPTIONS_INIT;
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_path(heap_path, call, "the path"))
        return status;
    if (ty_status status = check_pointer(follower, call, "the place for the follower"))
        return status;
    if (options)
        if (ty_status status =
                copy_options(options, &known, sizeof known, call, "ty_follow_options", "TY_FOLLOW_OPTIONS_INIT"))
            return status;
    if (ty_status status = take_open_options(known.open, call, &open))
        return status;
    if (known.heap)
        if (ty_status status = check_heap(known.heap, call))
            return status;
    *follower = nullptr;
    return follow_open(heap_path, open, known.heap, follower);
}

void ty_follow_close(ty_follower *follower) {
    if (follower)
        follow_close(follower);
}

ty_status ty_follow_base(ty_follower *follower, ty_follow_position *position) {
    constexpr const char *call = "find a base to follow a heap from";
    if (ty_status status = check_follower(follower, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the place for the position"))
        return status;
    return follow_base(follower, position);
}

ty_status ty_follow_read(ty_follower *follower, ty_follow_position *position, ty_follow_callback *callback,
                         void *context, ty_follow_position *base) {
    constexpr const char *call = "follow a heap";
    if (base)
        *base = {};
    if (ty_status status = check_follower(follower, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the position"))
        return status;
    if (!callback)
        return refuse_null(call, "the callback");
    guarded<ty_follow_callback> guard(callback, context);
    return guard.end(follow_read(follower, position, guard.callback(), &guard, base));
}

ty_status ty_follow_wait(ty_follower *follower, const ty_follow_position *position, uint32_t timeout_ms, bool *more) {
    constexpr const char *call = "wait for what follows";
    if (ty_status status = check_follower(follower, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the position"))
        return status;
    if (ty_status status = check_pointer(more, call, "the place for the answer"))
        return status;
    return follow_wait(follower, *position, timeout_ms, more);
}

ty_status ty_follow_check(ty_follow_position *position, const ty_follow_record *record) {
    constexpr const char *call = "take a record";
    if (ty_status status = check_pointer(position, call, "the position"))
        return status;
    if (ty_status status = check_pointer(record, call, "the record"))
        return status;
    if (record->size_bytes)
        if (ty_status status = check_pointer(record->bytes, call, "what is in the record"))
            return status;
    return follow_check(position, *record);
}
