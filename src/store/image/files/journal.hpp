// The journal, a redo journal of pages: batches on disk, and how they are found again.
#pragma once

#include "../image.hpp"
#include "image_layout.hpp"
#include "src/os/os.hpp"

namespace taiyen {

// One page of a batch.
struct page_copy {
    uint64_t page;
    uint64_t sum;
    uint64_t offset; // in the journal
};

// A complete batch, durable, waiting to be checkpointed. Owned by the list that it is in.
struct batch {
    batch *next = nullptr;
    uint64_t epoch = 0;
    uint64_t nonce = 0;
    uint64_t start = 0;
    uint64_t end = 0;
    log_positions redo_point{};
    os::array<page_copy> copies; // in order of offset; a later copy of a page wins
};
batch *batch_create();
void batch_destroy(batch *b);

// Batches in order of epoch.
struct batch_list {
    batch *first = nullptr;
    batch *last = nullptr;
    uint64_t count = 0;

    void append(batch *b);
    void pop();
    void clear();
    uint64_t bytes() const;
    uint64_t pages() const;
};

// The journal's header, which binds it to its image.
//
// I8: an open acknowledges or checkpoints a batch only when both headers of the image durably name that open, and the
//     journal's header did before them.
// I9: an acknowledged batch lies before the size that the journal's header durably says, and the file durably had that
//     size before.
// I10: a slot of the journal's header is overwritten only while the other one is durable, names an open that the image
//      names, and says a size that the file has.
struct journal_head {
    journal_header header{};  // as last written and flushed, or read
    uint32_t next_slot = 0;   // where the next one goes (I10)
    uint64_t sized_bytes = 0; // length of the file at its last successful flush
    bool other_slot_damaged = false;
    bool write_failed = false; // a write of it failed: next_slot may hold a header that is not true
};

// Writes the header of an empty journal to both slots.
ty_status write_first_header(const storage_file &journal, const image_header &image, journal_head *head);

// Writes `next` with the next number, and flushes; then it is the head's header. Other writes are flushed with it.
ty_status write_journal_header(const storage_file &journal, journal_head &head, const journal_header &next);

// Whether a journal belongs to an image.
enum class journal_fit {
    fits,
    superseded, // the image is clean, and this journal is older or never held anything: it is ignored
};
// Reads the header. Errors: TY_E_FORMAT, TY_E_DAMAGED (also: cut short), TY_E_MISMATCH (of another heap, older or newer
// than the image, or of a copy of the heap).
ty_status read_journal_head(const storage_file &journal, const image_header &image, journal_head *head,
                            journal_fit *fit);

// What a journal says to a reader that may not have its image.
struct journal_trace {
    bool found = false; // a header; an empty file has none
    bool used = false;  // it may hold acknowledged content, or belong to a non-empty log that does
    uint8_t heap_identity[16] = {};
};
// A file that is not a journal is refused.
ty_status read_journal_trace(const storage_file &journal, bool log_is_empty, journal_trace *trace);

// The position of a reader in the chain of epochs.
struct journal_position {
    uint64_t epoch;
    uint64_t nonce;
    uint64_t next; // where the batch of `epoch` ended
};

// What is after a position.
struct journal_scan {
    batch_list batches;     // complete, in order
    uint64_t discarded = 0; // incomplete ones after them
};

// Reads all complete batches after `from` and checks every checksum. A batch that is incomplete although a later one
// follows, or although `durable_epoch` says that it was acknowledged, is TY_E_DAMAGED; one whose predecessor differs
// from the image's is TY_E_MISMATCH. Writes nothing.
ty_status scan_journal(const storage_file &journal, const uint8_t identity[16], journal_position from,
                       uint64_t durable_epoch, uint64_t page_limit, journal_scan *scan);

// Whether a batch after a position has begun to be written.
ty_status journal_goes_on(const storage_file &journal, const uint8_t identity[16], journal_position from, bool *more);

// Searches the whole journal for tables of batches after `epoch`, intact or damaged, and reports the entries that are
// left of them: what such a batch would have brought to the image. A chunk without a valid header is recognized by its
// pages: one of them matches its entry. What cannot be read is left out.
struct entry_sink {
    void *context;
    ty_status (*entry)(void *context, const chunk_entry &entry);
};
ty_status find_later_entries(const storage_file &journal, uint64_t epoch, uint64_t page_limit, const entry_sink &sink);

// The content of the journal's file beside an image.
struct journal_contents {
    journal_head head;
    bool missing = false; // or ignored, and closed again: a writing open creates one
    journal_scan scan;
};

// Opens it (locked, except for `look`), checks that it is the image's, and reads what it holds beyond the image.
enum class journal_use { look, read, write };
ty_status read_journal(storage_file &journal, const char *path, journal_use use, const image_header &image,
                       journal_contents *contents);

// For an image that has no journal, an archive's: if a journal exists, the heap became a snapshot heap, and this image
// is older.
ty_status check_no_journal(const ty_storage &storage, const char *path, const image_header &image);

// What a layer with a log needs to know about the epoch that header and batches restore.
image_log log_of(const image_header &header, const batch_list &batches);

// Reads a batch's pages from the journal piece by piece, checks each page again, and passes it on. Errors:
// TY_E_DAMAGED, TY_E_IO, and those that the sink returns.
struct page_sink {
    void *context;
    // Pages are contiguous in memory and in the batch: copies[0..count).
    ty_status (*pages)(void *context, const page_copy *copies, size_t count, const char *bytes);
};
ty_status read_batch(const storage_file &journal, const batch &b, const page_sink &sink);

} // namespace taiyen
