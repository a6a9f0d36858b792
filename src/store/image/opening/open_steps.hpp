// The steps of opening and creating, shared by open.cpp, create.cpp, grow.cpp and others.
#pragma once

#include "../snapshots/snapshots.hpp"

namespace taiyen {

// What an open learns as it proceeds.
struct image_opening {
    ty_open_options options{};
    ty_report report{};
    journal_contents journal;
    bool made = false;                 // the heap's files, under their names
    bool begun = false;                // begin_open was called
    bool client_started = false;       // the hook's start was called
    bool validated = false;            // and its validate
    uint64_t checkpointed_batches = 0; // before the heap was mapped
    uint64_t checkpointed_pages = 0;
    uint64_t started_ns = os::now_ns();
    const image_open_hook *hook = nullptr;
    image *before = nullptr;   // of hook->again, whose memory this one has taken
    image_log_choice log{};    // that the header is to have
    uint64_t other_log = 0;    // that the older of the two headers names
    uint64_t service_word = 0; // of the heap as it is: see image_log
    ~image_opening() { journal.scan.batches.clear(); }
};

// open.cpp: the state of an image that is not open yet. image_teardown releases it.
ty_status image_create(const char *path, const ty_open_options &options, image **made);

// create.cpp: creates the files of a new heap and leaves them open, locked, mapped and formatted in `im` (I6).
// TY_E_EXISTS: another open was faster. hook may be NULL.
ty_status create_files(image &im, ty_open_options &options, const image_open_hook *hook);
// The same with this content, which `write` writes to the image's file, with its checksums; it may change what the
// header says.
struct new_content {
    void *context;
    ty_status (*write)(void *context, image &im);
    const storage_file *like; // N4: has the access rights that it gets; NULL: those of a new file
};
ty_status create_files(image &im, const ty_open_options &options, const image_open_hook *hook,
                       const new_content &content);

// create.cpp: creates an empty journal where there is none, or one that is ignored: whole before it has its name, which
// is durable when it returns. On failure it leaves none that it created; *made: there was none before.
ty_status create_journal(image &im, bool *made);
// Called before it, where the image knows no journal: refuses if there is one that may be needed, and locks what
// exists.
ty_status check_journal_place(image &im);

// open_checks.cpp: refusals, before anything is changed (I7). Locks the image; TY_E_BUSY: it is open elsewhere.
ty_status lock_image(image &im);
ty_status check_features(const image &im);
ty_status check_counters(const image &im, const image_opening &state);
ty_status check_attach(image &im);

// open_memory.cpp: maps the image and what batches hold beyond it; makes a heap of it, and tracks its written pages.
ty_status take_memory(image &im, image_opening &state);
ty_status start_memory(image &im, const image_opening &state); // the same for what is mapped
void give_memory_back(image &im, image &before);               // of hook->again: lost, until it is loaded
// Whether that could be done, checked before the files are changed (I7): whether the addresses are free,
ty_status probe_address(const image &im, uint64_t limit_bytes);
// and whether they will hold a heap. Also finds the service word.
ty_status probe_heap(image &im, image_opening &state);
// The same word of a heap that is mapped completely.
void read_service_word(const ty_heap *heap, image_opening &state);

// open.cpp: the header says that the heap is open; where its kind needs it, all files durably name this open (I8). Does
// nothing the second time.
ty_status begin_open(image &im, image_opening &state);

// early_checkpoint.cpp: whether the batches are more than memory may hold.
bool exceeds_memory(const image_opening &state);
// TY_E_MEMORY if so for a heap that is opened for reading, which must keep them all in memory.
ty_status check_fits_reader(const image &im, const image_opening &state);
// Checkpoints the batches before the heap is mapped. The files were checked and made durable, and all of them name
// their heap.
ty_status checkpoint_early(image &im, image_opening &state);

// grow.cpp: grows the limit of the file; the heap's own tables follow later.
ty_status grow_files(image &im, uint64_t limit_bytes);

// grow.cpp: clears what a growth left to clear, if anything.
ty_status finish_clearing(image &im);

// make_durable.cpp: makes durable what the open believes, the newest batch and the header. Changes nothing.
ty_status make_journal_durable(image &im, const batch_list &batches);
// The journal's name. Changes nothing, and no other folder is flushed later: the journal may be renamed while the heap
// is open.
ty_status make_name_durable(const image &im);
ty_status make_image_durable(image &im, bool other_slot_damaged);
// After both: rewrites what a flush alone may not make durable. A write that a failed flush covered stays unflushed
// whatever is flushed later, and the process that saw the failure may have died. So unless the header names the newest
// batch as durable, all batches are written again, beside the old ones, which stay unchanged until both headers name
// the new place. Where the disk has no room for that, the flush must do. O(bytes of the batches).
ty_status renew_batches(image &im, batch_list &batches);

} // namespace taiyen
