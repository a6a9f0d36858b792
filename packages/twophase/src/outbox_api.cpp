// The functions of outbox.h.
#include "outbox.hpp"
#include <cstring>
#include <taiyen/taiyen.h>

using namespace taiyen::twophase;

namespace {

static_assert(sizeof TY_OUTBOX_ROOT - 1 + TY_OUTBOX_NAME_MAX <= TY_ROOT_NAME_MAX);

ty_status check_name(const char *name, size_t most, const char *call, const char *what) {
    if (ty_status status = check_pointer(name, call, what))
        return status;
    const size_t length = strnlen(name, most + 1);
    if (length == 0 || length > most)
        return failure(TY_E_ARGUMENT, "%s: %s is empty, or too long", call, what)
            .remedy("give it 1 to %zu bytes", most);
    return TY_OK;
}

ty_status check_heap_and_name(ty_heap *heap, const char *name, const char *call) {
    if (ty_status status = ty_plugin_check_heap(heap, call))
        return status;
    return check_name(name, TY_OUTBOX_NAME_MAX, call, "the outbox's name");
}

// Checks for a transaction of this thread that is under way: only then may this thread read the heap.
ty_status check_txn(ty_txn *txn, const char *call) {
    if (ty_status status = check_pointer(txn, call, "the transaction"))
        return status;
    ty_heap *heap = ty_txn_heap(txn);
    if (!heap)
        return failure(TY_E_ARGUMENT, "%s: the heap is closed", call).remedy("use no handle of a heap that has ended");
    if (ty_current_txn(heap) == txn)
        return TY_OK;
    return failure(TY_E_ARGUMENT, "%s: the transaction is not this thread's, or it is over", call)
        .remedy("call it in the thread that began it, before its end");
}

ty_status check_txn_and_name(ty_txn *txn, const char *name, const char *call) {
    if (ty_status status = check_txn(txn, call))
        return status;
    return check_name(name, TY_OUTBOX_NAME_MAX, call, "the outbox's name");
}

ty_status check_txn_and_source(ty_txn *txn, const char *source, const char *call) {
    if (ty_status status = check_txn(txn, call))
        return status;
    return check_name(source, TY_SOURCE_NAME_MAX, call, "the source's name");
}

} // namespace

ty_status ty_outbox_make(ty_txn *txn, const char *name, size_t bytes) {
    if (ty_status status = check_txn_and_name(txn, name, "make an outbox"))
        return status;
    return outbox_make(txn, name, bytes);
}

ty_status ty_outbox_remove(ty_txn *txn, const char *name) {
    if (ty_status status = check_txn_and_name(txn, name, "remove an outbox"))
        return status;
    return outbox_remove(txn, name);
}

ty_status ty_outbox_put(ty_txn *txn, const char *name, const void *bytes, size_t size, uint64_t *number) {
    constexpr const char *call = "put a message";
    if (ty_status status = check_txn_and_name(txn, name, call))
        return status;
    if (size)
        if (ty_status status = check_pointer(bytes, call, "the message"))
            return status;
    return outbox_put(txn, name, bytes, size, number);
}

ty_status ty_outbox_read(ty_heap *heap, const char *name, uint64_t after, ty_message_callback *callback,
                         void *context) {
    constexpr const char *call = "read an outbox";
    if (ty_status status = check_heap_and_name(heap, name, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    return outbox_read(heap, name, after, callback, context);
}

ty_status ty_outbox_wait(ty_heap *heap, const char *name, uint64_t after, uint32_t timeout_ms, bool *more) {
    constexpr const char *call = "wait for a message";
    if (ty_status status = check_heap_and_name(heap, name, call))
        return status;
    if (ty_status status = check_pointer(more, call, "the place for the answer"))
        return status;
    *more = false;
    return outbox_wait(heap, name, after, timeout_ms, more);
}

ty_status ty_outbox_forget(ty_txn *txn, const char *name, uint64_t through) {
    if (ty_status status = check_txn_and_name(txn, name, "forget messages"))
        return status;
    return outbox_forget(txn, name, through);
}

ty_status ty_outbox_get_info(ty_heap *heap, const char *name, ty_outbox_info *info) {
    constexpr const char *call = "look at an outbox";
    if (ty_status status = check_heap_and_name(heap, name, call))
        return status;
    if (ty_status status = check_pointer(info, call, "the ty_outbox_info"))
        return status;
    if (ty_status status = taiyen::common::check_output(info, call))
        return status;
    ty_outbox_info known{};
    known.struct_size = sizeof known;
    if (ty_status status = outbox_get_info(heap, name, &known))
        return status;
    taiyen::common::copy_output(known, info);
    return TY_OK;
}

ty_status ty_inbox_take(ty_txn *txn, const char *source, uint64_t number, ty_taken *taken) {
    constexpr const char *call = "take a message";
    if (ty_status status = check_txn_and_source(txn, source, call))
        return status;
    if (ty_status status = check_pointer(taken, call, "the place for the answer"))
        return status;
    if (number == 0 || number == UINT64_MAX)
        return failure(TY_E_ARGUMENT, "%s: no message has its number", call).remedy("numbers begin with 1");
    return inbox_take(txn, source, number, taken);
}

ty_status ty_inbox_set(ty_txn *txn, const char *source, uint64_t number) {
    if (ty_status status = check_txn_and_source(txn, source, "set what is taken of a source"))
        return status;
    return inbox_set(txn, source, number);
}

ty_status ty_inbox_last(ty_heap *heap, const char *source, uint64_t *number) {
    constexpr const char *call = "read what is taken of a source";
    if (ty_status status = ty_plugin_check_heap(heap, call))
        return status;
    if (ty_status status = check_name(source, TY_SOURCE_NAME_MAX, call, "the source's name"))
        return status;
    if (ty_status status = check_pointer(number, call, "the place for the number"))
        return status;
    *number = 0;
    return inbox_last(heap, source, number);
}
