// What the parts of snapshots on a transactional heap share: those that are asked for (snapshots.cpp), and those that
// are due (snapshots_due.cpp).
#pragma once

#include "memory_pressure.hpp"
#include "transaction.hpp"

namespace taiyen {

// The error of work that no thread waited for. It has a lock of its own, so that it can be read without waiting for the
// disk.
class work_error {
public:
    // Keeps the calling thread's detail. It expires when a snapshot of that epoch, or a later one, is durable; 0:
    // never.
    void keep(uint64_t epoch = 0) {
        os::lock_guard guard(lock_);
        ty_error_detail(&error_);
        over_at_ = epoch;
    }
    void clear() {
        os::lock_guard guard(lock_);
        error_ = {};
    }
    ty_status report(uint64_t durable = 0) {
        os::lock_guard guard(lock_);
        if (over_at_ != 0 && durable >= over_at_)
            error_ = {};
        return report_locked();
    }
    ty_status report_once() {
        os::lock_guard guard(lock_);
        ty_status status = report_locked();
        error_ = {};
        return status;
    }

private:
    ty_status report_locked() const {
        const ty_error &e = error_;
        return e.status ? report_again(e) : TY_OK;
    }

    os::mutex lock_{os::lock_rank::work_errors};
    ty_error error_{}; // guarded by lock_, as is over_at_; status TY_OK: no error
    uint64_t over_at_ = 0;
};

struct snapshot_service {
    os::mutex lock{os::lock_rank::snapshots};
    bool pending; // from here: guarded by lock. A snapshot was started whose outcome the log does not know yet
    uint64_t pending_epoch;
    log_positions pending_redo_point;
    uint64_t started_ns;     // the last one
    uint64_t started_lsn;    // the LSN up to which it holds transactions
    os::array<void *> frees; // blocks to be freed before the next one
    uint64_t retry_ns;       // when a failed snapshot is retried; 0: the last one did not fail
    // For statistics, which wait for no snapshot: that may be waiting for the caller (ty_reader_lock).
    std::atomic<uint64_t> forced;
    std::atomic<uint64_t> timed;
    std::atomic<uint64_t> pages;

    memory_pressure memory; // guarded by the reader-writer lock

    std::atomic<uint64_t> due_log_bytes; // a snapshot is due when this much of the ring is in use

    std::atomic<bool> memory_short;     // seen after a commit
    std::atomic<uint64_t> dirty_due_ns; // with snapshot_dirty_bytes: when the dirty pages are counted again,
    std::atomic<bool> uncounted;        // if there are commits since the last count
    work_error snapshot_error;          // of a snapshot that was not asked for, until it or a later one is durable
    work_error free_error;              // of blocks whose free was deferred, until it is reported
    std::atomic<uint32_t> signal;
    std::atomic<bool> stopping;
    std::atomic<bool> asleep; // the heap is not open yet
    std::atomic<bool> wanted; // the thread is to check
    os::thread thread;
    bool running;
};

// Whether the calling thread has a transaction under way, or one that it has prepared.
inline bool has_own(const txn_runtime &rt) {
    return txn_current(rt.heap) != nullptr || has_prepared(rt);
}

// ---- snapshots.cpp

// Frees blocks whose free was deferred. Under lock.
void snapshots_free_some(txn_runtime &rt, snapshot_service &s, size_t most);
// Notifies the log if the pending snapshot is durable. Under lock.
void snapshots_acknowledge(txn_runtime &rt, snapshot_service &s);
// Takes a snapshot that was not asked for. rwlock_held: by a commit. An error is kept for ty_run_background_work and
// ty_background_work_status.
ty_status snapshots_take(txn_runtime &rt, bool rwlock_held);

// ---- fuzzy_snapshots.cpp

// Whether snapshots of the heap can be collected while others commit.
bool snapshots_can_be_fuzzy(txn_runtime &rt);
// With the reader-writer lock held: it is released and taken again meanwhile.
ty_status snapshot_start_fuzzy(txn_runtime &rt, log_positions *redo_point, uint64_t *epoch);

// ---- snapshots_due.cpp

bool snapshots_due(txn_runtime &rt);
void snapshots_wake(snapshot_service &s); // the thread
// Sets when the next snapshot is due, from what was logged while the last one was under way. Under lock.
void snapshots_set_due_log_bytes(txn_runtime &rt, uint64_t logged_meanwhile);

} // namespace taiyen
