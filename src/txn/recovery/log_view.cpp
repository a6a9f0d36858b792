// The log of a heap, for a reader that follows it: the place of the newest snapshot, its sink, and what is durable.
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

ty_status txn_newest_snapshot(const char *path, const ty_open_options &options, snapshot_place *newest) {
    ty_info heap{};
    image_log told{};
    ty_error refusal{};
    constexpr bool locks = false; // no open of another process fails because of a reader
    if (ty_status status = image_read_info(path, *options.storage, &heap, &told, options.journal_path, &refusal, locks))
        return status;
    if (refusal.status)
        return report_again(refusal);
    if (!told.log_identity)
        return refuse_without_log(path);
    memcpy(newest->identity.heap, told.heap_identity, sizeof newest->identity.heap);
    newest->identity.log = told.log_identity;
    newest->open = told.open;
    newest->epoch = heap.epoch;
    newest->marks = told.mark;
    return TY_OK;
}

ty_status txn_copied(ty_heap *heap, snapshot_place *place) {
    const txn_runtime *rt = runtime_of(heap);
    if (!rt || rt->log)
        return failure(TY_E_ARGUMENT, "tell what a copy holds: the heap has no log, or is open for writing")
            .remedy("open it with TY_OPEN_COPY or TY_OPEN_READ_ONLY");
    if (!rt->holds.exact)
        return failure(TY_E_BUSY, "tell what a copy holds: transactions behind one that is missing, or is in doubt")
            .at(image_path(heap))
            .remedy("take another copy; if no program has the heap open, its next open for writing resolves them");
    *place = {rt->holds.identity, rt->holds.open, image_epoch(heap), rt->holds.marks};
    return TY_OK;
}

ty_status txn_open_log(const char *path, const ty_open_options &options, log_view *view) {
    *view = {};
    log_place place{};
    ty_status status = place_of(place, path, options);
    if (!status)
        status = place_open(place, false);
    if (!status)
        status = log_check(*place.sink, place.path, nullptr, &view->header);
    if (status) {
        place_destroy(place);
        return status;
    }
    view->sink = place.sink;
    view->own = place.own;
    view->path = place.path;
    return TY_OK;
}

void txn_close_log(log_view &view) {
    log_place place{nullptr, view.path, view.sink, view.own, nullptr};
    place_destroy(place);
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
