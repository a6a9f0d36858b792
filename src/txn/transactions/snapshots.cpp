// Snapshots of a transactional heap that are asked for, or that replace a log write, and their consequences: the log's
// space is released, a broken log is repaired, deferred frees are done.
//
// `lock` is taken after the reader-writer lock, before everything else. A thread that starts a snapshot holds both: so
// snapshot LSNs are in the order of epochs. A thread that repairs the log, or takes a snapshot in place of a log
// write, holds `lock` until the log continues: so no other thread can let it continue meanwhile with an older
// snapshot LSN.
#include "bodies.hpp"
#include "snapshot_service.hpp"

#include <algorithm>
#include <cstdlib>

namespace taiyen {

namespace {

constexpr uint64_t retry_after_ns = 1'000'000'000;

// A snapshot of a shared heap brings its memory to where the log is: no thread reads it.
void lock_for_snapshot(txn_runtime &rt) {
    rt.sharing != nullptr ? rt.rwlock.lock() : rt.rwlock.lock_shared();
}
void unlock_after_snapshot(txn_runtime &rt) {
    rt.sharing != nullptr ? rt.rwlock.unlock() : rt.rwlock.unlock_shared();
}

// Holds the reader-writer lock as a reader, unless the calling thread has it by a read section already.
class [[nodiscard]] rwlock_as_reader {
public:
    explicit rwlock_as_reader(txn_runtime &rt) : rt_(rt), taken_(!in_section(rt)) {
        if (taken_)
            lock_for_snapshot(rt_);
    }
    ~rwlock_as_reader() { unlock(); }
    rwlock_as_reader(const rwlock_as_reader &) = delete;
    rwlock_as_reader &operator=(const rwlock_as_reader &) = delete;
    void unlock() {
        if (taken_)
            unlock_after_snapshot(rt_);
        taken_ = false;
    }

private:
    txn_runtime &rt_;
    bool taken_;
};

class [[nodiscard]] others_stopped {
public:
    explicit others_stopped(txn_runtime &rt) : rt_(rt) { stop_others(rt); }
    ~others_stopped() { others_go_on(rt_); }
    others_stopped(const others_stopped &) = delete;
    others_stopped &operator=(const others_stopped &) = delete;

private:
    txn_runtime &rt_;
};

// ---- Under lock

// Called when a snapshot is durable.
void forget_failure(snapshot_service &s) {
    s.retry_ns = 0;
    s.snapshot_error.clear();
}

uint64_t pages_written(const txn_runtime &rt) {
    ty_snapshot_stats stats{};
    (void)image_get_snapshot_stats(rt.heap, &stats);
    return stats.pages;
}

} // namespace

void snapshots_free_some(txn_runtime &rt, snapshot_service &s, size_t most) {
    for (; most && s.frees.count(); --most)
        if (reserved_free(rt, s.frees.pop()))
            s.free_error.keep();
}

void snapshots_acknowledge(txn_runtime &rt, snapshot_service &s) {
    if (!s.pending || image_epoch(rt.heap) < s.pending_epoch)
        return;
    s.pending = false;
    forget_failure(s);
    // Nothing was appended to a broken log since it broke; if nothing was since the snapshot LSN, the snapshot holds
    // all of it. On a concurrent heap a thread may be within an append: snapshots_repair stops all of them.
    if (!rt.concurrent && log_broken(rt.log) && log_last(rt.log) == s.pending_redo_point.lsn)
        log_continue(rt.log, s.pending_redo_point);
    else
        log_release(rt.log, s.pending_redo_point);
    // What is in use now came after the snapshot LSN.
    snapshots_set_due_log_bytes(rt, log_get_metrics(rt.log).fullest_bytes);
}

namespace {

// Writes what was committed without waiting: otherwise it would be in the snapshot alone, and a change feed would have
// to start over from a new base. One write; if it fails, the snapshot holds the transactions nevertheless. X21: nothing
// is written within an open, which resolves its own doubts.
void flush_async_commits(txn_runtime &rt) {
    if (rt.opened.load(std::memory_order_acquire) && !log_broken(rt.log))
        (void)log_wait(rt.log, log_last(rt.log));
}

ty_status start_stop_the_world(txn_runtime &rt, uint64_t beyond_log, log_positions *redo_point, uint64_t *epoch) {
    reservations_lock(rt);
    ty_status status = rt.concurrent ? rt.concurrent->begin_snapshot(*rt.concurrent) : TY_OK;
    if (!status) {
        *redo_point = log_positions_now(rt.log);
        redo_point->lsn += beyond_log;
        if (rt.concurrent) // a commit that failed may have had an LSN
            redo_point->lsn = std::max(redo_point->lsn, rt.concurrent->newest_commit(*rt.concurrent));
        const log_positions image = with_lsn(*redo_point, redo_point->lsn);
        status = image_snapshot_start(rt.heap, &image, nullptr, epoch);
        if (rt.concurrent) {
            rt.concurrent->have_tables(*rt.concurrent);
            rt.concurrent->end_snapshot(*rt.concurrent);
        }
    }
    reservations_unlock(rt);
    return status;
}

enum class is_fuzzy : bool { no, yes };

// X1 (whole transactions up to the snapshot LSN), X3 (all reserved blocks are listed): with the reader-writer lock
// held. beside: other writers of a concurrent heap continue; otherwise they are stopped, or cannot commit.
ty_status start(txn_runtime &rt, snapshot_service &s, uint64_t beyond_log, uint64_t *epoch,
                is_fuzzy fuzzy = is_fuzzy::no) {
    if (rt.poisoned.load(std::memory_order_relaxed)) // LK6: only whole transactions, in order
        return refuse_poisoned(rt, "take a snapshot");
    if (ty_status status = sink_check(rt.internal_sink)) // without its log the heap would not open again
        return status;
    snapshots_acknowledge(rt, s);
    snapshots_free_some(rt, s, SIZE_MAX);
    log_positions redo_point{};
    ty_status status = fuzzy == is_fuzzy::yes ? snapshot_start_fuzzy(rt, &redo_point, epoch)
                                              : start_stop_the_world(rt, beyond_log, &redo_point, epoch);
    if (status)
        return status;
    s.memory.collected();
    s.pending = true;
    s.pending_epoch = *epoch;
    s.pending_redo_point = redo_point;
    s.started_ns = os::now_ns();
    s.started_lsn = redo_point.lsn;
    return TY_OK;
}

// Takes a snapshot after which the log continues in a generation of its own.
ty_status start_and_continue(txn_runtime &rt, snapshot_service &s, uint64_t beyond_log, rwlock_as_reader *rwlock) {
    uint64_t epoch = 0, pages = pages_written(rt);
    beyond_log += fault("snapshot_forgets_what_the_log_lacks") ? 0 : rt.unlogged.load(std::memory_order_relaxed);
    ty_status status = start(rt, s, beyond_log, &epoch);
    if (rwlock)
        rwlock->unlock();
    if (!status) {
        status = image_snapshot_wait(rt.heap, epoch);
        if (status && beyond_log && !fault("log_goes_on_after_an_unacknowledged_snapshot"))
            log_break(rt.log, status); // X7: nothing is logged after a snapshot that failed and may be found
    }
    s.pending = false;
    if (status)
        return status;
    rt.unlogged.store(0, std::memory_order_relaxed); // nothing is received before the log continues
    log_continue(rt.log, s.pending_redo_point);
    forget_failure(s);
    s.forced += 1;
    s.pages += pages_written(rt) - pages;
    return TY_OK;
}

// Starts a snapshot that no commit needs. A log that is broken, or has no room for what an open has to repeat, cannot
// hold what a fuzzy snapshot may have of later commits.
ty_status start_ordinary(txn_runtime &rt, snapshot_service &s, uint64_t *epoch) {
    if (rt.unlogged.load(std::memory_order_relaxed)) {
        others_stopped stopped(rt);
        ty_status status = start_and_continue(rt, s, 0, nullptr);
        *epoch = s.pending_epoch;
        return status;
    }
    flush_async_commits(rt);
    if (rt.concurrent && snapshots_can_be_fuzzy(rt) && !log_broken(rt.log)) {
        ty_status status = start(rt, s, 0, epoch, is_fuzzy::yes);
        if (!status || (status != TY_E_SPACE && !log_broken(rt.log)))
            return status;
    }
    others_stopped stopped(rt);
    return start(rt, s, 0, epoch);
}

// ---- Without lock

} // namespace

// The snapshot then holds what could not be written.
ty_status snapshots_repair(txn_runtime &rt) {
    if (must_not_wait()) // X31: a thread in a body waits for nobody on another heap
        return bodies_abort_for({blocker::kind::broken_log, nullptr, nullptr, &rt});
    snapshot_service &s = *rt.snapshots;
    rwlock_as_reader rwlock(rt);
    others_stopped stopped(rt);
    os::lock_guard guard(s.lock);
    const sharing_quiesced quiesced(rt);
    if (quiesced.status)
        return quiesced.status;
    return log_broken(rt.log) ? start_and_continue(rt, s, 0, &rwlock) : TY_OK;
}

namespace {

ty_status wait_for(txn_runtime &rt, uint64_t epoch) {
    if (ty_status status = image_snapshot_wait(rt.heap, epoch))
        return status;
    os::lock_guard guard(rt.snapshots->lock);
    snapshots_acknowledge(rt, *rt.snapshots);
    return TY_OK;
}

// With the reader-writer lock held: once a snapshot is durable, evicts private copies that it needed. On a failure they
// stay.
void evict_copies(txn_runtime &rt) {
    if (rt.concurrent && !rt.snapshots->memory.may_exceed())
        return; // no thread is stopped for that
    others_stopped stopped(rt);
    reservations_lock(rt);
    (void)image_evict_copies(rt.heap);
    reservations_unlock(rt);
}

// A snapshot would be taken within the transaction.
ty_status refuse_in_transaction(const char *call) {
    return failure(TY_E_ARGUMENT, "%s: this thread has a transaction under way on the heap", call)
        .remedy("commit it or roll it back first");
}

} // namespace

ty_status snapshots_take(txn_runtime &rt, bool rwlock_held) {
    snapshot_service &s = *rt.snapshots;
    uint64_t epoch = 0, before = 0;
    {
        os::lock_guard guard(s.lock); // the one before is not waited for with the reader-writer lock held
        epoch = s.pending ? s.pending_epoch : 0;
    }
    if (epoch && !rwlock_held)
        (void)wait_for(rt, epoch); // its failure is reported to the threads that wait for it
    flush_async_commits(rt);       // so that there is little left to write once the reader-writer lock is held
    if (!rwlock_held)
        lock_for_snapshot(rt);
    ty_status status = TY_OK;
    epoch = 0;
    if (!s.stopping.load(
            std::memory_order_relaxed)) { // otherwise the transaction may have left the reader-writer lock held
        os::lock_guard guard(s.lock);
        before = pages_written(rt);
        const sharing_quiesced quiesced(rt);
        status = quiesced.status ? quiesced.status : start_ordinary(rt, s, &epoch);
    }
    if (!rwlock_held)
        unlock_after_snapshot(rt);
    if (!status && epoch)
        status = wait_for(rt, epoch);
    if (!status && epoch && !s.stopping.load(std::memory_order_relaxed)) {
        if (!rwlock_held)
            lock_for_snapshot(rt);
        if (!s.stopping.load(std::memory_order_relaxed))
            evict_copies(rt);
        if (!rwlock_held)
            unlock_after_snapshot(rt);
    }
    os::lock_guard guard(s.lock);
    if (status) {
        s.snapshot_error.keep(epoch ? epoch : image_epoch(rt.heap) + 1);
        s.retry_ns = os::now_ns() + retry_after_ns;
    } else if (epoch) {
        s.timed += 1;
        s.pages += pages_written(rt) - before;
    }
    return status;
}

void snapshots_free_later(txn_runtime &rt, void *block) {
    snapshot_service &s = *rt.snapshots;
    bool queued = false;
    if (rt.threads) {
        os::lock_guard guard(s.lock);
        queued = s.frees.push(block) == TY_OK;
    }
    if (queued)
        snapshots_wake(s);
    else if (reserved_free(rt, block)) {
        s.free_error.keep();
    }
}

ty_status snapshot_instead(txn_runtime &rt, bool holds_transaction, uint64_t *lsn) {
    snapshot_service &s = *rt.snapshots;
    os::lock_guard guard(s.lock);
    snapshots_set_due_log_bytes(rt, UINT64_MAX); // the one before it may have begun too late
    if (ty_status status = start_and_continue(rt, s, holds_transaction, nullptr))
        return status;
    *lsn = s.pending_redo_point.lsn;
    return TY_OK;
}

// A snapshot that began before the log was full may free too little, or nothing.
ty_status snapshots_make_room(txn_runtime &rt) {
    if (must_not_wait()) // X31, as above
        return bodies_abort_for({blocker::kind::full_log, nullptr, nullptr, &rt});
    const uint64_t used = log_get_metrics(rt.log).used_bytes;
    uint64_t epoch = 0;
    {
        os::lock_guard guard(rt.snapshots->lock);
        epoch = rt.snapshots->pending ? rt.snapshots->pending_epoch : 0;
    }
    if (epoch)
        (void)wait_for(rt, epoch);
    if (log_get_metrics(rt.log).used_bytes < used)
        return TY_OK;
    if (ty_status status = txn_snapshot_start(rt.heap, &epoch))
        return status;
    return txn_snapshot_wait(rt.heap, epoch);
}

ty_status snapshots_free_all(txn_runtime &rt) {
    snapshot_service &s = *rt.snapshots;
    os::lock_guard guard(s.lock);
    s.free_error.clear();
    snapshots_free_some(rt, s, SIZE_MAX);
    return s.free_error.report();
}

void snapshots_add_stats(txn_runtime &rt, ty_txn_stats *stats) {
    const snapshot_service &s = *rt.snapshots;
    stats->forced_snapshots = s.forced.load(std::memory_order_relaxed);
    stats->automatic_snapshots = s.timed.load(std::memory_order_relaxed);
    stats->snapshot_pages = s.pages.load(std::memory_order_relaxed);
}

ty_status txn_snapshot_start(ty_heap *heap, uint64_t *epoch) {
    txn_runtime *rt = runtime_of(heap);
    if (rt && rt->sharing && !rt->log)
        return refuse_shared(*rt, "take a snapshot in another process than the one that writes the log");
    if (!rt || !rt->log || rt->txn_forked())
        return image_snapshot_start(heap, nullptr, nullptr, epoch);
    if (has_own(*rt))
        return refuse_in_transaction("start a snapshot");
    if (ty_status status = refuse_within(*rt, "start a snapshot"))
        return status;
    if (must_not_wait())
        return refuse_in_body("start a snapshot");
    flush_async_commits(*rt);
    if (fault("snapshot_amid_a_transaction"))
        return start_ordinary(*rt, *rt->snapshots, epoch);
    rwlock_as_reader rwlock(*rt);
    os::lock_guard guard(rt->snapshots->lock);
    const sharing_quiesced quiesced(*rt);
    if (quiesced.status)
        return quiesced.status;
    return start_ordinary(*rt, *rt->snapshots, epoch);
}

ty_status txn_snapshot_wait(ty_heap *heap, uint64_t epoch) {
    txn_runtime *rt = runtime_of(heap);
    if (!rt || !rt->log || rt->txn_forked())
        return image_snapshot_wait(heap, epoch);
    return wait_for(*rt, epoch);
}

void txn_evict_copies(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    if (!rt || !rt->log || rt->txn_forked()) {
        (void)image_evict_copies(heap);
    } else if (!has_own(*rt) && !must_not_wait() && !refuse_within(*rt, "give memory back")) {
        rwlock_as_reader rwlock(*rt);
        evict_copies(*rt);
    }
}

ty_status txn_work(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    if (rt && rt->follower && !rt->sharing)
        return follower_keep_up(*rt);
    if (rt && rt->sharing && !rt->log)
        return TY_OK;
    if (!rt || !rt->log || rt->txn_forked())
        return image_work(heap);
    snapshot_service &s = *rt->snapshots;
    bool may_wait = !has_own(*rt) && !in_section(*rt) && !must_not_wait() && !refuse_within(*rt, "take a snapshot");
    if (may_wait && (s.snapshot_error.report(image_epoch(heap)) || (!rt->threads && snapshots_due(*rt))))
        (void)snapshots_take(*rt, false); // its error is kept
    {
        os::lock_guard guard(s.lock);
        snapshots_free_some(*rt, s, SIZE_MAX);
        snapshots_acknowledge(*rt, s);
    }
    if (ty_status status = image_work(heap))
        return status;
    if (ty_status status = s.snapshot_error.report(image_epoch(heap)))
        return status;
    return s.free_error.report_once();
}

ty_status txn_work_status(ty_heap *heap) {
    txn_runtime *rt = runtime_of(heap);
    if (rt && rt->log && !rt->txn_forked()) {
        if (ty_status status = rt->snapshots->snapshot_error.report(image_epoch(heap)))
            return status;
        if (ty_status status = rt->snapshots->free_error.report())
            return status;
    }
    return image_work_status(heap);
}

} // namespace taiyen
