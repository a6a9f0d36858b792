// The façade of the transaction layer: transactional heaps. docs/design/txn.md describes how it works.
#pragma once

#include "src/store/image/image.hpp"
#include "src/store/log/log.hpp"
#include <atomic>
#include <taiyen/concurrent.h>
#include <taiyen/feed.h>
#include <taiyen/plugin.h>
#include <taiyen/salvage.h>
#include <taiyen/txn.h>

namespace taiyen {

// What the plain calls do on transactional heaps. Called through a table, so that a program that opens no such heap is
// linked without this layer.
struct plain_calls {
    bool (*is_transactional)(ty_heap *heap);
    bool (*is_concurrent)(ty_heap *heap); // precondition: it is transactional
    ty_txn *(*current)(ty_heap *heap);
    void *(*alloc)(ty_txn *txn, size_t size, size_t alignment);
    ty_status (*alloc_at)(ty_txn *txn, void *address, size_t size);
    ty_status (*free)(ty_txn *txn, void *block);
    void *(*resize)(ty_txn *txn, void *block, size_t size);
    ty_status (*resize_in_place)(ty_txn *txn, void *block, size_t size);
    ty_status (*root_set)(ty_txn *txn, const char *name, void *address);
    // For the malloc of a scope (M11: what a rollback takes back and the process leads to is reused for nothing else).
    // Blocks that a rollback has kept are freed and resized without a transaction.
    void (*note_scoped)(ty_txn *txn, const void *block); // a scope has allocated it
    void *(*resize_scoped)(ty_txn *txn, void *block, size_t size);
    bool (*is_kept)(const void *block);
    ty_status (*free_kept)(void *block);
    void *(*resize_kept)(void *block, size_t size);
};

// Set by recovery/open.cpp: how many transactional heaps are open in this process, and the table, from the first one
// on. A thread that has such a heap sees both; to other threads it does not matter.
[[gnu::visibility("hidden")]] extern constinit std::atomic<uint32_t> transactional_heaps;
[[gnu::visibility("hidden")]] extern constinit std::atomic<const plain_calls *> transactional_calls;
inline bool any_transactional() {
    return transactional_heaps.load(std::memory_order_relaxed) != 0;
}

// ---- recovery/log_view.cpp: for readers that follow the log of a heap

// The newest durable snapshot that a heap's files hold. TY_E_UNSUPPORTED: the heap has no log.
struct snapshot_position {
    log_identity identity;
    open_identity open; // the last open of the heap that its image names
    uint64_t epoch;
    log_positions redo_points;
    bool receives; // the transactions of another heap
};
ty_status txn_newest_snapshot(const char *path, const ty_open_options &options, snapshot_position *newest);
// The log, open for reading, whether or not its heap is in use.
struct log_view {
    const ty_log_sink *sink;
    ty_log_sink *own; // the same sink, if it is a file
    char *path;
    log_header header;
};
ty_status txn_open_log(const char *path, const ty_open_options &options, log_view *view);
void txn_close_log(log_view &view);
// For a heap that is open in this process: waits until its log is durable beyond the LSN, or for that time, and returns
// the LSN up to which it is durable. TY_E_UNSUPPORTED: it has no log, or is open for reading only.
ty_status txn_wait_beyond(ty_heap *heap, uint64_t lsn, uint64_t timeout_ns, uint64_t *durable);
// For such a heap, after txn_wait_beyond returned TY_OK: the LSN up to which its open found transactions in the log,
// which need not be durable yet.
uint64_t txn_recovered(ty_heap *heap);

// For a heap that is open for reading only: the place of its content in its log, stored as the snapshot's place.
// TY_E_BUSY: it holds transactions after one that is missing.
ty_status txn_copied(ty_heap *heap, snapshot_position *position);

// ---- recovery/apply_records.cpp: a heap that applies the records of another heap's transactions, and takes no other
// writes

// LK5: a record is applied only if it is the next one, and from the same heap as the first.
// LK6: the heap's log and its snapshots hold whole records, in order.
// LK7: while a heap receives, nobody else writes to it.
struct receiving;
struct receive_start {
    log_identity source;
    uint64_t lsn;     // the records will start after this one
    uint64_t copied;  // for a copy: the last record that it holds
    const void *base; // of the source; NULL: unknown
    bool logged;
};
ty_status txn_replica_begin(ty_heap *heap, const receive_start &start, receiving **made);
void txn_replica_end(receiving *r);
uint64_t txn_received(const receiving &r); // the last one
// Whether the record can be one of the source's, after those that *order has seen.
ty_status txn_replica_check(const receiving &r, const ty_feed_record &record, record_order *order);
// Applies records that were checked and follow in order. None of the last ones may wait for an outcome: that must come
// with it. On a failure they are applied but not durable (txn_replica_make_durable tries again); or the heap is
// poisoned, and all later calls fail.
ty_status txn_replica_apply(receiving &r, const ty_feed_record *records, size_t count);
ty_status txn_replica_make_durable(receiving &r);
ty_status txn_promote(ty_heap *heap);
ty_status txn_replica_forget(ty_heap *heap); // keeps the content, as if it were the heap's own history

// ---- thread_ends.cpp

// What a thread may have under way when it ends. number: unique in the process, never reused; enders: ending threads
// that are rolling back their work.
using thread_end_watcher = ty_plugin_watcher;
// The last one added is asked first. Expected: TY_E_MEMORY.
ty_status thread_ends_add(thread_end_watcher &watcher);
// Waits for threads that are ending. The watcher need not have been added.
void thread_ends_remove(thread_end_watcher &watcher);

// ---- For every kind of persistent heap; calls for heaps without a log go straight to the image layer.

// Resolves what opens find in doubt where the program gave no callback (plugin.h).
void txn_set_resolver(const ty_plugin_resolver *resolver);
// A compatibility check, called when the heap's memory holds what is to be opened, and if possible before a file is
// changed: it may read the heap, and refuse the open. Not called for a heap that receives the transactions of another
// one.
struct open_validator {
    void *context;
    ty_status (*validate)(void *context, ty_heap *heap);
};
ty_status txn_open(const char *path, const ty_open_options &options, ty_heap **heap, ty_report *report,
                   const open_validator *validator = nullptr);
// Opens a heap's files for reading, as they are, or a copy of those that are in use; calls back to inspect the heap,
// and closes them again. What is in doubt is not in the heap: it is passed to the callback (NULL: nothing is in doubt),
// and no resolver is asked about it.
ty_status txn_look_at_files(const char *path, const ty_open_options &options,
                            ty_status (*look)(ty_heap *heap, const ty_in_doubt_txn *in_doubt, void *context),
                            void *context);
ty_status txn_close(ty_heap *heap);
ty_status txn_discard(ty_heap *heap);
ty_status txn_rebuild(ty_heap **heap, const ty_open_options &options, ty_report *report,
                      const open_validator *validator = nullptr);
ty_status txn_snapshot_start(ty_heap *heap, uint64_t *epoch);
// marks.h, for heaps of any kind that have marks. X36: a return of a transactional heap counts as a transaction.
ty_status txn_branch(ty_heap *heap, const char *path); // of a heap that has an image
ty_status txn_mark(ty_heap *heap, const char *name, const ty_mark_options &options);
ty_status txn_return_to(ty_heap *heap, const char *name, const ty_mark_options &options);
ty_status txn_snapshot_wait(ty_heap *heap, uint64_t epoch);
// After a wait: where memory is short, evicts private copies of pages that the image holds. Nobody may write to a
// snapshot heap meanwhile.
void txn_evict_copies(ty_heap *heap);
ty_status txn_work(ty_heap *heap);
ty_status txn_mark_written(ty_heap *heap, const void *address, size_t bytes);
ty_status txn_work_status(ty_heap *heap);
// These use only the paths, the storage and the sink of the options; heap_path may be NULL.
ty_status txn_read_info(const char *path, const ty_open_options &options, ty_info *info);
ty_status txn_log_read(const char *heap_path, const ty_open_options &options, ty_log_info *info,
                       ty_log_entry_callback *callback, void *context);
ty_status txn_salvage_redo(ty_heap *heap, const char *path, const ty_open_options &options, uint64_t state,
                           uint64_t until, ty_salvage_redone *report); // ty_salvage_redo
ty_status txn_scrub(const char *path, const ty_open_options &options, ty_progress_callback *progress,
                    ty_problem_callback *problem, void *context);

// ---- The functions of txn.h; the caller has checked the arguments for NULL.

ty_status txn_begin(ty_heap *heap, const ty_txn_options &options, ty_txn **txn);
// Whether an open with these options can share its heap with other processes: for the options alone.
ty_status sharing_check(const ty_open_options &options);
// What txn_begin refuses before it waits.
ty_status txn_begin_check(ty_heap *heap);
// For calls that wait for other threads (X31: a body never waits on another heap): TY_E_ARGUMENT in a body of
// ty_atomically. call completes "cannot ...".
ty_status txn_refuse_in_body(const char *call);
ty_status txn_set_stores(ty_heap *heap, ty_store_mode stores);
ty_store_mode txn_stores(const ty_txn *txn);
ty_txn *txn_current(ty_heap *heap);
ty_heap *txn_heap(const ty_txn *txn);
ty_status txn_declare(ty_txn *txn, const void *address, size_t bytes);
void *txn_alloc(ty_txn *txn, size_t size, size_t alignment);
ty_status txn_alloc_at(ty_txn *txn, void *address, size_t size);
ty_status txn_free(ty_txn *txn, void *block);
void *txn_resize(ty_txn *txn, void *block, size_t size);
ty_status txn_resize_in_place(ty_txn *txn, void *block, size_t size);
ty_status txn_root_set(ty_txn *txn, const char *name, void *address);
void *txn_reserve(ty_heap *heap, size_t size);
ty_status txn_cancel(void *block);
ty_status txn_publish(ty_txn *txn, void *const *blocks, size_t count);
ty_status txn_log_data(ty_txn *txn, const void *address, size_t bytes);
ty_status txn_log_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes);
ty_status txn_on_rollback_data(ty_txn *txn, void *address, const void *old_bytes, size_t bytes);
ty_status txn_on_rollback_procedure(ty_txn *txn, uint64_t id, const void *arguments, size_t bytes);
// Surrounds those of these calls that the program makes: an exception from its undeclared_write is kept until the call
// is done (Y6: nothing stays locked after a callback has thrown).
class [[nodiscard]] undeclared_write_guard {
public:
    undeclared_write_guard();
    undeclared_write_guard(const undeclared_write_guard &) = delete;
    undeclared_write_guard &operator=(const undeclared_write_guard &) = delete;
    ty_status end(ty_status status); // once; rethrows, or returns the status

private:
    os::caught thrown_;
    os::caught *outer_;
};
ty_status txn_prepare(ty_txn *txn, const void *description, size_t bytes);
// The same, without waiting: a transaction for which it returns TY_OK is prepared once *lsn is durable.
ty_status txn_prepare_begin(ty_txn *txn, const void *description, size_t bytes, uint64_t *lsn);
// Asks the log's thread, if there is one, to write up to the LSN; txn_prepare_wait then waits for it.
void txn_prepare_ask(ty_heap *heap, uint64_t lsn);
ty_status txn_prepare_wait(ty_heap *heap, uint64_t lsn);
// Makes sure that a transaction that begins now will find room to be prepared. no_wait: TY_E_BUSY if a snapshot has to
// make that room.
ty_status txn_prepare_room(ty_heap *heap, bool no_wait);
// Whether a heap's transactions can be prepared. Expected: TY_E_ARGUMENT, TY_E_UNSUPPORTED, TY_E_FORKED.
ty_status txn_prepare_check(ty_heap *heap, const char *call);
// The path of the log, if the option log_path names it; empty: the log lies beside the image, or on a sink of the
// program's.
const char *txn_log_path_elsewhere(ty_heap *heap);
bool txn_is_empty(const ty_txn *txn); // it has done nothing so far
// Calls back to inspect a heap that this process has open; with `readers`, also one that is open for reading only.
// TY_E_NOT_FOUND: it has none of this identity open. TY_E_BUSY: a transaction of this thread, or a prepared one, is
// under way.
ty_status txn_look_at_open(const uint8_t identity[16], bool readers,
                           ty_status (*look)(ty_heap *heap, ty_plugin_opened how, void *context), void *context);
