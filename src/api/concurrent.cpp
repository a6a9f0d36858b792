// The functions of concurrent.h.
#include "arguments.hpp"
#include "src/txn/txn.hpp"
#include <cstring>
#include <taiyen/concurrent_inline.h>
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

ty_status check_txn(const ty_atomic_txn *txn, const char *call) {
    return check_pointer(txn, call, "the transaction");
}

ty_status check_options(const ty_atomic_options &options, const char *call) {
    const int commit = number_of(options.commit);
    if (commit < TY_COMMIT_SYNC || commit > TY_COMMIT_STREAM)
        return failure(TY_E_ARGUMENT, "%s: the option commit is %d", call, commit)
            .remedy("use one of the constants of concurrent.h");
    return TY_OK;
}

// Nearly all callers have the library's own version of the two structs.
ty_status take_options(const ty_atomic_options &given, ty_atomic_options *known, const char *call) {
    if (given.struct_size == sizeof given) [[likely]]
        *known = given;
    else if (ty_status status =
                 copy_options(&given, known, sizeof *known, call, "ty_atomic_options", "TY_ATOMIC_OPTIONS_INIT"))
        return status;
    return check_options(*known, call);
}

void give_result(const ty_atomic_result &known, ty_atomic_result *result) {
    if (result->struct_size == sizeof known) [[likely]]
        *result = known;
    else
        copy_output(&known, sizeof known, result);
}

} // namespace

ty_status ty_atomically(ty_heap *heap, const ty_atomic_options *options, ty_atomic_body *body, void *context,
                        ty_atomic_result *result) {
    constexpr const char *call = "run a transaction";
    ty_atomic_options known = TY_ATOMIC_OPTIONS_INIT;
    ty_atomic_result filled{};
    filled.struct_size = sizeof filled;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(reinterpret_cast<const void *>(body), call, "the body"))
        return status;
    if (options) {
        if (ty_status status = take_options(*options, &known, call))
            return status;
    }
    if (result)
        if (ty_status status = check_output(result, call, "ty_atomic_result"))
            return status;
    ty_status status = atomically(heap, known, body, context, &filled);
    if (result)
        give_result(filled, result);
    return status;
}

ty_status ty_atomic_load(ty_atomic_txn *txn, const void *address, void *value, size_t bytes) {
    if (!txn || (!value && bytes != 0)) [[unlikely]]
        return refuse_null("load", txn ? "the place for the value" : "the transaction");
    return atomic_load(txn, address, value, bytes);
}

ty_status ty_atomic_load_window_1(ty_atomic_txn *txn, const void *address, void *value, size_t bytes) {
    return ty_atomic_load(txn, address, value, bytes);
}

ty_status ty_atomic_store(ty_atomic_txn *txn, void *address, const void *value, size_t bytes) {
    if (!txn || (!value && bytes != 0)) [[unlikely]]
        return refuse_null("store", txn ? "the value" : "the transaction");
    return atomic_store(txn, address, value, bytes);
}

void ty_atomic_prefetch(ty_atomic_txn *txn, const void *const *addresses, size_t count) {
    if (txn && addresses)
        atomic_prefetch(txn, addresses, count);
}

void *ty_atomic_alloc(ty_atomic_txn *txn, size_t size) {
    if (ty_status status = check_txn(txn, "allocate a block"))
        return none(status);
    return atomic_alloc(txn, size, 0);
}

void *ty_atomic_alloc_aligned(ty_atomic_txn *txn, size_t size, size_t alignment) {
    constexpr const char *call = "allocate an aligned block";
    if (ty_status status = check_txn(txn, call))
        return none(status);
    if (ty_status status = check_alignment(atomic_heap(txn), alignment, call))
        return none(status);
    return atomic_alloc(txn, size, alignment);
}

ty_status ty_atomic_free(ty_atomic_txn *txn, void *block) {
    if (ty_status status = check_txn(txn, "free a block"))
        return status;
    return block ? atomic_free(txn, block) : TY_OK;
}

void *ty_atomic_resize(ty_atomic_txn *txn, void *block, size_t size) {
    if (ty_status status = check_txn(txn, "resize a block"))
        return none(status);
    return atomic_resize(txn, block, size);
}

ty_status ty_atomic_root(ty_atomic_txn *txn, const char *name, void **address) {
    constexpr const char *call = "look up a root";
    if (ty_status status = check_txn(txn, call))
        return status;
    if (ty_status status = check_pointer(name, call, "the name"))
        return status;
    if (ty_status status = check_pointer(address, call, "the place for the address"))
        return status;
    return atomic_root(txn, name, address);
}

ty_status ty_atomic_root_set(ty_atomic_txn *txn, const char *name, void *address) {
    constexpr const char *call = "set a root";
    if (ty_status status = check_txn(txn, call))
        return status;
    if (ty_status status = check_root(atomic_heap(txn), name, address, call))
        return status;
    return atomic_root_set(txn, name, address);
}

ty_status ty_atomic_retry(ty_atomic_txn *txn) {
    if (ty_status status = check_txn(txn, "wait for a change"))
        return status;
    return atomic_retry(txn);
}

ty_status ty_atomic_restart(ty_atomic_txn *txn) {
    if (ty_status status = check_txn(txn, "run again"))
        return status;
    return atomic_restart(txn);
}

ty_status ty_atomic_or_else(ty_atomic_txn *txn, ty_atomic_body *first, ty_atomic_body *second, void *context) {
    constexpr const char *call = "run one of two bodies";
    if (ty_status status = check_txn(txn, call))
        return status;
    if (!first || !second)
        return refuse_null(call, first ? "the second body" : "the first body");
    return atomic_or_else(txn, first, second, context);
}

ty_status ty_atomic_on_commit(ty_atomic_txn *txn, void (*function)(void *context), void *context) {
    constexpr const char *call = "note what to call after a commit";
    if (ty_status status = check_txn(txn, call))
        return status;
    return function ? atomic_on_commit(txn, function, context) : refuse_null(call, "the function");
}

ty_status ty_atomic_on_rollback(ty_atomic_txn *txn, void (*function)(void *context), void *context) {
    constexpr const char *call = "note what to call after a rollback";
    if (ty_status status = check_txn(txn, call))
        return status;
    return function ? atomic_on_rollback(txn, function, context) : refuse_null(call, "the function");
}

ty_status ty_atomic_status(const ty_atomic_txn *txn) {
    if (ty_status status = check_txn(txn, "read a transaction's state"))
        return status;
    return atomic_status(txn);
}

ty_atomic_txn *ty_current_atomic_txn(ty_heap *heap) {
    return check_heap(heap, "get a thread's transaction") ? nullptr : atomic_current(heap);
}

ty_status ty_atomic_quiesce(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "wait for the transactions under way"))
        return status;
    return atomic_quiesce(heap);
}

ty_status ty_get_atomic_stats(ty_heap *heap, ty_atomic_stats *stats) {
    constexpr const char *call = "get statistics of transactions";
    ty_atomic_stats known{};
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_output(stats, call, "ty_atomic_stats"))
        return status;
    if (ty_status status = atomic_get_stats(heap, &known))
        return status;
    copy_output(&known, sizeof known, stats);
    return TY_OK;
}
