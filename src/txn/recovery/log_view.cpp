// The log of a heap, for a reader that follows it: the position of the newest snapshot, its sink, and what is durable.
#include "open_steps.hpp"

#include <cstring>

namespace taiyen {
namespace {

ty_status refuse_without_log(const char *path) {
    return failure(TY_E_UNSUPPORTED, "follow a heap that has no log")
        .at(path)
        .remedy("only transactional heaps that are open for writing, or closed, have one");
}

} // namespace

ty_status txn_newest_snapshot(const char *path, const ty_open_options &options, snapshot_position *newest) {
    ty_info heap{};
    image_log recorded{};
    ty_error refusal{};
    if (ty_status status = image_read_info(path, *options.storage, &heap, &recorded, options.journal_path, &refusal))
        return status;
    if (refusal.status)
        return report_again(refusal);
    if (!recorded.log_identity)
        return refuse_without_log(path);
    memcpy(newest->identity.heap, recorded.heap_identity, sizeof newest->identity.heap);
    newest->identity.log = recorded.log_identity;
    newest->open = recorded.open;
    newest->epoch = heap.epoch;
    newest->redo_points = recorded.redo_point;
    newest->receives = recorded.source.state == uint64_t(source_state::receives);
    return TY_OK;
}

ty_status txn_copied(ty_heap *heap, snapshot_position *position) {
    const txn_runtime *rt = runtime_of(heap);
    if (!rt || rt->log)
        return failure(TY_E_ARGUMENT, "read what a copy holds: the heap has no log, or is open for writing")
            .remedy("open it with TY_OPEN_COPY or TY_OPEN_READ_ONLY");
    if (!rt->holds.exact)
        return failure(TY_E_BUSY, "read what a copy holds: transactions after one that is missing, or is in doubt")
            .at(image_path(heap))
            .remedy("take another copy; if no program has the heap open, its next open for writing resolves them");
    *position = {rt->holds.identity, rt->holds.open, image_epoch(heap), rt->holds.redo_points,
                 rt->receives.load(std::memory_order_relaxed)};
    return TY_OK;
}

ty_status txn_open_log(const char *path, const ty_open_options &options, log_view *view) {
    *view = {};
    log_location location{};
    ty_status status = log_location_of(location, path, options);
    if (!status)
        status = log_location_open(location, false);
    if (!status)
        status = log_check(*location.sink, location.path, nullptr, &view->header);
    if (status) {
        log_location_destroy(location);
        return status;
    }
    view->sink = location.sink;
    view->own = location.own;
    view->path = location.path;
    return TY_OK;
}

void txn_close_log(log_view &view) {
    log_location location{nullptr, view.path, view.sink, view.own, nullptr};
    log_location_destroy(location);
    view = {};
}

ty_status txn_wait_beyond(ty_heap *heap, uint64_t lsn, uint64_t timeout_ns, uint64_t *durable) {
    txn_runtime *rt = runtime_of(heap);
    if (!rt || !rt->log)
        return refuse_without_log(image_path(heap));
    if (rt->txn_forked())
        return failure(TY_E_FORKED, "follow a heap in a forked child").at(image_path(heap));
    *durable = log_wait_beyond(rt->log, lsn, timeout_ns);
    return TY_OK;
}

uint64_t txn_recovered(ty_heap *heap) {
    return log_recovered(runtime_of(heap)->log);
}

} // namespace taiyen
