// The runtime state of one open persistent heap, shared by the files of this layer.
//
// Locks: `control` (rank image) is held by the thread that starts an operation: a snapshot, an early write-back, a read
// of the dirty set. `work` (rank journal) guards what callers and the library's threads share: the batch that is being
// written, the list of batches to checkpoint, the metrics. File I/O is never done under `work`.
//
// I1: a page of the image is overwritten only while the journal durably holds that page's committed content; a batch's
//     space is reused only when both headers, durable, say that the image holds it.
// I2: a header slot is overwritten only while the other one is durable (headers.hpp).
// I3: an epoch is acknowledged only after the flush that covers all its chunks has succeeded.
// I4: a page leaves `dirty` and `in_flight` only when the epoch that holds it is durable.
// I5: the heap is mapped privately (except an archive).
// I8, I9, I10 (when files name an open; the journal's size and header): journal.hpp.
// I17, I18, I19 (fuzzy snapshots): image.hpp.
// I14: a private copy is evicted only while the image durably holds what is in the page: no thread writes to the page,
//      it is neither dirty nor in a batch that is being written, and no batch waits to be checkpointed.
#pragma once

#include "../files/files.hpp"
#include "../image.hpp"
#include "batch_writer.hpp"
#include "evict.hpp"
#include "seqlock.hpp"
#include "src/heap/heap.hpp"

namespace taiyen {

// Copies of pages for a fuzzy snapshot. The memory is kept for the next one: new memory costs more than a copy.
struct shadow_pages {
    char *copies = nullptr;
    uint64_t capacity = 0; // in pages

    ty_status provide(uint64_t pages); // its content is lost. Expected: TY_E_MEMORY
    void keep(uint64_t pages);         // for a next one like this; releases what is far beyond that
    void release();
};

struct image_marks;
struct durable_marks;

// What a follower knows (opening/follow.cpp). The layer above sees to it that one thread at a time uses it, but for
// what is atomic.
struct following {
    image_header seen{};  // when the memory was loaded
    uint64_t image_epoch; // of the newest header that was read, as the next
    uint64_t journal_next;
    uint64_t durable_epoch;      // that the writer has said is durable
    std::atomic<uint64_t> held;  // the epoch at which it stands (I27)
    uint64_t shown;              // what the memory has, but for records of a log
    journal_position end;        // of the newest batch that is known
    uint64_t newest_lsn;         // of that one
    batch_list ahead;            // those after `shown`; of a heap with a log, those after `held`
    os::page_set copied;         // private copies of pages in batches
    std::atomic<bool> lost;      // the memory is a mixture
    const os::page_set *written; // while it changes: which pages can be written to; NULL: all
    void *block;                 // of a heap that is shared: the followers' block, mapped
};

struct image : heap_image {
    // Set at open, then constant.
    ty_heap *heap;
    ty_kind kind;
    bool read_only;
    bool default_journal_name; // it follows from the image's
    ty_background background;
    uint64_t journal_limit_bytes;
    char *image_path;
    char *journal_path;
    storage_file backing;
    storage_file journal;
    uint8_t identity[16];
    char *base;
    uint64_t mapped_bytes;
    heap_stretch fresh[heap_unused_max]; // anonymous memory, not the file: unused when the heap was opened
    size_t fresh_count;
    bool holes_take_memory; // of the file system: holes.cpp
    os::fork_guard fork;
    os::shared_number overwritten; // the image may have pages of this epoch, or of some before it (I26)
    void *client;                  // set by the layer above
    metrics_page *shown;           // set by the API layer
    os::mutex code_record{os::lock_rank::code_record};
    seqlock<sizeof(undo_metrics_of) / sizeof(uint64_t)>
        undo; // the upper layer's statistics, written by one thread at a time

    header_state header;       // written at open, by the checkpointer, when the open is named, and at close
    code_places code_before;   // stood beside the header when it was read: of the opens before
    journal_head head;         // the journal's header: written likewise, and when a batch is finished
    bool open_prepared;        // the journal names this open, and so does a log
    bool log_is_new;           // before this open the image named no log, or another one
    uint32_t chunk_pages;      // pages of a chunk at most; set at open
    bool sums_may_be_torn;     // the image's page checksums may be torn; read and written where `header` is
    followers_known followers; // likewise

    os::mutex control{os::lock_rank::image};
    bool tracking; // from here: guarded by control
    os::tracker tracker;
    os::page_set dirty;     // written, and neither durable nor in the batch that is being written
    os::page_set in_flight; // in the batch that is being written
    private_copies copies;
    shadow_pages ahead, paused;

    os::page_set found; // by a collect, or pages to return to; empty between calls. Exists once the heap had marks
    os::mutex base_lock{os::lock_rank::base_pages};
    image_marks *marks = nullptr; // in memory; changes under control and base_lock
    os::mutex marks_lock{os::lock_rank::marks_file};
    durable_marks *durable = nullptr; // set under both; what it has is guarded as it says
    uint64_t session;                 // of this open: random
    ty_code code;                     // the option of this open
    bool follows;                     // TY_OPEN_FOLLOW
    bool shares;                      // and the program writes to the memory, too
    image *before;                    // the follower that this one was, closed: threads may have found it
    following followed;
    // Of a snapshot heap: free pages whose copies were given back since the last snapshot, and since the one before it
    // that is durable. MK6: a revert restores them, as the tracker does not see that they have changed.
    os::page_set given_back; // guarded by base_lock
    os::page_set given_before;

