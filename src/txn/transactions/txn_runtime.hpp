// The runtime state of one open transactional heap, shared by the files of this layer.
//
// `rwlock` serialises transactions, snapshots and readers (X1: a record of ty_begin's transaction is appended, and a
// redo point taken, only with the lock held). What it guards is the writer's alone. Other locks are taken after it, in
// the order of os::lock_rank.
#pragma once

#include "../txn.hpp"
#include "commit_times.hpp"
#include "rwlock.hpp"

#include <atomic>

namespace taiyen {

// Written with the transactions' reader-writer lock held, read by any thread. What each commit writes is on one cache
// line: a thread that takes the reader-writer lock after another fetches all that the other wrote to.
struct alignas(64) txn_metrics {
    class figure {
    public:
        void add(uint64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
        uint64_t get() const { return value_.load(std::memory_order_relaxed); }

    private:
        std::atomic<uint64_t> value_;
    };
    figure transactions;
    figure rollbacks;
    figure entries;
    figure record_bytes;
    uint32_t unlooked_commits;  // guarded by rwlock: commits since the log's fill level was checked,
    uint64_t seen_record_bytes; // and the value of record_bytes then
    figure replayed_transactions;
    figure replayed_bytes;
    figure replay_ns;
};

// The transactions of many threads on a concurrent heap, as ty_begin and snapshots see them (part concurrent).
struct atomic_transactions {
    // From stop to go_on none runs, and none begins. The threads that stop them are counted.
    void (*stop)(atomic_transactions &transactions);
    void (*go_on)(atomic_transactions &transactions);
    // Whether the calling thread has one under way: it must not stop them.
    bool (*in_one)(atomic_transactions &transactions);
    // The LSN of the newest commit, once it and all commits before it are in the log. Within one of them: except that
    // one.
    uint64_t (*newest_commit)(atomic_transactions &transactions);
    // begin_snapshot: before a snapshot's snapshot LSN is taken. have_tables: when its tables are copied (X24);
    // between the two the lock of reservations is held. end_snapshot: when its pages are collected. If begin_snapshot
    // fails, nothing has to be ended.
    ty_status (*begin_snapshot)(atomic_transactions &transactions);
    void (*have_tables)(atomic_transactions &transactions);
    void (*end_snapshot)(atomic_transactions &transactions);
    // With none under way: releases the blocks that they have freed. TY_E_BUSY: one is under way.
    ty_status (*finish)(atomic_transactions &transactions);
    // The same while they are stopped, with the reader-writer lock held: for a thread that has no room. False: there
    // was nothing to release.
    bool (*give_back)(atomic_transactions &transactions);
    // Adds what they have committed.
    void (*add_stats)(atomic_transactions &transactions, ty_txn_stats *stats);
};

struct txn_runtime : thread_end_watcher {
    // Set at open, then constant.
    ty_heap *heap;
    char *base;
    uint64_t user_first_word; // what records may name (X5: no record stores to the heap's tables)
    uint64_t user_end_word;
    std::atomic<taiyen::log *> log; // of a shared heap it is set later
    const ty_log_sink *sink;        // where the log is kept
    ty_log_sink *internal_sink;     // the same, if the open created it; NULL for the program's
    char *log_path;
    bool log_elsewhere;       // the option log_path names it
    std::atomic<bool> opened; // its open has ended, so that other threads may use the runtime
    uint32_t lookers;         // number of threads that do (thread_ends.cpp)
    bool check_stores;
    bool threads; // whether the library may use threads
    void (*undeclared_write)(const ty_undeclared_write *store, void *context);
    void *undeclared_store_context;
    uint64_t snapshot_dirty_bytes;
    uint64_t memory_bytes;
    uint32_t snapshot_interval_ms;

    std::atomic<ty_store_mode> stores; // the default

    fair_rwlock rwlock;
    ty_txn *txn; // the one transaction; its memory is kept from one to the next (transaction.cpp)
    txn_metrics metrics;
    commit_times times;

