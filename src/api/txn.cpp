// The functions of txn.h.
#include "src/txn/txn.hpp"
#include "arguments.hpp"
#include <bit>
#include <cstring>
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

ty_status check_txn(const ty_txn *txn, const char *call) {
    if (ty_status status = check_pointer(txn, call, "the transaction"))
        return status;
    return txn_heap(txn) ? TY_OK : heap_closed(call);
}

ty_status check_end(const ty_txn *txn, const char *call) {
    if (ty_status status = check_txn(txn, call))
        return status;
    return txn_refuse_dtxn(txn, call);
}

// Bytes to read or write: for 0 bytes no address is needed.
ty_status check_bytes(const void *address, size_t bytes, const char *call, const char *what) {
    return bytes != 0 ? check_pointer(address, call, what) : TY_OK;
}

} // namespace

ty_status taiyen::check_txn_options(const ty_txn_options &options, const char *call) {
    const int stores = number_of(options.stores);
    if (stores < TY_STORES_DEFAULT || stores > TY_STORES_TRACKED)
        return failure(TY_E_ARGUMENT, "%s: the option stores is %d", call, stores)
            .remedy("use one of the constants of txn.h");
    return TY_OK;
}

ty_status ty_begin(ty_heap *heap, const ty_txn_options *options, ty_txn **txn) {
    constexpr const char *call = "begin a transaction";
    ty_txn_options known = TY_TXN_OPTIONS_INIT;
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_pointer(txn, call, "the place for the transaction"))
        return status;
    if (options) {
        if (ty_status status =
                copy_options(options, &known, sizeof known, call, "ty_txn_options", "TY_TXN_OPTIONS_INIT"))
            return status;
        if (ty_status status = check_txn_options(known, call))
            return status;
    }
    return txn_begin(heap, known, txn);
}

ty_status ty_set_stores(ty_heap *heap, ty_store_mode stores) {
    constexpr const char *call = "set how stores become known";
    if (ty_status status = check_heap(heap, call))
        return status;
    const int number = number_of(stores);
    if (number != TY_STORES_DECLARED && number != TY_STORES_TRACKED)
        return failure(TY_E_ARGUMENT, "%s: to %d", call, number).remedy("give TY_STORES_DECLARED or TY_STORES_TRACKED");
    return txn_set_stores(heap, stores);
}

ty_store_mode ty_txn_stores(const ty_txn *txn) {
    return check_txn(txn, "read how stores become known") ? TY_STORES_DEFAULT : txn_stores(txn);
}

ty_txn *ty_current_txn(ty_heap *heap) {
    return check_heap(heap, "get a thread's transaction") ? nullptr : txn_current(heap);
}

ty_heap *ty_txn_heap(const ty_txn *txn) {
    return check_pointer(txn, "get the heap of a transaction", "the transaction") ? nullptr : txn_heap(txn);
}

ty_status ty_declare(ty_txn *txn, const void *address, size_t bytes) {
    if (!txn) [[unlikely]]
        return check_txn(txn, "declare a range");
    return txn_declare(txn, address, bytes);
}

void *ty_txn_alloc(ty_txn *txn, size_t size) {
    if (ty_status status = check_txn(txn, "allocate a block"))
        return none(status);
    return txn_alloc(txn, size, 0);
}

void *ty_txn_alloc_aligned(ty_txn *txn, size_t size, size_t alignment) {
    constexpr const char *call = "allocate an aligned block";
    if (ty_status status = check_txn(txn, call))
        return none(status);
    if (ty_status status = check_alignment(txn_heap(txn), alignment, call))
        return none(status);
    return txn_alloc(txn, size, alignment);
}

ty_status ty_txn_free(ty_txn *txn, void *block) {
    if (ty_status status = check_txn(txn, "free a block"))
        return status;
    return block ? txn_free(txn, block) : TY_OK;
}

void *ty_txn_resize(ty_txn *txn, void *block, size_t size) {
    constexpr const char *call = "resize a block";
    if (ty_status status = check_txn(txn, call))
        return none(status);
    if (ty_status status = check_pointer(block, call, "the block"))
        return none(status);
    return txn_resize(txn, block, size);
}

ty_status ty_txn_root_set(ty_txn *txn, const char *name, void *address) {
    constexpr const char *call = "set a root";
    if (ty_status status = check_txn(txn, call))
        return status;
    if (ty_status status = check_root(txn_heap(txn), name, address, call))
        return status;
    return txn_root_set(txn, name, address);
}

void *ty_reserve(ty_heap *heap, size_t size) {
    if (ty_status status = check_heap(heap, "reserve a block"))
        return none(status);
    return txn_reserve(heap, size);
}

ty_status ty_cancel(void *block) {
    if (ty_status status = check_pointer(block, "cancel a reservation", "the block"))
        return status;
    return txn_cancel(block);
}

