// The functions of undo.h.
#include "src/undo/undo.hpp"
#include "arguments.hpp"
#include "callbacks.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

// Called after each call that changes what can be undone, whatever its result.
ty_status notified(ty_heap *heap, ty_status status) {
    undo_publish(heap);
    return status;
}

} // namespace

ty_status ty_undo_attach(ty_heap *heap, const ty_undo_options *options) {
    constexpr const char *call = "attach undo";
    ty_undo_options known = TY_UNDO_OPTIONS_INIT;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (options)
        if (ty_status status =
                copy_options(options, &known, sizeof known, call, "ty_undo_options", "TY_UNDO_OPTIONS_INIT"))
            return status;
    return notified(heap, undo_attach(heap, options ? &known : nullptr));
}

ty_status ty_undo_detach(ty_heap *heap, bool keep_history) {
    if (ty_status status = check_heap(heap, "detach undo"))
        return status;
    return notified(heap, undo_detach(heap, keep_history));
}

ty_status ty_undo_begin(ty_heap *heap, const char *label) {
    if (ty_status status = check_heap(heap, "begin a transaction of undo"))
        return status;
    return undo_begin(heap, label);
}

ty_status ty_undo_record(ty_heap *heap, const void *address, size_t bytes) {
    if (!heap) [[unlikely]]
        return check_heap(heap, "record for an undo");
    return undo_record(heap, address, bytes);
}

ty_status ty_undo_record_procedure(ty_heap *heap, uint64_t id, const void *arguments, size_t bytes,
                                   ty_status expected) {
    constexpr const char *call = "record a procedure for an undo";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (bytes != 0)
        if (ty_status status = check_pointer(arguments, call, "the arguments"))
            return status;
    return undo_record_procedure(heap, id, arguments, bytes, expected);
}

void *ty_undo_alloc(ty_heap *heap, size_t size) {
    if (ty_status status = check_heap(heap, "allocate a block"))
        return none(status);
    return undo_alloc(heap, size, 0);
}

void *ty_undo_alloc_aligned(ty_heap *heap, size_t size, size_t alignment) {
    constexpr const char *call = "allocate an aligned block";
    if (ty_status status = check_heap(heap, call))
        return none(status);
    if (ty_status status = check_alignment(heap, alignment, call))
        return none(status);
    return undo_alloc(heap, size, alignment);
}

ty_status ty_undo_free(ty_heap *heap, void *block) {
    if (ty_status status = check_heap(heap, "free a block"))
        return status;
    return undo_free(heap, block);
}

void *ty_undo_resize(ty_heap *heap, void *block, size_t size) {
    constexpr const char *call = "resize a block";
    if (ty_status status = check_heap(heap, call))
        return none(status);
    if (ty_status status = check_pointer(block, call, "the block"))
        return none(status);
    return undo_resize(heap, block, size);
}

ty_status ty_undo_end(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "end a transaction of undo"))
        return status;
    return notified(heap, undo_end(heap));
}

ty_status ty_undo_cancel(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "cancel a transaction of undo"))
        return status;
    return notified(heap, undo_cancel(heap));
}

ty_status ty_undo(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "undo"))
        return status;
    return notified(heap, undo_back(heap));
}

ty_status ty_redo(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "redo"))
        return status;
    return notified(heap, undo_forth(heap));
}

ty_status ty_undo_exit(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "end a cycle of undo"))
        return status;
    return notified(heap, undo_exit(heap));
}

ty_status ty_undo_clear(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "clear the history of undo"))
        return status;
    return notified(heap, undo_clear(heap));
}

ty_status ty_undo_history(ty_heap *heap, ty_undo_step_callback *callback, void *context) {
    constexpr const char *call = "list the history of undo";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    guarded<ty_undo_step_callback> guard(callback, context);
    return guard.end(undo_history(heap, guard.callback(), &guard));
}

ty_status ty_get_undo_stats(ty_heap *heap, ty_undo_stats *stats) {
    constexpr const char *call = "get the metrics of undo";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_output(stats, call, "ty_undo_stats"))
        return status;
    ty_undo_stats known{};
    known.struct_size = sizeof known;
    if (ty_status status = undo_get_stats(heap, &known))
        return status;
    copy_output(&known, sizeof known, stats);
    return TY_OK;
}