// ---- grouped.cpp: distributed transactions whose parts wait together for one durable write

// X29: the reader-writer lock is held from the first one's end until all have their outcome: within it the next
// transaction begins with txn_begin_next. Callers have checked their arguments.

// Only the distributed transaction may end it: other calls are refused.
void txn_set_dtxn(ty_txn *txn);
ty_status txn_refuse_dtxn(const ty_txn *txn, const char *call);
ty_status txn_begin_next(ty_heap *heap, const ty_txn_options &options, ty_txn **txn);
// The transaction's record, in its memory until it ends.
ty_status txn_encode(ty_txn *txn, ty_plugin_record *record);
// Whether this many bytes of records can be appended as one, and get their outcome later.
bool txn_gather_fits(ty_heap *heap, size_t bytes);
// Ends it in memory; the caller appends its record. TY_E_DAMAGED: it has ended nevertheless.
ty_status txn_end_grouped(ty_txn *txn);
// Appends records: the last one is prepared, and those before it share its outcome.
ty_status txn_append_grouped(ty_heap *heap, const ty_plugin_record *records, size_t count, const void *description,
                             size_t description_bytes, uint64_t *lsn);
// Commits them: they are durably prepared, here and in all other participants. If the log cannot take the outcome, it
// is broken.
void txn_commit_grouped(ty_heap *heap);
// Called when all that was appended has its outcome, except in a log that has failed: repairs that by a snapshot, which
// holds what is committed, and nothing else.
ty_status txn_repair_grouped(ty_heap *heap);
// Releases the reader-writer lock. poisoned: memory may hold what is in no log, so the heap can only be discarded.
void txn_release_grouped(ty_heap *heap, bool poisoned);