ty_status ty_publish(ty_txn *txn, void *const *blocks, size_t count) {
    constexpr const char *call = "publish reserved blocks";
    if (ty_status status = check_txn(txn, call))
        return status;
    if (ty_status status = check_bytes(blocks, count, call, "the array of blocks"))
        return status;
    return txn_publish(txn, blocks, count);
}

ty_status ty_register_procedure(uint64_t id, const char *name, ty_procedure *procedure, void *context) {
    constexpr const char *call = "register a procedure";
    if (id == 0)
        return failure(TY_E_ARGUMENT, "%s: its id is 0", call).remedy("give it another id, which it keeps for ever");
    if (procedure)
        if (ty_status status = check_pointer(name, call, "the name"))
            return status;
    return procedure_register(id, name, procedure, context);
}

ty_status ty_log_data(ty_txn *txn, const void *address, size_t bytes) {
    if (ty_status status = check_txn(txn, "log data"))
        return status;
    return txn_log_data(txn, address, bytes);
}

ty_status ty_log_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes) {
    constexpr const char *call = "log a procedure";
    if (ty_status status = check_txn(txn, call))
        return status;
    if (ty_status status = check_bytes(arguments, bytes, call, "the arguments"))
        return status;
    return txn_log_procedure(txn, id, arguments, bytes);
}

ty_status ty_on_rollback_data(ty_txn *txn, void *address, const void *old_bytes, size_t bytes) {
    constexpr const char *call = "note what a rollback puts back";
    if (ty_status status = check_txn(txn, call))
        return status;
    if (ty_status status = check_bytes(old_bytes, bytes, call, "the old content"))
        return status;
    return txn_on_rollback_data(txn, address, old_bytes, bytes);
}

ty_status ty_on_rollback_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes) {
    constexpr const char *call = "note a procedure for a rollback";
    if (ty_status status = check_txn(txn, call))
        return status;
    if (ty_status status = check_bytes(arguments, bytes, call, "the arguments"))
        return status;
    return txn_on_rollback_procedure(txn, id, arguments, bytes);
}

ty_status ty_prepare(ty_txn *txn, const void *description, size_t bytes) {
    constexpr const char *call = "prepare a transaction";
    static_assert(TY_PREPARED_BYTES_MAX == description_max);
    if (ty_status status = check_txn(txn, call))
        return status;
    if (!description && bytes)
        return failure(TY_E_ARGUMENT, "%s: its description is NULL", call).remedy("give one, or 0 bytes");
    if (ty_status status = txn_refuse_dtxn(txn, call))
        return status;
    return txn_prepare(txn, description, bytes);
}

ty_status ty_commit(ty_txn *txn) {
    if (ty_status status = check_end(txn, "commit"))
        return status;
    undeclared_write_guard guard;
    return guard.end(txn_commit(txn));
}

ty_status ty_commit_async(ty_txn *txn, uint64_t *lsn) {
    if (ty_status status = check_end(txn, "commit"))
        return status;
    undeclared_write_guard guard;
    return guard.end(txn_commit_async(txn, lsn));
}

ty_status ty_rollback(ty_txn *txn) {
    if (!txn)
        return TY_OK;
    if (ty_status status = txn_refuse_dtxn(txn, "roll back"))
        return status;
    undeclared_write_guard guard;
    return guard.end(txn_rollback(txn));
}

ty_status ty_durable(ty_heap *heap, uint64_t lsn, bool wait, bool *durable) {
    constexpr const char *call = "check whether a transaction is durable";
    if (ty_status status = check_heap(heap, call))
        return status;
    bool answer;
    if (!durable && wait) // a thread that waits knows the answer
        durable = &answer;
    if (ty_status status = check_pointer(durable, call, "the place for the answer"))
        return status;
    return txn_durable(heap, lsn, wait, durable);
}

ty_status ty_read_begin(ty_heap *heap) {
    if (ty_status status = check_heap(heap, "begin a read section"))
        return status;
    return txn_read_begin(heap);
}

ty_status ty_read_end(ty_heap *heap) {
    return heap ? txn_read_end(heap) : TY_OK;
}

ty_status ty_object_read_begin(ty_heap *heap, const void *object) {
    if (ty_status status = check_heap(heap, "begin an object's read section"))
        return status;
    return txn_object_read_begin(heap, object);
}

ty_status ty_object_read_end(ty_heap *heap, const void *object) {
    return heap ? txn_object_read_end(heap, object) : TY_OK;
}

ty_status ty_txn_lock_object(ty_txn *txn, const void *object) {
    if (ty_status status = check_txn(txn, "lock an object"))
        return status;
    return txn_lock_object(txn, object);
}

ty_status ty_get_txn_stats(ty_heap *heap, ty_txn_stats *stats) {
    constexpr const char *call = "get transaction statistics";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (ty_status status = check_output(stats, call, "ty_txn_stats"))
        return status;
    ty_txn_stats known{};
    known.struct_size = sizeof known;
    if (ty_status status = txn_get_stats(heap, &known))
        return status;
    copy_output(&known, sizeof known, stats);
    return TY_OK;
}