    struct reservations *reserved;             // reservations.cpp
    struct object_locks *objects;              // readers.cpp
    struct snapshot_service *snapshots;        // snapshots.cpp
    struct write_fault_tracking *write_faults; // write_faults.cpp; NULL until the first tracked transaction
    atomic_transactions *concurrent;           // NULL: the heap is not concurrent
    std::atomic<bool> grouped;                 // transactions have ended that wait for one outcome (grouped.cpp)

    // For a heap that receives (recovery/apply_records.cpp): written with the reader-writer lock held.
    struct receiving *replica;  // NULL: none
    std::atomic<bool> receives; // nobody else may write
    std::atomic<bool>
        poisoned; // memory holds a part of a transaction; or distributed transactions that may be in no log
    std::atomic<uint64_t> unlogged; // transactions after the log's last one that are in memory alone

    struct follower *follower; // recovery/follow.cpp; NULL: it follows no writer
    struct sharing *sharing;   // sharing/; NULL: this process has the heap for itself. log NULL: another one writes it

    // For a heap that is open for reading: what it holds.
    struct {
        log_identity identity;
        open_identity open;
        log_positions redo_points;
        bool exact;  // all up to the redo points' LSN, and no more
        bool copied; // from files that a writer had open
    } holds;

    os::fork_guard fork;
    bool txn_forked() const { return fork.forked(); } // in a child of the process that opened the heap
};

// The last transaction in memory. A thread that needs it to stay so holds the reader-writer lock.
uint64_t sharing_last(const txn_runtime &rt);   // sharing/: LSN of the state that memory has
uint32_t sharing_number(const txn_runtime &rt); // of this process
bool sharing_shows_newest(const txn_runtime &rt);
inline uint64_t txn_last(const txn_runtime &rt) {
    if (rt.sharing != nullptr)
        return sharing_last(rt);
    return log_last(rt.log) + rt.unlogged.load(std::memory_order_relaxed);
}

// ---- recovery/apply_records.cpp. call completes "cannot ...".
[[gnu::cold]] ty_status refuse_received(const txn_runtime &rt, const char *call);
[[gnu::cold]] ty_status refuse_poisoned(const txn_runtime &rt, const char *call);
ty_status refuse_forked(const txn_runtime &rt, const char *call); // TY_OK in the process that opened the heap

txn_runtime *runtime_of(ty_heap *heap); // NULL: not a transactional heap
// Destroys everything but the heap, in any state; writes nothing, and what is not durable is lost.
void runtime_destroy(txn_runtime &rt);

// ---- transaction.cpp (and the files beside it): created and destroyed with the runtime
ty_status transaction_create(txn_runtime &rt);
void transaction_destroy(txn_runtime &rt);

// ---- thread_ends.cpp
// Watches the end of the calling thread from now on. Expected: TY_E_MEMORY.
ty_status thread_ends_watch();
bool thread_ends_watches(uint64_t number); // whether there is such a watcher
// Returns the heap of this identity, if this process has it open for writing or, with `readers`, for reading, and is
// not a forked child; else NULL. The heap stays open until runtime_release, for which a close waits: so the thread that
// holds it must wait for nobody.
txn_runtime *runtime_hold(const uint8_t identity[16], bool readers);
void runtime_release(txn_runtime &rt);
// No thread uses the heap any more, and none will, unless it is opened to them again.
void runtime_shut(txn_runtime &rt);
// What a thread has under way on a heap except bodies of ty_atomically: its transaction and read sections.
bool runtime_has_work(thread_end_watcher *watcher);
void runtime_end(thread_end_watcher *watcher);

// Between the two no transactions of other threads are under way.
inline void stop_others(txn_runtime &rt) {
    if (rt.concurrent != nullptr)
        rt.concurrent->stop(*rt.concurrent);
}
inline void others_go_on(txn_runtime &rt) {
    if (rt.concurrent != nullptr)
        rt.concurrent->go_on(*rt.concurrent);
}
// A thread within a transaction of a concurrent heap would wait for itself. call completes "cannot ...".
ty_status refuse_within(const txn_runtime &rt, const char *call);

// ---- recovery/follow.cpp
// TY_E_EXPIRED: what was read may be a mixture. TY_OK for a heap that follows nobody.
ty_status follower_check(const txn_runtime &rt);
ty_status follower_keep_up(const txn_runtime &rt); // what its thread does

// ---- readers.cpp
// Between the two no thread reads an object. With the reader-writer lock held, and in no section. no_wait: false if one
// reads now.
bool objects_lock_all(txn_runtime &rt, bool no_wait);
void objects_unlock_all(txn_runtime &rt);

// ---- reservations.cpp
ty_status reservations_create(txn_runtime &rt);
void reservations_destroy(txn_runtime &rt);
// At open, before the replay: frees what the snapshot lists as reserved, and empties the list (X3: reserved blocks are
// listed in every snapshot).
ty_status reservations_recover(txn_runtime &rt);
// After a return to a mark, in which nothing was reserved: the list that the heap has now. Expected: TY_E_MEMORY,
// TY_E_DAMAGED.
ty_status reservations_read_again(txn_runtime &rt);
// At a close, where nothing is reserved: removes the list's own blocks from the heap. If the close fails, the log must
// take nothing before another snapshot (X3).
ty_status reservations_remove_list(txn_runtime &rt, bool *removed);
void reservations_lock(txn_runtime &rt);
void reservations_unlock(txn_runtime &rt);
// Under the lock of reservations. Makes places for `count` more entries. Expected: TY_E_MEMORY.
ty_status reservations_provide(txn_runtime &rt, size_t count);
// Stores the word to the n-th of these places; 0: nothing. So a snapshot lists blocks that are in no table.
void reservations_put(txn_runtime &rt, size_t n, uint64_t word);
// Adds the pages of the list itself.
void reservations_add_list(const txn_runtime &rt, os::page_set &pages);
// Adds the pages of blocks that are reserved now. Under the lock of reservations.
void reservations_add_pages(void *runtime, os::page_set &pages);

// Adds the list's blocks, and all that it names or whose free is deferred. Takes the lock of reservations.
ty_status reservations_add_blocks(const txn_runtime &rt, internal_blocks &found);
// The same for a heap without a log, from the heap's content. Expected: TY_E_DAMAGED.
ty_status reservations_read_blocks(ty_heap *heap, internal_blocks &found);

// ---- write_faults.cpp
// Removes all protection, if there is any. Nobody may write to the heap.
void write_faults_destroy(txn_runtime &rt);

// ---- snapshots_due.cpp
ty_status snapshots_create(txn_runtime &rt); // starts the thread, if any, idle
void snapshots_begin(txn_runtime &rt);       // lets it work
// Ends the thread. A transaction that is under way is lost: the heap must be discarded, too.
void snapshots_stop(txn_runtime &rt);
void snapshots_destroy(txn_runtime &rt);
// After each commit, with the reader-writer lock held: a few loads; wakes the thread when a snapshot is due (without
// threads, takes it).
void snapshots_after_commit(txn_runtime &rt);
// The same for a thread that commits to a concurrent heap beside others: outside of transactions, after a number of
// commits.
bool snapshots_look_is_due(uint32_t commits, uint64_t record_bytes);
void snapshots_after_others(txn_runtime &rt);

// ---- snapshots.cpp
ty_status snapshots_free_all(txn_runtime &rt); // all frees that were deferred
void snapshots_add_stats(txn_runtime &rt, ty_txn_stats *stats);
// Takes a snapshot in place of a log write, with the reader-writer lock held; durable when it returns TY_OK.
// holds_transaction: it holds one transaction that the log does not; then *lsn is that transaction's. On failure the
// transactions are as they were; if the snapshot was complete and failed, the log is broken (X7).
ty_status snapshot_instead(txn_runtime &rt, bool holds_transaction, uint64_t *lsn);
// Defers the free of a block that a transaction freed with free_later: it is freed before the next snapshot, by the
// library's thread if there is one. With the reader-writer lock held, after the append.
void snapshots_free_later(txn_runtime &rt, void *block);
// Takes a snapshot so that the log has room again, unless another thread has since. Without the reader-writer lock
// held.
ty_status snapshots_make_room(txn_runtime &rt);
// Lets the log continue after a failed write. Without the reader-writer lock held, within no transaction.
ty_status snapshots_repair(txn_runtime &rt);
// Waits until the LSN is durable; repairs a broken log by a snapshot. Without the reader-writer lock held.
ty_status make_durable(txn_runtime &rt, uint64_t lsn); // durable_commit.cpp
// The same for the process that writes the log of a shared heap: of records that the log has.
ty_status make_durable_in_log(txn_runtime &rt, uint64_t lsn);

// ---- sharing/: of a heap that several processes write to, one at a time (ty_open_options.shared)
//
// Locks of a transaction: a queue of the threads of this process, the writer lock of all processes, then the
// reader-writer lock. Each is held until the transaction ends.

// The writer lock, and room for a record in the buffer. Expected: TY_E_BUSY, with no_wait, which waits so long for
// other processes all the same.
ty_status sharing_lock(txn_runtime &rt, bool no_wait, uint64_t lock_timeout_ns);
// With it and the reader-writer lock held: memory becomes the newest state.
ty_status sharing_enter(txn_runtime &rt);
void sharing_unlock(txn_runtime &rt);
// X6: before its record is appended. What the transaction read counts.
ty_status sharing_check_commit(const txn_runtime &rt);
size_t sharing_record_max(const txn_runtime &rt);
uint8_t *sharing_append_begin(txn_runtime &rt, size_t bytes);
uint64_t sharing_append_end(txn_runtime &rt, size_t bytes); // its LSN

// Before a read section, with no lock held: memory becomes the newest state, unless a thread of this process reads or
// writes.
ty_status sharing_see_newest(txn_runtime &rt);
// Whether what was read counts. TY_E_EXPIRED.
ty_status sharing_check_read(const txn_runtime &rt);
// TY_E_EXPIRED, once: what was read under the program's lock (ty_reader_lock) may have been a mixture.
ty_status sharing_check_reads_before(txn_runtime &rt, const char *call);
ty_status sharing_make_durable(txn_runtime &rt, uint64_t lsn);
uint64_t sharing_durable(const txn_runtime &rt); // LSN
bool sharing_is_durable(const txn_runtime &rt, uint64_t lsn);
// For calls that a shared heap refuses. TY_OK for one that is not shared. call completes "cannot ...".
ty_status refuse_shared(const txn_runtime &rt, const char *call);

// While it lives, log and memory of the log's writer hold the same (X1), for a snapshot: with the reader-writer lock
// held exclusively. What the log has no room for is counted as unlogged.
class [[nodiscard]] sharing_quiesced {
public:
    explicit sharing_quiesced(txn_runtime &rt);
    ~sharing_quiesced();
    sharing_quiesced(const sharing_quiesced &) = delete;
    sharing_quiesced &operator=(const sharing_quiesced &) = delete;
    ty_status status = TY_OK;

private:
    txn_runtime &rt_;
};

void sharing_stop_thread(txn_runtime &rt);
void sharing_end(txn_runtime &rt);
// For a close of the log's writer: nobody commits from here on. Then either sharing_go_on, as the close has failed, or
// sharing_finish_close.
void sharing_begin_close(txn_runtime &rt);
void sharing_go_on(txn_runtime &rt);
void sharing_finish_close(txn_runtime &rt);

} // namespace taiyen
