// Closing, discarding and rebuilding heaps.
#include "../transactions/transactions.hpp"
#include "follow.hpp"

#include <cstdlib>

namespace taiyen {
namespace {

ty_status refuse_while_busy(const char *call) {
    return failure(TY_E_BUSY, "%s: a transaction or a read section is under way", call)
        .remedy("end it first, in the thread that began it");
}

ty_status refuse_replica(const txn_runtime &rt, const char *call) {
    if (!rt.replica)
        return TY_OK;
    return failure(TY_E_BUSY, "%s: it is receiving", call).remedy("end the replica first (ty_replica_end)");
}

// The last snapshot's snapshot LSN has nothing after it.
ty_status close_with_log(txn_runtime &rt) {
    if (ty_status status = refuse_within(rt, "close a heap"))
        return status;
    if (rt.txn->owner.load(std::memory_order_relaxed) != 0 || rt.grouped.load(std::memory_order_relaxed))
        return refuse_while_busy("close a heap");
    if (rt.poisoned.load(std::memory_order_relaxed))
        return refuse_poisoned(rt, "close a heap");
    if (ty_status status = refuse_replica(rt, "close a heap"))
        return status;
    runtime_shut(rt);
    sharing_begin_close(rt);
    snapshots_stop(rt);
    ty_heap *heap = rt.heap;
    ty_status status = rt.rwlock.try_lock() ? TY_OK : refuse_while_busy("close a heap");
    bool locked = !status, list_removed = false;
    if (!status)
        status = sharing_quiesced(rt).status;
    if (!status)
        status = sink_check(rt.internal_sink);
    if (!status && rt.concurrent)
        status = rt.concurrent->finish(*rt.concurrent);
    if (!status)
        status = snapshots_free_all(rt);
    if (!status && !fault("reserved_list_stays_at_a_close"))
        status = reservations_remove_list(rt, &list_removed);
    if (!status) {
        write_faults_destroy(rt);
        // For change feeds; if it fails, the close's snapshot holds the transactions nevertheless.
        if (!log_broken(rt.log) && !fault("log_thread_outlives_the_image"))
            (void)log_wait(rt.log, log_last(rt.log));
        // X11: the log's thread, whose check uses the image, ends before the image does.
        if (!fault("log_thread_outlives_the_image"))
            log_stop_threads(rt.log);
        log_positions redo_point =
            log_positions_now(rt.log); // LK6: whole transactions, also those that the log does not hold
        if (!fault("close_forgets_what_the_log_lacks"))
            redo_point = with_lsn(redo_point, redo_point.lsn + rt.unlogged.load(std::memory_order_relaxed));
        status = image_close(heap, &redo_point);
    }
    if (!status) {
        sharing_finish_close(rt);
        rt.heap = nullptr;
        runtime_destroy(rt);
        return TY_OK;
    }
    // The heap stays open and usable. Commits then do what the thread would do.
    const ty_error error = keep_error();
    if (snapshots_create(rt))
        rt.threads = false;
    const bool removed = list_removed && !fault("commits_after_a_list_that_is_gone");
    if (removed || rt.unlogged.load(std::memory_order_relaxed) ||
        (!image_open_named(heap) && !fault("commits_on_a_closed_header")))
        log_break(rt.log, status); // X3, X7: a commit counts with the snapshot that makes the files say so
    if (rt.threads)
        log_resume(rt.log);
    snapshots_begin(rt);
    rt.opened.store(true, std::memory_order_release);
    sharing_go_on(rt);
    if (locked)
        rt.rwlock.unlock();
    return report_again(error, status);
}

} // namespace

ty_status txn_close(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    if (rt && rt->log && !rt->txn_forked())
        return close_with_log(*rt);
    const bool reads = rt && !rt->log && rt->opened.load(std::memory_order_relaxed);
    if (reads) {
        if (rt->txn != nullptr && rt->txn->owner.load(std::memory_order_relaxed) != 0)
            return refuse_while_busy("close a heap");
        if (rt->sharing != nullptr) { // what was committed is not left to others: there may be none
            if (ty_status status = sharing_see_newest(*rt))
                return status;
            if (ty_status status = make_durable(*rt, txn_last(*rt)))
                return status;
        }
        runtime_shut(*rt);
        sharing_stop_thread(*rt);
        follow_stop_thread(*rt);
        if (rt->log != nullptr) // it has come to write the log meanwhile
            return close_with_log(*rt);
    }
    ty_status status = image_close(heap, nullptr); // read-only, or forked and refused
    if (rt && !status) {
        rt->heap = nullptr;
        runtime_destroy(*rt);
    } else if (reads) {
        rt->opened.store(true, std::memory_order_release);
    }
    return status;
}

ty_status txn_discard(ty_heap *heap) {
    if (txn_runtime *rt = runtime_of(heap)) {
        if (ty_status status = refuse_replica(*rt, "discard a heap"))
            return status;
        if (ty_status status = rt->txn_forked() ? TY_OK : refuse_within(*rt, "discard a heap"))
            return status;
        runtime_destroy(*rt);
    }
    return image_discard(heap);
}

ty_status txn_rebuild(ty_heap **heap, const ty_open_options &options, ty_report *report,
                      const open_validator *validator) {
    txn_runtime *rt = runtime_of(*heap);
    if (!rt || !rt->log)
        return failure(TY_E_ARGUMENT, "rebuild a heap that has no log, or is open for reading only")
            .remedy("discard it and open it again");
    if (options.mode == TY_CREATE_NEW)
        return failure(TY_E_ARGUMENT, "rebuild a heap as a new one").remedy("leave the option mode out");
    if (ty_status status = refuse_replica(*rt, "rebuild a heap"))
        return status;
    if (ty_status status = refuse_shared(*rt, "rebuild a heap"))
        return status;
    if (rt->txn_forked())
        return failure(TY_E_FORKED, "rebuild a heap in a forked child").remedy("discard it and open it again");
    // What cannot be made durable would be lost: then nothing is done. A snapshot would not help: memory may hold what
    // a rebuild must undo.
    if (ty_status status = log_wait(rt->log, log_last(rt->log)))
        return status;
    if (ty_status status = image_check_path(*heap, "rebuild a heap"))
        return status;
    char *path = path_with(image_path(*heap), "");
    if (!path)
        return TY_E_MEMORY;
    ty_open_options existing = options;
    existing.mode = TY_OPEN_EXISTING;
    static_cast<void>(txn_discard(*heap)); // it is gone in any case
    *heap = nullptr;
    ty_status status = txn_open(path, existing, heap, report, validator);
    free(path);
    return status;
}

} // namespace taiyen
