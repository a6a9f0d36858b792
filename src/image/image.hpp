// The façade of the image layer: heaps that live in files. docs/design/image.md tells how it works; image_layout.hpp is
// the form of its files.
#pragma once

#include "../heap/heap.hpp"
#include "files/image_layout.hpp"
#include <taiyen/persist.h>
#include <taiyen/salvage.h>

namespace taiyen {

inline bool opens_for_reading(ty_open_mode mode) {
    return mode == TY_OPEN_READ_ONLY || mode == TY_OPEN_COPY;
}

// What an image keeps for a log that a higher layer has: which log it is, and where a snapshot stands in it. The image
// hands it back as it was given.
struct image_place {
    uint64_t position;
    uint64_t generation;
    uint64_t lsn;
};
struct image_mark {
    uint64_t lsn = 0;   // the LSN up to which all is in the snapshot
    uint64_t count = 1; // of log streams
    image_place at[log_streams_max_2] = {};
};
// The beginning of a log.
inline image_mark mark_at_begin(uint64_t lsn, uint64_t streams) {
    image_mark mark{lsn, streams ? streams : 1};
    for (uint64_t p = 0; p < mark.count; ++p)
        mark.at[p].lsn = lsn;
    return mark;
}
// What an open has the header say of the log.
struct image_log_choice {
    uint64_t identity; // 0: there is none
    uint32_t streams;  // counts where the identity is another one than before
};
struct image_log {
    uint8_t heap_identity[16];
    uint64_t limit_bytes;
    uint64_t log_identity; // 0: this heap has no log
    image_mark mark;       // of the epoch that is restored
    bool closed;           // in order: nothing stands behind the mark
    bool version_1;        // of the heap's files: closed in order; its log is made anew
    open_identity_2 open;  // the last one that the heap's image names
    log_source_2 source;   // whose transactions it has
    uint64_t service_word; // the first word of what the heap's service root leads to; 0: there is none, or the heap has
                           // a log already
    const storage_file *image; // open; the log is as closed to others as it is (N4)
    ty_heap *heap;             // its memory, private, as this epoch has it: may be written to. NULL: not there yet
};

// For a layer above that takes part in an open.
// check: everything of the heap's own files is known to be sound, and nothing has been changed, nor may the callback; a
// failure refuses the open. *choice is what the header says; what the callback leaves there the header will say
// (no log: then the kind becomes TY_SNAPSHOT, else TY_TRANSACTIONAL), durably, when the open returns; of another log
// than before, the mark is its beginning, with the LSN going on. created: the heap is being made (asked for
// TY_TRANSACTIONAL only); log tells the identity that it will have, and the image is not there under its name yet.
// make: follows check, but in a read-only open. The log that was answered is there, durably, and as closed to others as
// the image, when it returns; failing, it leaves none that it made. Until
// then no header names it. No header that a power cut may leave needs what was in its place.
// start: the heap's memory holds what the files but the log do; what the layer needs (memory, threads, its records done
// again) it takes here, and changes no file. Before the files are changed, but where these must be first: in a growth,
// in a creation, and where batches are checkpointed before the heap is mapped. Once in each open of a heap with a log.
// give_up: the open fails after start was called, whatever that returned. The heap is still there.
// name_open: in each writing open of a heap with a log, before any snapshot. The log names that open, durably, when it
// returns; it is taken beside an image that names `previous` or `open`.
// judge: the heap's memory holds what the open has found, but for records of a log; it may look and may refuse, and
// changes nothing. Once in each open; where start comes before the files are changed, so does this. May be NULL.
struct image_open_hook {
    void *context;
    ty_status (*check)(void *context, const image_log &log, bool created, image_log_choice *choice);
    ty_status (*make)(void *context);
    ty_status (*start)(void *context, ty_heap *heap);
    void (*give_up)(void *context);
    ty_status (*name_open)(void *context, const open_identity_2 &previous, const open_identity_2 &open);
    ty_status (*judge)(void *context, ty_heap *heap) = nullptr;
};

// A heap with a log that is open read-only can be written to in memory until image_freeze, so that its log can be
// replayed. *heap is replaced.
ty_status image_freeze(ty_heap **heap);

// The functions of persist.h, with arguments checked by the caller. hook may be NULL: then a heap with a log is
// refused. path: as resolve_path gives it.
ty_status image_open(const char *path, const ty_open_options &options, const image_open_hook *hook, ty_heap **heap,
                     ty_report *report);
// The header becomes that of a heap without a log, durably. The newest snapshot is durable and holds everything.
ty_status image_detach_log(ty_heap *heap);
// Whose transactions the heap has besides its own: in the header, durably. Also the heap's identity (16 bytes), and its
// log's. May wait until what lies in the journal is checkpointed.
log_source_2 image_source(ty_heap *heap, uint8_t *identity, uint64_t *log);
ty_status image_set_source(ty_heap *heap, const log_source_2 &source);
// mark: as for a snapshot, of the last one. Nothing stands in the log behind it.
ty_status image_close(ty_heap *heap, const image_mark *mark);
ty_status image_discard(ty_heap *heap);
// For an open that fails in the layer above, of a heap that it had made: closes it, and removes its files.
void image_unmake(ty_heap *heap);
// A snapshot of a heap whose blocks others store into meanwhile, and whose layer above has a log of these stores: they
// wait for nothing. docs/design/image.md, "Running snapshots".
//
// I17: what was stored before tables() returned is in the batch; what is stored later is dirty again, whether or not
//      the batch caught it.
// I18: the heap's tables, and what tables() stored, are in the batch as they were when tables() returned.
// I19: the last chunk of the batch is handed on only after settle() returned TY_OK.
//
// Who recovers starts from the tables as they were, and stores again all that was stored later. So a block that was
// freed, or cut off, after tables() returned is not freed in the heap before image_snapshot_start returns; and one that
// is allocated then, but not yet for certain, is noted as X3 notes reserved blocks.
struct image_running {
    void *context;
    // Just before the pause of the heap's allocators, and outside of it: may allocate, and wait for who does. A failure
    // fails the snapshot, and nothing else is called.
    ty_status (*approach)(void *context);
    // Within the pause of the heap's allocators: what the snapshot holds for certain ends here. May store into live
    // blocks, whose pages it adds to `stored`, and set the mark, which is read later. Must not wait for anybody who
    // allocates, nor allocate, free, or set roots here. A failure fails the snapshot.
    ty_status (*tables)(void *context, os::page_set &stored);
    // Once that pause is over, whatever came of it. May be NULL.
    void (*resumed)(void *context);
    // All pages but the tables were copied and handed on: returns when all that was stored until now is durable
    // elsewhere. Whom it waits for must not wait for a snapshot, early write-back, eviction, purge, eviction or look at
    // the dirty pages of this heap. A failure fails the batch. Not called if there is nothing to be written.
    ty_status (*settle)(void *context);
};

// mark: of the log, where the snapshot stands in it; NULL: where the last durable one does. A snapshot with another
// mark than that one is written even if no page is dirty. running NULL: nobody stores until this returns; else
// TY_E_UNSUPPORTED where image_can_run is false.
ty_status image_snapshot_start(ty_heap *heap, const image_mark *mark, const image_running *running, uint64_t *epoch);
// Whether the heap has a journal, and its tracker sees writes that race with it: constant while it is open.
bool image_can_run(ty_heap *heap);
ty_status image_snapshot_wait(ty_heap *heap, uint64_t epoch);
ty_status image_write_back_early(ty_heap *heap, size_t limit_pages);
ty_status image_work(ty_heap *heap);
ty_status image_work_status(ty_heap *heap);
ty_status image_purge(ty_heap *heap, size_t *released_bytes);
// The same for whole pages that nobody writes to meanwhile: what the image holds for certain now. Any kind of heap.
ty_status image_evict(ty_heap *heap, const void *address, size_t bytes, size_t *released_bytes);
// Where dirty pages lie: pages[n] of them from page n * cell_pages on. Those behind the last cell are counted in none.
struct dirty_cells {
    uint64_t cell_pages;
    uint64_t count;
    uint32_t *pages;
};
// cells may be NULL.
ty_status image_dirty_count(ty_heap *heap, uint64_t *pages, const dirty_cells *cells = nullptr);
ty_status image_dirty_bitmap(ty_heap *heap, uint64_t first, uint64_t count, uint64_t *bitmap);
ty_status image_get_snapshot_stats(ty_heap *heap, ty_snapshot_stats *stats);
// The newest snapshots of this open, each as ty_snapshot_stats tells of the last one; the oldest first.
struct snapshot_line {
    uint64_t epoch;
    uint64_t unix_ns; // when it was durable
    uint64_t pause_ns;
    uint64_t durable_ns;
    uint64_t pages;
    uint64_t bytes;
};
inline constexpr uint32_t snapshot_lines_max = 64;
uint32_t image_snapshot_lines(ty_heap *heap, snapshot_line (&lines)[snapshot_lines_max]);
// Which process has the heap open for writing, by the header of its image; 0: none, it is closed.
ty_status image_read_owner(const char *path, const ty_storage &storage, uint8_t (&identity)[16], uint64_t *process);
// ---- inspect/notes.cpp: notes, which who copies a heap elsewhere keeps in its image beside its pages (note.h)
//
// I25: a note is written over only by a writer that has seen what stands there, in a slot whose other one is durable:
// of those who write at once, all but one are refused. The first one goes to both slots: where neither is whole later,
// it is damaged, and not none.
inline constexpr uint32_t image_notes = 2;
inline constexpr size_t image_note_bytes_max = 1024;
struct image_note_slots {
    storage_file image{};
    uint8_t heap[16];
    struct state {
        bool seen;       // was read or written by this one: number is known
        bool settled;    // since it was seen, it is known whether it is durable
        bool in_doubt;   // settled: written, and not flushed since
        uint64_t number; // of the newest one's write; 0: there is none
    } notes[image_notes];
};
// The newest one that is whole. *size 0: there is none. path: as resolve_path gives it, and stays valid.
ty_status image_note_read(const char *path, const ty_storage &storage, image_note_slots &slots, uint32_t note,
                          void *bytes, size_t capacity, size_t *size);
ty_status image_note_write(const char *path, const ty_storage &storage, image_note_slots &slots, uint32_t note,
                           const void *bytes, size_t size, bool durable);
// log may be NULL. journal_path NULL: beside the image. *refusal (may be NULL): what image and journal would have an
// open refused for; then the metrics that the journal has a part in are those of the image alone. status TY_OK:
// nothing. locks: whether somebody has the heap open is asked by a lock, which an open meanwhile fails for; else it is
// read as one that is in use.
ty_status image_read_info(const char *path, const ty_storage &storage, ty_info *info, image_log *log,
                          const char *journal_path = nullptr, ty_error *refusal = nullptr, bool locks = true);
// Whether `other`, as resolved, is the path of the heap's image or journal: *same is that word, or NULL.
// Errors: TY_E_ARGUMENT where these are the same.
ty_status image_tell_same(const char *path, const ty_open_options &options, const char *other, const char **same);
// The text of info says that an open would be refused for this.
void image_tell_refusal(const ty_error &refusal, ty_info *info);
ty_status image_scrub(const char *path, const ty_storage &storage, ty_progress_callback *progress,
                      ty_problem_callback *problem, void *context, const char *journal_path = nullptr);
// ---- What can be had of damaged files: salvage.h. The paths are as resolve_path gives them.
struct salvage_sinks {
    ty_problem_callback *problem; // may be NULL, as the next
    ty_salvage_page_callback *page;
    void *context;
};
ty_status image_salvage(const char *path, const ty_open_options &options, const char *out_path,
                        const salvage_sinks &sinks, ty_salvage_report *report);
// What the log is to be read by, behind the last good epoch. state: as ty_salvage told it; TY_E_BUSY: it is another one
// now. *image is open then, and locked, so that nobody else writes to the heap's files until it is closed.
ty_status image_salvage_log(const char *path, const ty_open_options &options, uint64_t state, storage_file *image,
                            ty_info *info, image_log *log);

// ---- Copies of image and journal, taken while another process may write to them: docs/design/image.md, "Copies of
// files in use". path: as resolve_path gives it. The copies are files of `copies`, under the paths of the heap's own.
//
// I21: copies that image_copy_check calls whole are accepted together, and hold an epoch that was durable, or whose
//      batch was complete, when they were checked; none that was acknowledged before they were begun is missing.
struct image_copy;
// *begun is to be ended also after a failure, if it is set. The writer is asked to leave the image as it is.
ty_status image_copy_begin(const char *path, const ty_open_options &options, copied_files &copies, image_copy **begun);
// Brings the copies up to date; what they hold already is not read again. Files that change meanwhile may be refused as
// damaged, or as not belonging together. TY_E_BUSY: of an archive heap, of which there can be no copy.
ty_status image_copy_take(image_copy &copy, copied_files &copies, image_log *log);
// Whether the files have stayed as they were copied. log_end: where the copy of the log ends, whose frames behind the
// mark of the newest batch must all have been there; NULL: the heap has no log. Otherwise the copies are to be taken
// again.
ty_status image_copy_check(image_copy &copy, const image_mark *log_end, bool *whole);
// Whether the image's headers are as they were when they were copied last.
ty_status image_copy_unchanged(image_copy &copy, bool *same);
// What was read of the journal is durable when it returns: it may have been under way to the disk.
ty_status image_copy_settle(image_copy &copy);
void image_copy_end(image_copy *copy);
// Refuses what a forked child, or a reader, may not do; of a heap without an image, nothing.
ty_status image_check_writer(ty_heap *heap, const char *operation);
// Whether the image is still under the path that the heap was opened by: TY_E_NOT_FOUND, TY_E_MISMATCH.
ty_status image_check_path(ty_heap *heap, const char *operation);
// After a snapshot is durable, nobody writes to the heap: where memory is short, private copies of what the image holds
// are given back. Nothing but a comparison for a heap that fits.
ty_status image_evict_copies(ty_heap *heap);
// How many bytes of private memory the heap may have before anybody need look at what there is.
uint64_t image_copies_allowed(ty_heap *heap);
// The same for one that is open for reading, whose private memory stays.
uint64_t image_reader_allowed();
// The bound of private memory, and what of it is known to be used. For who looks from another thread; takes no lock.
struct told_memory {
    uint64_t bound_bytes;   // that the options name; 0: none
    uint64_t allowed_bytes; // image_copies_allowed
    uint64_t copies_bytes;  // that the image holds already
    bool counted;           // copies_bytes is known: the heap may not fit
};
told_memory image_memory_told(ty_heap *heap);
// Adds the pages to which others may write even while a snapshot collects: blocks that a layer above has handed out
// before they are anybody's. Called within a pause, under what the layer holds when it starts a snapshot.
void image_set_pages_being_written(ty_heap *heap, void (*being_written)(void *context, os::page_set &pages),
                                   void *context);
// Whether the heap's files are still what was opened, and names lead to them (N3). Thread-safe.
ty_status image_check_files(ty_heap *heap);
// I8: whether both headers name this open and call the heap open. False where a close failed and the disk did not take
// that back: the next snapshot writes them; until then nothing counts that is not in one.
bool image_open_named(ty_heap *heap);
// Where the processes had their code that had the heap open for writing before this open.
const code_places_2 &image_code_before(ty_heap *heap);
// What a layer above keeps with the heap; NULL at first.
void image_set_upper(ty_heap *heap, void *upper);
void *image_upper(ty_heap *heap);
// What the calls keep with it; NULL at first, and for a heap without an image.
void image_set_metrics(ty_heap *heap, struct metrics_page *metrics_page);
struct metrics_page *image_metrics(ty_heap *heap);
// What undo tells of itself to who looks from another thread: ty_undo_stats, as of the last call that ended.
struct told_undo {
    uint64_t attached; // 0: and the rest means nothing
    uint64_t undoable;
    uint64_t redoable;
    uint64_t kept_blocks;
    uint64_t kept_bytes;
    uint64_t used_bytes; // of the undo buffer, with the marks between transactions
    uint64_t room_bytes; // that it has
};
// One thread at a time. Of a heap without an image, nothing.
void image_tell_undo(ty_heap *heap, const told_undo &told);
// False: it is being told just now, and what was read before holds.
bool image_undo_told(ty_heap *heap, told_undo *told);
// Of who notes code in the heap, from before its transaction. Not for a volatile heap.
os::mutex &image_notes_lock(ty_heap *heap);
const char *image_path(ty_heap *heap);
// Empty: the journal lies beside the image.
const char *image_journal_path_elsewhere(ty_heap *heap);
const uint8_t *image_identity(ty_heap *heap); // 16 bytes
ty_kind image_kind(ty_heap *heap);            // TY_VOLATILE for a heap without an image
uint64_t image_epoch(ty_heap *heap);

} // namespace taiyen