ty_status txn_commit(ty_txn *txn);
ty_status txn_commit_async(ty_txn *txn, uint64_t *lsn);
ty_status txn_rollback(ty_txn *txn);
// plain_calls, for the malloc of a scope.
void txn_note_scoped(ty_txn *txn, const void *block);
void *txn_resize_scoped(ty_txn *txn, void *block, size_t size);
bool txn_is_kept(const void *block);
ty_status txn_free_kept(void *block);
void *txn_resize_kept(void *block, size_t size);
ty_status txn_durable(ty_heap *heap, uint64_t lsn, bool wait, bool *durable);
ty_status txn_read_begin(ty_heap *heap);
ty_status txn_read_end(ty_heap *heap);
// follow.h. wait_ns: for a newer state.
ty_status txn_refresh(ty_heap *heap, uint64_t wait_ns, bool *changed);
bool txn_shows_newest(ty_heap *heap);
ty_status txn_object_read_begin(ty_heap *heap, const void *object);
ty_status txn_object_read_end(ty_heap *heap, const void *object);
ty_status txn_lock_object(ty_txn *txn, const void *object);
ty_status txn_get_stats(ty_heap *heap, ty_txn_stats *stats);
// How long commits take, counted while a reader wants it; nothing is counted for a heap without a log. Bucket n counts
// commits that took at least (4 + n % 4) * 2^(n / 4 + 1) ns, and less than the next bucket's minimum.
enum class commit_timed : uint8_t { durable, asynchronous }; // each of the former, some of the latter
inline constexpr size_t commit_ways = 2;
inline constexpr size_t commit_buckets = 128;
void txn_time_commits(ty_heap *heap, bool wanted);
void txn_commit_times(ty_heap *heap, uint64_t (&counts)[commit_ways][commit_buckets]);