    os::mutex work{os::lock_rank::journal};
    os::condition changed; // anything guarded by work
    batch_writer writer;   // from here: guarded by work
    batch_list waiting;
    bool open_named; // I8: both headers of the image name it, too; a journal without it takes no batch
    uint64_t durable_epoch;
    uint64_t durable_nonce;
    log_positions durable_redo_point;
    uint64_t journal_end; // of the newest complete batch
    bool checkpointing;   // or naming the open: that thread owns the image's header
    bool checkpoint_wanted;
    bool checkpoint_waited_for; // by a thread, so it is not put off
    ty_error checkpoint_error;  // status TY_OK: none
    ty_snapshot_stats stats;
    snapshot_record lines[snapshot_lines_max]; // number n is at n % snapshot_lines_max
    uint64_t line_count;                       // of all
    struct {
        uint64_t epoch;
        uint64_t ns;
    } pause; // of the newest snapshot

    // While some threads wait for the disk, others compute checksums, and a long checkpoint does not delay a snapshot:
    // decision 4 (docs/decisions) has the measurements.
    static constexpr unsigned thread_max = 6;
    os::thread threads[thread_max];
    unsigned thread_count; // that run; 0: calls do the work
    bool stopping;         // guarded by work
};

image *image_of(ty_heap *heap);

// Refuses what a forked child must not do (check_writer: nor a reader). Sets the detail.
ty_status check_process(const image &im, const char *operation);
ty_status check_writer(const image &im, const char *operation);

// N3 (a name leads to each file) for all files of the heap.
ty_status check_files(const image &im);

// The calling thread's detail, kept to be reported by another thread.

// ---- batch_writer.cpp: the batch that is being written

// Opens a batch for at most so many pages, in so many rows; 0: unknown, so it goes to the tail. Called under control.
ty_status writer_open(image &im, uint64_t pages, uint32_t rows = 1);
// Copies a row of pages of the heap (ascending) into chunks and passes them on; last: the batch is complete with them.
// copies: the pages' content, contiguous; NULL: as they are in the heap.
ty_status writer_add(image &im, const uint64_t *pages, uint64_t count, bool last, const char *copies = nullptr);
// Other threads may store to the page meanwhile.
void copy_page(char *to, const char *from);
// Writes one waiting chunk, if any. Any thread.
bool writer_help(image &im);
// Whether all chunks of a complete batch are written, or the batch has failed: then a thread must finish it.
bool writer_ready(const batch_writer &writer); // under work
// Flushes the batch and completes it: durable, or failed and abandoned. Any thread; under work, which is released
// meanwhile.
void writer_finish(image &im);
// Releases staging memory beyond what is kept, unless a batch is open. Under work, which is released meanwhile.
void writer_trim(image &im);
// Gives up an open batch.
void writer_abandon(image &im);
// Writers may continue; the epoch may already be durable. Under work.
void note_pause(image &im, uint64_t epoch, uint64_t pause_ns);

// ---- snapshot.cpp

// Takes over the outcome of the last batch into the dirty sets (I4: clean only once durable). Under control.
void take_outcome(image &im);

// Removes pages from the dirty set: they are in a batch that is being written. (I4)
void move_to_flight(image &im, const page_list &list);
// Completes a sealed batch that is under way. Under control.
void finish_in_flight(image &im);
// Collects what was written since the last time into the dirty set. Under control, paused.
ty_status collect_dirty(image &im);
// The same where these pages are about to be written again: they stay writable, and are found once more.
ty_status query_dirty(image &im);

// ---- fuzzy_snapshot.cpp

// A snapshot while other threads store. Under control; no batch is under way, except an open one (early write-back).
ty_status write_fuzzy(image &im, const log_positions *given, const image_fuzzy_callbacks &fuzzy, uint64_t started_ns,
                      uint64_t *epoch);

// ---- name_open.cpp: makes journal, log and image name the same open

// I8: the files name the open before anything is acknowledged. The calling thread owns the image's header. hook: of a
//     heap with a log, else NULL.
ty_status name_open(image &im, const image_open_hook *hook);

// ---- checkpoint.cpp

// Checkpoints all complete batches now, in this thread. TY_E_BUSY: followers are in the way of all of them; where it
// may be put off, TY_OK says that some are checkpointed.
ty_status checkpoint_batches(image &im, follower_wait wait = follower_wait::then_leave_behind);

// ---- marks.cpp

// Where the tracker puts what it finds: it goes to the dirty set, and to what changed since the current mark. Under
// control.
class collection {
public:
    explicit collection(image &im) : im_(im) {}
    ~collection();
    collection(const collection &) = delete;
    collection &operator=(const collection &) = delete;
    os::page_set &into();

private:
    image &im_;
};
// MK4: these pages of the image are about to be overwritten. Expected: TY_E_MEMORY, TY_E_IO.
ty_status keep_base(image &im, const page_copy *copies, size_t count);
void image_end_marks(image &im); // at the end of the heap
// Pages now differ from what they were, without a thread's stores: both kinds of marks note it. Under control.
void note_changed(image &im, const os::page_set &pages);
// The pages in `found` were replaced: the heap is as at the tree's current mark. Under control, paused.
void settle_return(image &im, mark_tree &tree);
ty_status provide_found(image &im); // Expected: TY_E_MEMORY
// The image does not hold these pages, or not for certain. A batch that a checkpoint drops meanwhile is in the image.
void add_what_the_image_lacks(image &im, os::page_set &pages);

// ---- durable_marks.cpp

// Reads the heap's file of durable marks, if it has one. Expected: TY_E_DAMAGED, TY_E_MISMATCH.
ty_status durable_open(image &im);
// Calls back, unless there are none, with the marks that the files have now, also while another process writes to them,
// and the size of their file. Expected: as durable_open.
struct durable_looker {
    void *context;
    void (*look)(void *context, const mark_tree &tree, uint64_t bytes);
};
ty_status durable_look(const storage_file &image, const durable_looker &looker);
ty_status durable_check_place(const image &im); // for a new heap: no file of marks lies there
ty_status durable_start(image &im);             // once the heap has its memory
// What it says is durable, and names the image as it is.
ty_status durable_make_durable(image &im);
ty_status durable_name_open(image &im, const open_identity &previous, const open_identity &open);
ty_status durable_check_growth(const image &im, uint64_t limit_bytes);
// MK8: as keep_base, for all pages of these batches: durable when it returns.
ty_status durable_keep_base(image &im, const batch *first, const batch *last);
bool durable_exist(image &im);
void durable_note_changed(image &im, const os::page_set &pages);
ty_status durable_save_current(image &im); // at a close
void durable_close(image &im, bool forked);
// Under control.
ty_status durable_mark(image &im, const char *name, uint64_t limit_bytes);
ty_status durable_find(const image &im, const char *name, uint32_t *mark);
ty_status durable_check_unused(const image &im, const char *name);
ty_status durable_return(image &im, uint32_t mark);
ty_status durable_drop(image &im, uint32_t mark);
const mark_tree *durable_tree(const image &im); // NULL: there are none
// An open of the heap as it was at a mark: that one is current. How many of its pages the image does not have; and
// copies these over the mapped image. Expected: TY_E_NOT_FOUND; TY_E_DAMAGED.
ty_status durable_choose_view(image &im, const char *name);
uint64_t durable_view_pages(const image &im);
ty_status durable_map_view(const image &im);
ty_status create_given_back(image &im, uint64_t pages);
void destroy_given_back(image &im);
void note_given_back(image &im, const void *address, size_t bytes); // by any thread; before they are
// A snapshot is being taken: what was given back before it does not matter to a revert to it. Under control.
void move_given_back(image &im);

// ---- worker.cpp: the library's threads

ty_status worker_start(image &im);
void worker_stop(image &im);

// ---- archive.cpp

// I16: both headers say that the heap is open.
ty_status archive_mark_open(image &im);
ty_status archive_snapshot(image &im, uint64_t *epoch);
heap_owner archive_owner(image &im);

// ---- image.cpp

// A core file contains the used part of the heap, not its whole limit. The owner's provide includes what is used later.
void leave_unused_out_of_dumps(const image &im);

// ---- holes.cpp
// I15: no page that is a hole of a file system in memory is touched through the mapping: such a touch, even a read,
//      takes one of the file system's pages, and raises SIGBUS where it has none left. The same goes for stores of
//      archive heaps, on any file system.

// Found from the path of the image, which is open.
void note_file_system(image &im);
// Allocates disk blocks for pages [first, first + count), as far as the storage can find holes. Expected: TY_E_SPACE.
ty_status give_blocks(const image &im, uint64_t first, uint64_t count);
// Allocates disk blocks for pages [first, first + count), which are about to be touched, if they need them for that.
// Expected: TY_E_SPACE.
ty_status fill_holes(const image &im, uint64_t first, uint64_t count);
// The same for all pages that the heap has used.
ty_status fill_used_holes(const image &im);
// For a file opened for reading: the holes in its mapping become memory.
void cover_holes(const image &im, bool writable);

// ---- attached_log.cpp: what the image stores for a layer with a log

// The header in memory becomes that of a heap with this log, of which nothing was read yet, or without a log (0).
void set_log(image_header &header, const image_log_choice &log);
// What the layer above gets at an open of this image.
image_log log_with(const image &im, const batch_list &batches);

// ---- opening/open.cpp, opening/create.cpp, opening/close.cpp

heap_owner snapshot_owner(image &im);
void image_teardown(image *im); // releases everything that exists; writes nothing
void image_release(image *im);  // the same, but for the memory of *im
void remove_files(image &im);   // of a heap that was created by an open that fails

} // namespace taiyen
