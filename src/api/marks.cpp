// The functions of marks.h.
#include "arguments.hpp"
#include "callbacks.hpp"

#include "src/code/code.hpp"
#include "src/store/image/image.hpp"
#include "src/txn/txn.hpp"
#include "src/undo/undo.hpp"

using namespace taiyen;

namespace {

ty_status check_change(ty_heap *heap, const char *call) {
    if (ty_status status = check_heap(heap, call))
        return status;
    if (heap_has_checks(heap))
        return failure(TY_E_UNSUPPORTED, "%s: it is checked", call).remedy("create the heap without checks");
    const ty_kind kind = heap_image_of(heap) != nullptr ? image_kind(heap) : TY_VOLATILE;
    if (kind == TY_ARCHIVE)
        return failure(TY_E_UNSUPPORTED, "%s: it is an archive heap", call)
            .remedy("attach a journal: open it with the kind TY_SNAPSHOT");
    return kind == TY_TRANSACTIONAL ? TY_OK : undo_check_return(heap, call);
}

ty_status check_name(const char *name, const char *call) {
    if (ty_status status = check_pointer(name, call, "the mark's name"))
        return status;
    return check_mark_name(name, call);
}

ty_status check_change(ty_heap *heap, const char *name, const ty_mark_options *options, ty_mark_options *known,
                       const char *call) {
    if (ty_status status = check_change(heap, call))
        return status;
    if (ty_status status = check_name(name, call))
        return status;
    return options ? copy_options(options, known, sizeof *known, call, "ty_mark_options", "TY_MARK_OPTIONS_INIT")
                   : TY_OK;
}

ty_status changed(ty_heap *heap, ty_status status) {
    if (status == TY_OK && (heap_image_of(heap) == nullptr || image_kind(heap) == TY_SNAPSHOT)) {
        undo_returned(heap);
        undo_publish(heap);
    }
    return status;
}

// CD10: at the mark, words of code lead to where that was in the process that made it; they are repointed. The state
// that is left is marked meanwhile, to go back there if that fails.
ty_status return_to_older(ty_heap *heap, const char *name) {
    if (ty_status status = image_mark(heap, mark_before_a_return, TY_MARK_OPTIONS_INIT))
        return status;
    ty_status status = image_return_to(heap, name);
    ty_error error = status ? keep_error() : ty_error{};
    if (!status && !fault("return_to_words_of_another_process")) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_OPEN_EXISTING;
        options.code = image_code_option(heap);
        code_session code(options);
        status = code.repoint_again(heap);
        error = status ? keep_error() : error;
        if (status && image_return_to(heap, mark_before_a_return))
            snprintf(error.remedy, sizeof error.remedy, "discard the heap: memory is short, and it cannot be led back");
    }
    static_cast<void>(image_drop_mark(heap, mark_before_a_return)); // it was just made
    return status ? report_again(error) : TY_OK;
}

} // namespace

ty_status ty_revert(ty_heap *heap) {
    constexpr const char *call = "revert a heap";
    const kept_detail detail;
    if (ty_status status = check_change(heap, call))
        return status;
    if (heap_image_of(heap) == nullptr)
        return failure(TY_E_UNSUPPORTED, "%s: it is volatile, and has no snapshots", call)
            .remedy("use ty_mark and ty_return_to");
    if (image_kind(heap) == TY_TRANSACTIONAL)
        return failure(TY_E_UNSUPPORTED, "%s: what was committed since its last snapshot is durable, too", call)
            .remedy("use ty_mark and ty_return_to, or ty_rollback for a transaction that is under way");
    return detail.after(changed(heap, image_revert(heap)));
}

ty_status ty_mark(ty_heap *heap, const char *name, const ty_mark_options *options) {
    ty_mark_options known = TY_MARK_OPTIONS_INIT;
    constexpr const char *call = "mark a heap";
    const kept_detail detail;
    if (ty_status status = check_change(heap, name, options, &known, call))
        return status;
    if (known.durable && heap_image_of(heap) == nullptr)
        return failure(TY_E_UNSUPPORTED, "%s durably: it is volatile", call).remedy("open a heap in files");
    return detail.after(txn_mark(heap, name, known));
}

ty_status ty_return_to(ty_heap *heap, const char *name, const ty_mark_options *options) {
    ty_mark_options known = TY_MARK_OPTIONS_INIT;
    constexpr const char *call = "return to a mark";
    const kept_detail detail;
    if (ty_status status = check_change(heap, name, options, &known, call))
        return status;
    if (heap_image_of(heap) == nullptr || code_of(heap) == TY_CODE_DEFAULT || !image_mark_is_older(heap, name))
        return detail.after(changed(heap, txn_return_to(heap, name, known)));
    if (image_kind(heap) == TY_TRANSACTIONAL)
        return failure(TY_E_UNSUPPORTED, "%s of an earlier open: it has addresses of that process's code", call)
            .remedy("close the heap, use `taiyen return`, and open it again");
    return detail.after(changed(heap, return_to_older(heap, name)));
}

ty_status ty_branch(ty_heap *heap, const char *path) {
    constexpr const char *call = "branch a heap";
    const kept_detail detail;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_path(path, call, "the path"))
        return status;
    if (heap_has_checks(heap))
        return failure(TY_E_UNSUPPORTED, "%s: it is checked", call).remedy("create the heap without checks");
    const ty_kind kind = heap_image_of(heap) != nullptr ? image_kind(heap) : TY_VOLATILE;
    if (kind == TY_VOLATILE || kind == TY_ARCHIVE)
        return failure(TY_E_UNSUPPORTED, "%s: it is %s heap", call, kind == TY_VOLATILE ? "a volatile" : "an archive")
            .remedy("use ty_pack_file, and unpack the file");
    if (ty_status status = check_words_as_recorded(heap, call))
        return status;
    return detail.after(txn_branch(heap, path));
}

ty_status ty_drop_mark(ty_heap *heap, const char *name) {
    constexpr const char *call = "drop a mark";
    const kept_detail detail;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_name(name, call))
        return status;
    return detail.after(heap_image_of(heap) != nullptr ? image_drop_mark(heap, name) : volatile_drop_mark(heap, name));
}

ty_status ty_each_mark(ty_heap *heap, ty_mark_callback *callback, void *context) {
    constexpr const char *call = "list a heap's marks";
    const kept_detail detail;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    guarded<ty_mark_callback> guard(callback, context);
    return detail.after(guard.end(heap_image_of(heap) != nullptr ? image_each_mark(heap, guard.callback(), &guard)
                                                                 : volatile_each_mark(heap, guard.callback(), &guard)));
}