// ---- The functions of concurrent.h, with checked arguments and the fields of result zeroed. For concurrent heaps of
// any kind.

// Blocks that a thread's transactions have freed, or transactions since the last check, at which it looks which of them
// can be given back. Tests lower it.
extern uint32_t retired_at_once;

ty_status atomically(ty_heap *heap, const ty_atomic_options &options, ty_atomic_body *body, void *context,
                     ty_atomic_result *result);
ty_atomic_txn *atomic_current(ty_heap *heap);
ty_status atomic_status(const ty_atomic_txn *txn);
ty_status atomic_load(ty_atomic_txn *txn, const void *address, void *value, size_t bytes);
ty_status atomic_store(ty_atomic_txn *txn, void *address, const void *value, size_t bytes);
void atomic_prefetch(ty_atomic_txn *txn, const void *const *addresses, size_t count);
void *atomic_alloc(ty_atomic_txn *txn, size_t size, size_t alignment);
ty_status atomic_free(ty_atomic_txn *txn, void *block);
void *atomic_resize(ty_atomic_txn *txn, void *block, size_t size);
ty_status atomic_root(ty_atomic_txn *txn, const char *name, void **address);
ty_status atomic_root_set(ty_atomic_txn *txn, const char *name, void *address);
ty_status atomic_retry(ty_atomic_txn *txn);
ty_status atomic_restart(ty_atomic_txn *txn);
ty_status atomic_quiesce(ty_heap *heap);
ty_status atomic_or_else(ty_atomic_txn *txn, ty_atomic_body *first, ty_atomic_body *second, void *context);
ty_status atomic_on_commit(ty_atomic_txn *txn, void (*function)(void *context), void *context);
ty_status atomic_on_rollback(ty_atomic_txn *txn, void (*function)(void *context), void *context);
ty_status atomic_get_stats(ty_heap *heap, ty_atomic_stats *stats);
ty_heap *atomic_heap(const ty_atomic_txn *txn);

