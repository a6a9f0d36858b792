// The façade of the transaction layer: transactional heaps. docs/design/txn.md tells how it works.
#pragma once

#include "../image/image.hpp"
#include "../log/log.hpp"
#include <atomic>
#include <taiyen/concurrent.h>
#include <taiyen/feed.h>
#include <taiyen/salvage.h>
#include <taiyen/txn.h>

namespace taiyen {

// What the plain calls do on transactional heaps. Through a table, so that a program that opens none is linked without
// this layer.
struct plain_calls {
    bool (*is_transactional)(ty_heap *heap);
    bool (*is_concurrent)(ty_heap *heap); // of one that is transactional
    ty_txn *(*current)(ty_heap *heap);
    void *(*alloc)(ty_txn *txn, size_t size, size_t alignment);
    ty_status (*alloc_at)(ty_txn *txn, void *address, size_t size);
    ty_status (*free)(ty_txn *txn, void *block);
    void *(*resize)(ty_txn *txn, void *block, size_t size);
    ty_status (*resize_in_place)(ty_txn *txn, void *block, size_t size);
    ty_status (*root_set)(ty_txn *txn, const char *name, void *address);
    // For the malloc of a scope (M11). What a rollback has kept is freed and resized with no transaction.
    void (*note_scoped)(ty_txn *txn, const void *block); // a scope has allocated it
    void *(*resize_scoped)(ty_txn *txn, void *block, size_t size);
    bool (*is_kept)(const void *block);
    ty_status (*free_kept)(void *block);
    void *(*resize_kept)(void *block, size_t size);
};

// Kept by recovery/open.cpp: how many transactional heaps are open in this process, and the table, from the first one
// on. Who has such a heap sees both; to others it does not matter.
[[gnu::visibility("hidden")]] extern constinit std::atomic<uint32_t> transactional_heaps;
[[gnu::visibility("hidden")]] extern constinit std::atomic<const plain_calls *> transactional_calls;
inline bool any_transactional() {
    return transactional_heaps.load(std::memory_order_relaxed) != 0;
}

// ---- recovery/log_view.cpp: for who follows the log of a heap

// The newest durable snapshot that a heap's files hold. TY_E_UNSUPPORTED: the heap has no log.
struct snapshot_place {
    log_identity identity;
    log_open_2 open; // of the heap, the last one that its image names
    uint64_t epoch;
    log_marks marks;
};
ty_status txn_newest_snapshot(const char *path, const ty_open_options &options, snapshot_place *newest);
// The log, open for reading, whether or not its heap is in use.
struct log_view {
    const ty_log_sink *sink;
    ty_log_sink *own; // the same, where it is a file
    char *path;
    log_header_2 header;
};
ty_status txn_open_log(const char *path, const ty_open_options &options, log_view *view);
void txn_close_log(log_view &view);
// Of a heap that is open in this process: up to where its log is durable, once that is beyond the LSN, or after
// that time. TY_E_UNSUPPORTED: it has no log, or is open for reading only.
ty_status txn_wait_beyond(ty_heap *heap, uint64_t lsn, uint64_t timeout_ns, uint64_t *durable);
// Of such a heap, where that returned TY_OK: up to where its open found transactions in the log, which need not be
// durable yet.
uint64_t txn_recovered(ty_heap *heap);

// Of a heap that is open for reading only: where its content stands in its log, which the snapshot's place then means.
// TY_E_BUSY: it holds transactions behind one that is missing.
ty_status txn_copied(ty_heap *heap, snapshot_place *place);

// ---- recovery/receive.cpp: a heap that takes the records of another one's transactions, and nobody else's

// LK5: a record is done only if it is the next one, and of the heap that the first was of.
// LK6: what is in the heap's log, or in a snapshot, are whole records, in order.
// LK7: while a heap receives, nobody else writes to it.
struct receiving;
struct receive_start {
    log_identity source;
    uint64_t lsn;     // behind which records will come
    uint64_t copied;  // of a copy: what it holds
    const void *base; // of the source; NULL: unknown
    bool logged;
};
ty_status txn_replica_begin(ty_heap *heap, const receive_start &start, receiving **made);
void txn_replica_end(receiving *r);
uint64_t txn_received(const receiving &r); // the last one
// Whether the record can be one of the source's, behind those that *order has seen.
ty_status txn_replica_check(const receiving &r, const ty_feed_record &record, record_order *order);
// Records that were checked, and follow. None of the last ones waits for an outcome: that is to come with it. On a
// failure they are done, but not durable (txn_replica_make_durable tries again); or the heap is spoiled, and all later
// calls fail.
ty_status txn_replica_apply(receiving &r, const ty_feed_record *records, size_t count);
ty_status txn_replica_make_durable(receiving &r);
ty_status txn_promote(ty_heap *heap);
ty_status txn_replica_forget(ty_heap *heap); // as if it had been its own history

// ---- thread_ends.cpp

// What a thread may have under way when it ends.
struct thread_end_watcher {
    bool (*has_work)(thread_end_watcher &watcher); // of the calling thread
    void (*end)(thread_end_watcher &watcher);      // takes it back
    thread_end_watcher *watched_next;
    uint64_t number; // no other one in the process has, or had, the same
    uint32_t enders; // threads that end, and take back what they have under way
};
// The last one added is asked first. Expected: TY_E_MEMORY.
ty_status thread_ends_add(thread_end_watcher &watcher);
// Waits for threads that are ending. One that was not added may be given.
void thread_ends_remove(thread_end_watcher &watcher);

// ---- For every kind of persistent heap; those without a log go to the image layer at once.

// What is asked about a transaction in doubt where the program gave no callback: a layer above. In an open for reading
// (options.mode) it changes no file; of TY_OPEN_COPY the heap is one that is in use, and TY_OUTCOME_ROLLBACK then means
// that it had not been acknowledged when the open began.
struct in_doubt_resolver {
    bool (*takes)(const void *description, size_t bytes); // whether it is one of its own
    // *why: where the outcome is unknown, what is missing, for the error's text.
    ty_outcome (*tell)(const ty_in_doubt_txn &in_doubt, ty_heap *heap, const ty_open_options &options, char *why,
                       size_t why_bytes);
};
// Asked when the heap's memory holds what is to be opened, before a file is changed where that can be: it may look, and
// refuse. Not of a heap that receives the transactions of another one.
struct open_judge {
    void *context;
    ty_status (*judge)(void *context, ty_heap *heap);
};
ty_status txn_open(const char *path, const ty_open_options &options, ty_heap **heap, ty_report *report,
                   const in_doubt_resolver *resolver = nullptr, const open_judge *judge = nullptr);
// Opens a heap's files for reading, as they are, or a copy of those that are in use; lets somebody look, and closes
// them again. What is in doubt is not in the heap: it is handed on (NULL: nothing is), and nobody is asked about it.
ty_status txn_look_at_files(const char *path, const ty_open_options &options,
                            ty_status (*look)(ty_heap *heap, const ty_in_doubt_txn *in_doubt, void *context),
                            void *context);
ty_status txn_close(ty_heap *heap);
ty_status txn_discard(ty_heap *heap);
ty_status txn_rebuild(ty_heap **heap, const ty_open_options &options, ty_report *report,
                      const in_doubt_resolver *resolver = nullptr, const open_judge *judge = nullptr);
ty_status txn_snapshot_start(ty_heap *heap, uint64_t *epoch);
ty_status txn_snapshot_wait(ty_heap *heap, uint64_t epoch);
// After it: where memory is short, copies of pages that the image holds go. Nobody writes to a snapshot heap meanwhile.
void txn_evict_copies(ty_heap *heap);
ty_status txn_work(ty_heap *heap);
ty_status txn_mark_written(ty_heap *heap, const void *address, size_t bytes);
ty_status txn_work_status(ty_heap *heap);
// Of options they take the paths, the storage and the sink; heap_path may be NULL.
ty_status txn_read_info(const char *path, const ty_open_options &options, ty_info *info);
ty_status txn_log_read(const char *heap_path, const ty_open_options &options, ty_log_info *info,
                       ty_log_entry_callback *callback, void *context);
ty_status txn_salvage_redo(ty_heap *heap, const char *path, const ty_open_options &options, uint64_t state,
                           uint64_t until, ty_salvage_redone *report); // ty_salvage_redo
ty_status txn_scrub(const char *path, const ty_open_options &options, ty_progress_callback *progress,
                    ty_problem_callback *problem, void *context);

// ---- The functions of txn.h, with arguments checked for NULL by the caller.

ty_status txn_begin(ty_heap *heap, const ty_txn_options &options, ty_txn **txn);
// What that refuses before it waits for anybody.
ty_status txn_begin_check(ty_heap *heap);
// For what waits for other threads (X31): TY_E_ARGUMENT in a body of ty_atomically. call completes "cannot ...".
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
// Around these, where the program calls them: what its undeclared_write throws is kept until the call is done (Y6).
class [[nodiscard]] undeclared_write_guard {
public:
    undeclared_write_guard();
    undeclared_write_guard(const undeclared_write_guard &) = delete;
    undeclared_write_guard &operator=(const undeclared_write_guard &) = delete;
    ty_status end(ty_status status); // once; throws, or gives the status on

private:
    os::caught thrown_;
    os::caught *outer_;
};
ty_status txn_prepare(ty_txn *txn, const void *description, size_t bytes);
// The same, without waiting: what it returns TY_OK for is prepared once *lsn is durable.
ty_status txn_prepare_begin(ty_txn *txn, const void *description, size_t bytes, uint64_t *lsn);
// Has the log's thread write it, if there is one; then waits for it.
void txn_prepare_ask(ty_heap *heap, uint64_t lsn);
ty_status txn_prepare_wait(ty_heap *heap, uint64_t lsn);
// Sees that a transaction that begins now will find room to be prepared. no_wait: TY_E_BUSY where a snapshot has to
// make it.
ty_status txn_prepare_room(ty_heap *heap, bool no_wait);
// Whether a heap's transactions can be prepared. Expected: TY_E_ARGUMENT, TY_E_UNSUPPORTED, TY_E_FORKED.
ty_status txn_prepare_check(ty_heap *heap, const char *call);
// Where the option log_path has put the log; empty: it lies beside the image, or is on a sink of the program's.
const char *txn_log_path_elsewhere(ty_heap *heap);
bool txn_is_empty(const ty_txn *txn); // it has done nothing so far
// How this process has a heap open that somebody looks at.
enum class open_here : uint8_t {
    writes, // between its transactions; what is there is durable
    reads,  // its files as they are, which nobody changes meanwhile
    copy    // of files that were in use: they may hold more by now
};
// Lets somebody look at a heap that this process has open; one that is open for reading only where `readers`.
// TY_E_NOT_FOUND: it has none of this identity. TY_E_BUSY: a transaction of this thread, or a prepared one, is under
// way.
ty_status txn_look_at_open(const uint8_t identity[16], bool readers,
                           ty_status (*look)(ty_heap *heap, open_here how, void *context), void *context);
// ---- grouped.cpp: distributed transactions whose parts wait together for one durable write

// X29: from the first one's end to the outcome of all, the reader-writer lock is held: within it another transaction
// begins with txn_begin_next. What comes from a caller is right by what it has checked.

// The distributed transaction alone ends it: others are refused.
void txn_set_dtxn(ty_txn *txn);
ty_status txn_refuse_dtxn(const ty_txn *txn, const char *call);
ty_status txn_begin_next(ty_heap *heap, const ty_txn_options &options, ty_txn **txn);
// The transaction's record, in its memory until it ends.
ty_status txn_encode(ty_txn *txn, const uint8_t **bytes, size_t *size);
// Whether so many bytes of records can be appended as one, and settled later.
bool txn_gather_fits(ty_heap *heap, size_t bytes);
// It ends in memory, and its record is the caller's to append. TY_E_DAMAGED: it has ended all the same.
ty_status txn_end_grouped(ty_txn *txn);
// Appends records: the last one is prepared, and those before it count with it.
ty_status txn_append_grouped(ty_heap *heap, const log_piece *records, size_t count, const void *description,
                             size_t description_bytes, uint64_t *lsn);
// They are committed: prepared durably, here and wherever else they must be. A log that cannot take that is broken.
void txn_commit_grouped(ty_heap *heap);
// All that was appended has its outcome, but for that of a log that has failed: it is repaired by a snapshot, which
// holds what is committed, and nothing else.
ty_status txn_repair_grouped(ty_heap *heap);
// The reader-writer lock opens. spoiled: what is in memory may be in no log, and the heap can only be discarded.
void txn_release_grouped(ty_heap *heap, bool spoiled);

ty_status txn_commit(ty_txn *txn);
ty_status txn_commit_async(ty_txn *txn, uint64_t *lsn);
ty_status txn_rollback(ty_txn *txn);
// plain_calls, of the malloc of a scope.
void txn_note_scoped(ty_txn *txn, const void *block);
void *txn_resize_scoped(ty_txn *txn, void *block, size_t size);
bool txn_is_kept(const void *block);
ty_status txn_free_kept(void *block);
void *txn_resize_kept(void *block, size_t size);
ty_status txn_durable(ty_heap *heap, uint64_t lsn, bool wait, bool *durable);
ty_status txn_read_begin(ty_heap *heap);
void txn_read_end(ty_heap *heap);
ty_status txn_object_read_begin(ty_heap *heap, const void *object);
void txn_object_read_end(ty_heap *heap, const void *object);
ty_status txn_lock_object(ty_txn *txn, const void *object);
ty_status txn_get_stats(ty_heap *heap, ty_txn_stats *stats);
// How long commits take, counted while that is wanted; nothing for a heap without a log. Bucket n counts those of
// (4 + n % 4) * 2^(n / 4 + 1) ns and more, up to the next bucket's.
enum class commit_timed : uint8_t { durable, asynchronous }; // each of the former, some of the latter
inline constexpr size_t commit_ways = 2;
inline constexpr size_t commit_buckets = 128;
void txn_time_commits(ty_heap *heap, bool wanted);
void txn_commit_times(ty_heap *heap, uint64_t (&counts)[commit_ways][commit_buckets]);

// ---- The functions of concurrent.h, likewise, and of result with the fields zeroed. Heaps of any kind that is
// concurrent.

ty_status atomically(ty_heap *heap, const ty_atomic_options &options, ty_atomic_body *body, void *context,
                     ty_atomic_result *result);
ty_atomic_txn *atomic_current(ty_heap *heap);
ty_status atomic_lost(const ty_atomic_txn *txn);
ty_status atomic_load(ty_atomic_txn *txn, const void *address, void *value, size_t bytes);
ty_status atomic_store(ty_atomic_txn *txn, void *address, const void *value, size_t bytes);
void atomic_expect(ty_atomic_txn *txn, const void *const *addresses, size_t count);
void *atomic_alloc(ty_atomic_txn *txn, size_t size, size_t alignment);
ty_status atomic_free(ty_atomic_txn *txn, void *block);
void *atomic_resize(ty_atomic_txn *txn, void *block, size_t size);
ty_status atomic_root(ty_atomic_txn *txn, const char *name, void **address);
ty_status atomic_root_set(ty_atomic_txn *txn, const char *name, void *address);
ty_status atomic_wait(ty_atomic_txn *txn);
ty_status atomic_restart(ty_atomic_txn *txn);
ty_status atomic_quiesce(ty_heap *heap);
ty_status atomic_either(ty_atomic_txn *txn, ty_atomic_body *first, ty_atomic_body *second, void *context);
ty_status atomic_on_commit(ty_atomic_txn *txn, void (*function)(void *context), void *context);
ty_status atomic_on_rollback(ty_atomic_txn *txn, void (*function)(void *context), void *context);
ty_status atomic_get_stats(ty_heap *heap, ty_atomic_stats *stats);
ty_heap *atomic_heap(const ty_atomic_txn *txn);

// ---- procedures.cpp: the process's procedures, for any layer above, too

ty_status procedure_register(uint64_t id, const char *name, ty_procedure *procedure, void *context);
// Runs a registered procedure. TY_E_NOT_FOUND: none of that id; the text says so.
ty_status procedure_run(ty_heap *heap, uint64_t id, const void *arguments, size_t bytes);
bool procedure_known(uint64_t id);

// ---- reserve.cpp

// The first word of the list, by which it is known.
inline constexpr uint64_t reservations_magic = 0x7672657365727354; // "Tsreserv"
// The service root of a heap that has no log any more: the empty list of reserved blocks that it left there is freed.
// TY_E_DAMAGED: the root leads to something else, or the list is not empty.
ty_status txn_remove_leftovers(ty_heap *heap);

// ---- concurrent/own_blocks.cpp: blocks that the library has in a heap for itself

// Offsets of blocks, collected before the program is called back.
class own_blocks {
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

// Adds those of this layer: its list of reserved blocks, what that names, and what transactions have freed and is still
// to be given back. Expected: TY_E_DAMAGED, TY_E_MEMORY, TY_E_FORKED.
ty_status txn_add_own_blocks(ty_heap *heap, own_blocks &found);

} // namespace taiyen
