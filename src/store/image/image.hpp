// The façade of the image layer: heaps that live in files. docs/design/image.md describes how it works;
// image_layout.hpp defines the format of its files.
#pragma once

#include "files/image_layout.hpp"
#include "src/heap/heap.hpp"
#include "src/marks/marks.hpp"
#include <taiyen/persist.h>
#include <taiyen/salvage.h>

namespace taiyen {

inline bool opens_for_reading(ty_open_mode mode) {
    return mode == TY_OPEN_READ_ONLY || mode == TY_OPEN_COPY || mode == TY_OPEN_FOLLOW;
}

// What an open writes about the log into the header.
struct image_log_choice {
    uint64_t identity; // 0: no log
    uint32_t streams;  // matters only where the identity differs from the one before
};
struct image_log {
    uint8_t heap_identity[16];
    uint64_t limit_bytes;
    uint64_t log_identity;    // 0: this heap has no log
    log_positions redo_point; // of the epoch that is restored
    bool closed;              // cleanly: the log holds nothing after the redo point
    open_identity open;       // the last one that the heap's image names
    heap_source source;       // whose transactions it has
    uint64_t service_word; // the first word of what the heap's service root points to; 0: it points to nothing, or the
                           // heap already has a log
    const storage_file *image; // open; the log gets the same access rights (N4)
    ty_heap *heap; // its private memory with the content of this epoch; may be written to. NULL: not mapped yet
};

// Callbacks of a higher layer that takes part in an open.
// check: the heap's own files are known to be sound. Nothing has been changed, and the callback changes nothing; a
// failure refuses the open. *choice is what the header says; what the callback leaves there is what the header will
// say, durably, when the open returns (no log: the kind becomes TY_SNAPSHOT, else TY_TRANSACTIONAL). If it is another
// log than before, the redo point is the start of that log, and LSNs continue. created: the heap is being created
// (asked for TY_TRANSACTIONAL only); log has the identity that it will get, and the image does not have its name yet.
// make: follows check, except in a read-only open. When it returns, the chosen log exists durably, with the same access
// rights as the image; if it fails, it leaves no log that it created. Until then no header names the log. No header
// that a power cut may leave needs what was there before.
// start: the heap's memory holds what all files but the log hold. The layer takes what it needs here (memory, threads,
// replay of its records) and changes no file. Called before the files are changed, except where these changes must come
// first: when a heap is grown or created, and where batches are checkpointed before the heap is mapped. Once in each
// open of a heap with a log.
// give_up: the open fails after start was called, whatever start returned. The heap still exists.
// name_open: in each writing open of a heap with a log, before any snapshot. When it returns, the log durably names
// that open. Such a log is accepted with an image that names `previous` or `open`.
// validate: the heap's memory holds what the open has found, except records of a log. The callback may inspect it and
// refuse the open, and changes nothing. Once in each open; where start comes before the files are changed, so does
// this. May be NULL.
struct image_open_hook {
    void *context;
    ty_status (*check)(void *context, const image_log &log, bool created, image_log_choice *choice);
    ty_status (*make)(void *context);
    ty_status (*start)(void *context, ty_heap *heap);
    void (*give_up)(void *context);
    ty_status (*name_open)(void *context, const open_identity &previous, const open_identity &open);
    ty_status (*validate)(void *context, ty_heap *heap) = nullptr;
    // A heap that follows, open here: it goes on as the heap that is opened, at its addresses, by its handle. No thread
    // uses it meanwhile. If the open fails after it has begun to replace the memory, that is lost (image_follow_lose).
    ty_heap *again = nullptr;
    ty_status (*lock_log)(void *context) = nullptr; // for `again`, before its memory is replaced
};

// Memory of a heap with a log that is open read-only can be written until image_freeze, so that its log can be
// replayed. *heap is replaced.
ty_status image_freeze(ty_heap **heap);

// The functions of persist.h; the caller has checked the arguments. hook may be NULL: then a heap with a log is
// refused. path: as resolve_path returns it.
ty_status image_open(const char *path, const ty_open_options &options, const image_open_hook *hook, ty_heap **heap,
                     ty_report *report);
// The header durably becomes that of a heap without a log. The newest snapshot is durable and holds everything.
ty_status image_detach_log(ty_heap *heap);
// The heap whose transactions this one applies besides its own: in the header, durably. Also returns the identities of
// the heap (16 bytes) and of its log. May wait until the journal's batches are checkpointed.
heap_source image_source(ty_heap *heap, uint8_t *identity, uint64_t *log);
ty_status image_set_source(ty_heap *heap, const heap_source &source);
// redo_point: as for a snapshot, of the last one. The log holds nothing after it.
ty_status image_close(ty_heap *heap, const log_positions *redo_point);
ty_status image_discard(ty_heap *heap);
// For an open that fails in the layer above, of a heap that it created: closes the heap and removes its files.
void image_unmake(ty_heap *heap);
// A snapshot of a heap whose blocks other threads store into meanwhile, without waiting; the layer above has a log of
// these stores. docs/design/image.md, "Fuzzy snapshots".
//
// I17: what was stored before tables() returned is in the batch; what is stored later is dirty again, whether or not
//      the batch caught it.
// I18: the heap's tables, and what tables() stored, are in the batch as they were when tables() returned.
// I19: the last chunk of the batch is passed on only after make_log_durable() returned TY_OK.
//
// Recovery starts from the tables as they were, and replays all later stores. So a block that was freed, or shrunk,
// after tables() returned is not freed in the heap before image_snapshot_start returns; and a block that is allocated
// then, but may still be rolled back, is noted in the way X3 notes reserved blocks.
struct image_fuzzy_callbacks {
    void *context;
    // Just before the pause of the heap's allocators, and outside of it: may allocate, and wait for threads that do. A
    // failure fails the snapshot, and no other callback is called.
    ty_status (*approach)(void *context);
    // Within the pause of the heap's allocators: what the snapshot is certain to hold ends here. May store into live
    // blocks, whose pages it adds to `stored`, and set the redo point, which is read later. Must not wait for a thread
    // that allocates, and must not allocate, free, or set roots. A failure fails the snapshot.
    ty_status (*tables)(void *context, os::page_set &stored);
    // After that pause, whatever its result. May be NULL.
    void (*resumed)(void *context);
    // All pages but the tables were copied and passed on. Returns when everything stored so far is durable elsewhere.
    // Threads that it waits for must not wait for a snapshot, early write-back, eviction, purge, or read of the dirty
    // pages of this heap. A failure fails the batch. Not called if there is nothing to write.
    ty_status (*make_log_durable)(void *context);
};

// redo_point: where the snapshot stands in the log; NULL: where the last durable one does. A snapshot whose redo point
// differs from that one is written even if no page is dirty. fuzzy NULL: no thread stores until this returns; otherwise
// TY_E_UNSUPPORTED where image_allows_fuzzy is false.
ty_status image_snapshot_start(ty_heap *heap, const log_positions *redo_point, const image_fuzzy_callbacks *fuzzy,
                               uint64_t *epoch);
// Whether the heap has a journal, and its tracker detects writes that race with it: constant while it is open.
bool image_allows_fuzzy(ty_heap *heap);
ty_status image_snapshot_wait(ty_heap *heap, uint64_t epoch);
ty_status image_write_back_early(ty_heap *heap, size_t limit_pages);
ty_status image_work(ty_heap *heap);
ty_status image_work_status(ty_heap *heap);
ty_status image_purge(ty_heap *heap, size_t *released_bytes);
// The same for whole pages that no thread writes to meanwhile, as far as the image durably holds them. Any kind of
// heap.
ty_status image_evict(ty_heap *heap, const void *address, size_t bytes, size_t *released_bytes);
// Where dirty pages lie: pages[n] of them from page n * cell_pages on. Pages after the last cell are not counted.
struct dirty_cells {
    uint64_t cell_pages;
    uint64_t count;
    uint32_t *pages;
};
// cells may be NULL.
ty_status image_dirty_count(ty_heap *heap, uint64_t *pages, const dirty_cells *cells = nullptr);
ty_status image_dirty_bitmap(ty_heap *heap, uint64_t first, uint64_t count, uint64_t *bitmap);
// marks.h, for snapshot heaps; the caller has checked the arguments.
inline constexpr const char *mark_before_a_return = "\1before"; // no program can use this name
ty_status image_revert(ty_heap *heap);
ty_status image_mark(ty_heap *heap, const char *name, const ty_mark_options &options);
ty_status image_find_mark(ty_heap *heap, const char *name); // TY_E_NOT_FOUND
// An earlier open made it, and this one did not ignore code: it may have words of that process's code.
bool image_mark_is_older(ty_heap *heap, const char *name);
ty_status image_return_to(ty_heap *heap, const char *name);
// A new heap in files under this path, with what this one has. The caller has stopped its transactions.
ty_status image_branch(ty_heap *heap, const char *path);
ty_status image_drop_mark(ty_heap *heap, const char *name);
ty_status image_each_mark(ty_heap *heap, ty_mark_callback *callback, void *context);
ty_status image_get_snapshot_stats(ty_heap *heap, ty_snapshot_stats *stats);
// The newest snapshots of this open, the oldest first; the fields are as in ty_snapshot_stats.
struct snapshot_record {
    uint64_t epoch;
    uint64_t unix_ns; // when it was durable
    uint64_t pause_ns;
    uint64_t durable_ns;
    uint64_t pages;
    uint64_t bytes;
};
inline constexpr uint32_t snapshot_lines_max = 64;
uint32_t image_snapshot_lines(ty_heap *heap, snapshot_record (&lines)[snapshot_lines_max]);
// The process that has the heap open for writing, by the header of its image; 0: closed.
ty_status image_read_owner(const char *path, const ty_storage &storage, uint8_t (&identity)[16], uint64_t *process);
// ---- inspect/side_records.cpp: side records that a program which copies a heap elsewhere keeps in its image beside
// its pages (side_record.h)
//
// I25: a side record is overwritten only by a writer that has read the current one, in a slot whose other slot is
//      durable: of concurrent writers all but one are refused. The first write of a side record goes to both slots: if
//      later neither is valid, the side record is damaged, not missing.
inline constexpr uint32_t image_side_records = 2;
inline constexpr size_t image_side_record_bytes_max = 1024;
struct image_side_record_slots {
    storage_file image{};
    uint8_t heap[16];
    struct state {
        bool seen;             // was read or written by this one: number is known
        bool durability_known; // since then, it is known whether it is durable
        bool unflushed;        // durability_known: written, and not flushed since
        uint64_t number;       // of the newest one's write; 0: no side record
    } side_records[image_side_records];
};
// Reads the newest valid side record. *size 0: no side record. path: as resolve_path returns it, and stays valid.
ty_status image_side_record_read(const char *path, const ty_storage &storage, image_side_record_slots &slots,
                                 uint32_t side_record, void *bytes, size_t capacity, size_t *size);
ty_status image_side_record_write(const char *path, const ty_storage &storage, image_side_record_slots &slots,
                                  uint32_t side_record, const void *bytes, size_t size, bool durable);
// log may be NULL. journal_path NULL: beside the image. *refusal (may be NULL): why an open would be refused because of
// image and journal; then the fields that depend on the journal are those of the image alone. Its status TY_OK: it
// would not be refused. An open meanwhile is not refused because of this.
ty_status image_read_info(const char *path, const ty_storage &storage, ty_info *info, image_log *log,
                          const char *journal_path = nullptr, ty_error *refusal = nullptr);
// Whether `other`, as resolved, is the path of the heap's image or journal: *same is that word, or NULL. Errors:
// TY_E_ARGUMENT where image and journal are the same.
ty_status image_is_same_file(const char *path, const ty_open_options &options, const char *other, const char **same);
// Makes the text of info say that an open would be refused for this.
void image_note_refusal(const ty_error &refusal, ty_info *info);
ty_status image_scrub(const char *path, const ty_storage &storage, ty_progress_callback *progress,
                      ty_problem_callback *problem, void *context, const char *journal_path = nullptr);
// ---- Salvage of damaged files: salvage.h. The paths are as resolve_path returns them.
struct salvage_sinks {
    ty_problem_callback *problem; // may be NULL, as may the next
    ty_salvage_page_callback *page;
    void *context;
};
ty_status image_salvage(const char *path, const ty_open_options &options, const char *out_path,
                        const salvage_sinks &sinks, ty_salvage_report *report);
// Returns what is needed to read the log after the last good epoch. state: as ty_salvage reported it; TY_E_BUSY: it
// has changed since. *image is then open and locked, so that no other process writes to the heap's files until it is
// closed.
ty_status image_salvage_log(const char *path, const ty_open_options &options, uint64_t state, storage_file *image,
                            ty_info *info, image_log *log);

// ---- Copies of image and journal, taken while another process may write to them: docs/design/image.md, "Copies of
// files in use". path: as resolve_path returns it. The copies are files of `copies`, under the paths of the heap's own.
//
// I21: copies that image_copy_check calls whole are accepted together, and hold an epoch that was durable, or whose
//      batch was complete, when they were checked; no epoch acknowledged before the copying began is missing.
struct image_copy;
// *begun, if set, must be ended even after a failure. The writer is asked to leave the image unchanged.
ty_status image_copy_begin(const char *path, const ty_open_options &options, copied_files &copies, image_copy **begun);
// Brings the copies up to date; what they already hold is not read again. Files that change meanwhile may be refused as
// damaged, or as not belonging together. TY_E_BUSY: an archive heap, which cannot be copied in use.
ty_status image_copy_take(image_copy &copy, copied_files &copies, image_log *log);
// Whether the files have stayed as they were copied. log_end: where the copy of the log ends; all frames after the
// redo point of the newest batch must have been in the log when it was copied. NULL: the heap has no log. If false, the
// copies must be taken again.
ty_status image_copy_check(image_copy &copy, const log_positions *log_end, bool *whole);
// Whether the image's headers are as they were when they were copied last.
ty_status image_copy_unchanged(image_copy &copy, bool *same);
// When it returns, what was read of the journal is durable: until then it may not have reached the disk.
ty_status image_copy_make_durable(image_copy &copy);
void image_copy_end(image_copy *copy);
// What is read while it is written may look damaged, cut short or missing.
inline bool may_pass(ty_status status) {
    return status == TY_E_DAMAGED || status == TY_E_MISMATCH || status == TY_E_NOT_FOUND || status == TY_E_FORMAT ||
           status == TY_E_IO;
}

// ---- Followers (opening/follow.cpp): heaps that were opened with TY_OPEN_FOLLOW. image_follow_look and
// image_follow_keep_up may run beside threads that read the heap; during the others no thread does. One call at a time.
//
// I28: a follower's memory is one epoch that was durable, or complete and then flushed; what it does not have in
// private
//      copies the image shows as it was at that epoch, as the follower holds it (I27). A state in which that may have
//      ended, is never left without TY_E_EXPIRED or a failure.
struct follow_look {
    bool newer;       // there is a newer snapshot than the one shown
    bool expired;     // the memory may be a mixture
    bool reopened;    // another open has the heap, or what led here cannot be followed: image_follow_load is needed
    bool superfluous; // image_follow_refresh would drop private copies
    uint64_t lsn;     // of the newest snapshot
};
ty_status image_follow_is_expired(ty_heap *heap, bool *expired);
// What the open found, where nothing was loaded since; as image_follow_load.
void image_follow_loaded(ty_heap *heap, image_log *log);
void image_follow_lose(ty_heap *heap); // the memory is a mixture, until it is loaded
// The same as image_follow_is_expired, without a system call; for a heap that is shared.
bool image_follow_is_lost(ty_heap *heap);
const storage_file *image_file(ty_heap *heap);
ty_status image_follow_look(ty_heap *heap, follow_look *look);
// Makes private copies of what the writer is about to overwrite.
ty_status image_follow_keep_up(ty_heap *heap);
// Brings the memory to the newest snapshot that image_follow_look found.
ty_status image_follow_refresh(ty_heap *heap);
// The same from the files, whatever memory has: costs as much as the private copies that this drops. *log: where to go
// on in the log.
ty_status image_follow_load(ty_heap *heap, image_log *log);
// The memory may be changed in between, through `writable`. words_of: only words of these pages will be; NULL: also
// blocks and roots.
ty_status image_follow_begin_change(ty_heap *heap, const os::page_set *words_of, ty_heap **writable);
void image_follow_end_change(ty_heap *heap, ty_heap *writable, bool whole); // not whole: it was changed in part
// How many private copies of pages in batches there are, if the image has a newer snapshot by now: a load would drop
// them, and what records changed. Else 0.
uint64_t image_follow_superfluous(ty_heap *heap);

bool image_is_read_only(ty_heap *heap);   // of a heap in files, as the next
ty_code image_code_option(ty_heap *heap); // of its open
// Refuses what a forked child or a reader must not do; does nothing for a heap without an image.
ty_status image_check_writer(ty_heap *heap, const char *operation);
// Whether the image is still under the path by which the heap was opened: TY_E_NOT_FOUND, TY_E_MISMATCH.
ty_status image_check_path(ty_heap *heap, const char *operation);
// Called after a snapshot is durable, while no thread writes to the heap: where memory is short, evicts private copies
// of pages that the image holds. Costs one comparison for a heap that fits.
ty_status image_evict_copies(ty_heap *heap);
// How many bytes of private memory the heap may have before it is worth counting them.
uint64_t image_copies_allowed(ty_heap *heap);
// The same for a heap that is open for reading, whose private memory stays.
uint64_t image_reader_allowed();
// The bound of private memory, and how much of it is known to be used. May be read from another thread; takes no lock.
struct memory_metrics {
    uint64_t bound_bytes;   // as given by the options; 0: none
    uint64_t allowed_bytes; // image_copies_allowed
    uint64_t copies_bytes;  // that the image already holds
    bool counted;           // copies_bytes is known: the heap may not fit
};
memory_metrics image_memory_metrics(ty_heap *heap);
// Adds the pages that other threads may write even while a snapshot collects: blocks that a layer above has handed out
// before they belong to anybody. Called within a pause, under the locks that the layer holds when it starts a snapshot.
void image_set_pages_being_written(ty_heap *heap, void (*being_written)(void *context, os::page_set &pages),
                                   void *context);
// Whether the heap's files are still those that were opened, and names lead to them (N3). Thread-safe.
ty_status image_check_files(ty_heap *heap);
// I8: whether both headers name this open and say that the heap is open. False after a close that failed and could not
//     be undone on disk: the next snapshot writes the headers; until then nothing counts that is not in a snapshot.
bool image_open_named(ty_heap *heap);
// Where the processes that had the heap open for writing before this open had their code.
const code_places &image_code_before(ty_heap *heap);
// A pointer that a layer above keeps with the heap; NULL at first.
void image_set_client(ty_heap *heap, void *client);
void *image_client(ty_heap *heap);
// The metrics page that the API layer keeps with it; NULL at first, and for a heap without an image.
void image_set_metrics(ty_heap *heap, struct metrics_page *metrics_page);
struct metrics_page *image_metrics(ty_heap *heap);
// The statistics of undo for readers on another thread: ty_undo_stats, as of the last call that ended.
struct undo_metrics_of {
    uint64_t attached; // 0: the rest means nothing
    uint64_t undoable;
    uint64_t redoable;
    uint64_t kept_blocks;
    uint64_t kept_bytes;
    uint64_t used_bytes; // of the undo buffer, with the records between transactions
    uint64_t room_bytes; // size of the undo buffer
};
// One thread at a time. Does nothing for a heap without an image.
void image_publish_undo(ty_heap *heap, const undo_metrics_of &metrics);
// False: a write is under way, and what was read before still holds.
bool image_read_undo(ty_heap *heap, undo_metrics_of *metrics);
// Held by a thread that registers code in the heap, from before its transaction. Not for a volatile heap.
os::mutex &image_code_record_lock(ty_heap *heap);
const char *image_path(ty_heap *heap);
// Empty: the journal lies beside the image.
const char *image_journal_path_elsewhere(ty_heap *heap);
const uint8_t *image_identity(ty_heap *heap); // 16 bytes
ty_kind image_kind(ty_heap *heap);            // TY_VOLATILE for a heap without an image
uint64_t image_epoch(ty_heap *heap);

} // namespace taiyen
