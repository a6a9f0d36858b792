// The functions of feed.h.
#include "src/feed/feed.hpp"
#include "arguments.hpp"
#include "callbacks.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

// A change feed may refer to a heap that is closed by now.
ty_status check_feed(const ty_feed *feed, const char *call) {
    if (ty_status status = check_pointer(feed, call, "the change feed"))
        return status;
    ty_heap *heap = follow_heap(feed);
    return heap ? check_heap(heap, call) : TY_OK;
}

} // namespace

ty_status ty_feed_open(const char *heap_path, const ty_feed_options *options, ty_feed **feed) {
    constexpr const char *call = "follow a heap";
    ty_feed_options known = TY_FEED_OPTIONS_INIT;
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_path(heap_path, call, "the path"))
        return status;
    if (ty_status status = check_pointer(feed, call, "the place for the change feed"))
        return status;
    if (options)
        if (ty_status status =
                copy_options(options, &known, sizeof known, call, "ty_feed_options", "TY_FEED_OPTIONS_INIT"))
            return status;
    if (ty_status status = take_open_options(known.open, call, &open))
        return status;
    if (known.heap)
        if (ty_status status = check_heap(known.heap, call))
            return status;
    *feed = nullptr;
    return feed_open(heap_path, open, known.heap, feed);
}

void ty_feed_close(ty_feed *feed) {
    if (feed)
        feed_close(feed);
}

ty_status ty_feed_base(ty_feed *feed, ty_feed_position *position, bool *receives) {
    constexpr const char *call = "find a base to follow a heap from";
    if (ty_status status = check_feed(feed, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the place for the position"))
        return status;
    return feed_base(feed, position, receives);
}

ty_status ty_feed_read(ty_feed *feed, ty_feed_position *position, ty_feed_callback *callback, void *context,
                       ty_feed_position *base) {
    constexpr const char *call = "follow a heap";
    if (base)
        *base = {};
    if (ty_status status = check_feed(feed, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the position"))
        return status;
    if (!callback)
        return refuse_null(call, "the callback");
    guarded<ty_feed_callback> guard(callback, context);
    return guard.end(feed_read(feed, position, guard.callback(), &guard, base));
}

ty_status ty_feed_wait(ty_feed *feed, const ty_feed_position *position, uint32_t timeout_ms, bool *more) {
    constexpr const char *call = "wait for what follows";
    if (ty_status status = check_feed(feed, call))
        return status;
    if (ty_status status = check_pointer(position, call, "the position"))
        return status;
    if (ty_status status = check_pointer(more, call, "the place for the answer"))
        return status;
    return feed_wait(feed, *position, timeout_ms, more);
}

ty_status ty_feed_check(ty_feed_position *position, const ty_feed_record *record) {
    constexpr const char *call = "take a record";
    if (ty_status status = check_pointer(position, call, "the position"))
        return status;
    if (ty_status status = check_pointer(record, call, "the record"))
        return status;
    if (record->size_bytes)
        if (ty_status status = check_pointer(record->bytes, call, "what is in the record"))
            return status;
    return feed_check(position, *record);
}
