// The functions of plugin.h.
#include "arguments.hpp"
#include "src/txn/txn.hpp"
#include <taiyen/plugin.h>

using namespace taiyen;

ty_status ty_plugin_check_heap(const ty_heap *heap, const char *call) {
    return check_heap(heap, call);
}

void ty_plugin_get_files(ty_heap *heap, ty_plugin_files *files) {
    *files = {image_identity(heap), image_path(heap), image_journal_path_elsewhere(heap), txn_log_path_elsewhere(heap)};
}

void *ty_plugin_malloc(size_t size_bytes) {
    return os::internal_malloc(size_bytes);
}

static_assert(sizeof(ty_plugin_mutex) == sizeof(os::mutex) &&
              TY_PLUGIN_RANK_GROUPS == uint32_t(os::lock_rank::groups) &&
              TY_PLUGIN_RANK_PROCEDURES == uint32_t(os::lock_rank::procedures));

void ty_plugin_lock(ty_plugin_mutex *mutex) {
    reinterpret_cast<os::mutex *>(mutex)->lock();
}

void ty_plugin_unlock(ty_plugin_mutex *mutex) {
    reinterpret_cast<os::mutex *>(mutex)->unlock();
}

void ty_plugin_set_resolver(const ty_plugin_resolver *resolver) {
    txn_set_resolver(resolver);
}

ty_status ty_plugin_look_at_open(const uint8_t identity[16], bool readers,
                                 ty_status (*look)(ty_heap *heap, ty_plugin_opened how, void *context), void *context) {
    return txn_look_at_open(identity, readers, look, context);
}

ty_status ty_plugin_look_at_files(const char *path, const ty_open_options *options,
                                  ty_status (*look)(ty_heap *heap, const ty_in_doubt_txn *in_doubt, void *context),
                                  void *context) {
    return txn_look_at_files(path, *options, look, context);
}

ty_status ty_plugin_check_log(const char *path, const ty_open_options *options) {
    log_view log{};
    if (ty_status status = txn_open_log(path, *options, &log))
        return status;
    txn_close_log(log);
    return TY_OK;
}

ty_status ty_plugin_open(const char *path, const ty_open_options *options, ty_heap **heap) {
    return txn_open(path, *options, heap, nullptr);
}

ty_status ty_plugin_check_prepare(ty_heap *heap, const char *call) {
    return txn_prepare_check(heap, call);
}

ty_status ty_plugin_refuse_in_body(const char *call) {
    return txn_refuse_in_body(call);
}

ty_status ty_plugin_check_begin(ty_heap *heap, const ty_txn_options *options) {
    if (ty_status status = check_txn_options(*options, "begin a transaction"))
        return status;
    return txn_begin_check(heap);
}

ty_status ty_plugin_make_prepare_room(ty_heap *heap, bool no_wait) {
    return txn_prepare_room(heap, no_wait);
}

bool ty_plugin_is_empty(const ty_txn *txn) {
    return txn_is_empty(txn);
}

ty_status ty_plugin_prepare(ty_txn *txn, const void *description, size_t bytes, uint64_t *lsn) {
    return txn_prepare_begin(txn, description, bytes, lsn);
}

void ty_plugin_prepare_ask(ty_heap *heap, uint64_t lsn) {
    txn_prepare_ask(heap, lsn);
}

ty_status ty_plugin_prepare_wait(ty_heap *heap, uint64_t lsn) {
    return txn_prepare_wait(heap, lsn);
}

ty_status ty_plugin_wait_beyond(ty_heap *heap, uint64_t lsn, uint64_t timeout_ns, uint64_t *durable) {
    return txn_wait_beyond(heap, lsn, timeout_ns, durable);
}

void ty_plugin_take_txn(ty_txn *txn) {
    txn_set_dtxn(txn);
}

ty_status ty_plugin_commit(ty_txn *txn) {
    return txn_commit(txn);
}

ty_status ty_plugin_commit_async(ty_txn *txn, uint64_t *lsn) {
    return txn_commit_async(txn, lsn);
}

ty_status ty_plugin_rollback(ty_txn *txn) {
    return txn_rollback(txn);
}

ty_status ty_plugin_keep_exceptions(ty_status (*work)(void *context), void *context) {
    undeclared_write_guard guard;
    return guard.end(work(context));
}

ty_status ty_plugin_watch_threads(ty_plugin_watcher *watcher) {
    return thread_ends_add(*watcher);
}

void ty_plugin_unwatch_threads(ty_plugin_watcher *watcher) {
    thread_ends_remove(*watcher);
}

ty_status ty_plugin_begin_next(ty_heap *heap, const ty_txn_options *options, ty_txn **txn) {
    return txn_begin_next(heap, *options, txn);
}

ty_status ty_plugin_encode(ty_txn *txn, ty_plugin_record *record) {
    return txn_encode(txn, record);
}

bool ty_plugin_fits(ty_heap *heap, size_t bytes) {
    return txn_gather_fits(heap, bytes);
}

ty_status ty_plugin_end_grouped(ty_txn *txn) {
    return txn_end_grouped(txn);
}

ty_status ty_plugin_append_grouped(ty_heap *heap, const ty_plugin_record *records, size_t count,
                                   const void *description, size_t description_bytes, uint64_t *lsn) {
    return txn_append_grouped(heap, records, count, description, description_bytes, lsn);
}

void ty_plugin_commit_grouped(ty_heap *heap) {
    txn_commit_grouped(heap);
}

ty_status ty_plugin_repair_grouped(ty_heap *heap) {
    return txn_repair_grouped(heap);
}

void ty_plugin_release_grouped(ty_heap *heap, bool poisoned) {
    txn_release_grouped(heap, poisoned);
}

static_assert(TY_PLUGIN_DESCRIPTION_BYTES_MAX == description_max && TY_PLUGIN_GROUPED_MAX == record_pending_max);