// ---- procedures.cpp: the process's procedures, also for layers above

ty_status procedure_register(uint64_t id, const char *name, ty_procedure *procedure, void *context);
// Runs a registered procedure. TY_E_NOT_FOUND: none has that id; the text says so.
ty_status procedure_run(ty_heap *heap, uint64_t id, const void *arguments, size_t bytes);
bool procedure_known(uint64_t id);

// ---- reservations.cpp

// The first word of the list, which identifies it.
inline constexpr uint64_t reservations_magic = 0x7672657365727354; // "Tsreserv"
// For a heap that no longer has a log: frees the empty list of reserved blocks that its service root still leads to.
// TY_E_DAMAGED: the root leads to something else, or the list is not empty.
ty_status txn_remove_leftovers(ty_heap *heap);

// ---- concurrent/internal_blocks.cpp: blocks in a heap that belong to the library

// Offsets of blocks, collected before the program is called back.
class internal_blocks {
public:
    ty_status create(ty_heap *heap);
    void destroy() { memory_.destroy(); }
    ty_status add(uint64_t offset); // expected: TY_E_MEMORY
    // Calls back once for each of those that are live.
    void each(ty_block_callback *callback, void *context);

private:
    uint64_t *begin() const { return memory_.as<uint64_t>(); }

    os::space memory_{};
    ty_heap *heap_ = nullptr;
    size_t count_ = 0;
};

// Adds those of this layer: its list of reserved blocks, the blocks that the list names, and those that transactions
// have freed but whose free is deferred. Expected: TY_E_DAMAGED, TY_E_MEMORY, TY_E_FORKED.
ty_status txn_add_internal_blocks(ty_heap *heap, internal_blocks &found);

} // namespace taiyen
