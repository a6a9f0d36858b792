// The journal: batches on disk, and how they are found again.
#pragma once

#include "../os/os.hpp"
#include "image.hpp"
#include "image_layout.hpp"

namespace taiyen {

// One page of a batch.
struct page_copy {
    uint64_t page;
    uint64_t sum;
    uint64_t offset; // in the journal
};

struct page_copies {
    page_copy *items = nullptr;
    size_t count = 0;
    size_t capacity = 0;

    ty_status reserve(size_t more);
    void release();
};

// A complete batch, durable, waiting to be applied. Owned by the list it is in.
struct batch {
    batch *next = nullptr;
    uint64_t epoch = 0;
    uint64_t nonce = 0;
    uint64_t start = 0;
    uint64_t end = 0;
    image_mark mark{};
    page_copies copies; // in order of offset; a later copy of a page wins
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

ty_status write_journal_header(const storage_file &journal, const uint8_t identity[16]);

// Errors: TY_E_FORMAT, TY_E_DAMAGED, TY_E_MISMATCH (of another heap).
ty_status check_journal_header(const storage_file &journal, const uint8_t identity[16]);

// Whether the journal can hold nothing that was ever acknowledged: no batch starts at its front.
ty_status journal_is_empty(const storage_file &journal, bool *empty);

// Where in the chain of epochs a reader stands.
struct journal_position {
    uint64_t epoch;
    uint64_t nonce;
    uint64_t next; // where the batch of `epoch` ended
};

// What is behind a position.
struct journal_scan {
    batch_list batches;     // complete, in order
    uint64_t discarded = 0; // incomplete ones behind them
};

// Reads all complete batches behind `from`, checking every checksum. A batch that is incomplete although a later one
// follows, or although `durable_epoch` says that it was acknowledged, is TY_E_DAMAGED; one whose predecessor is another
// than the image's is TY_E_MISMATCH. Nothing is written.
ty_status scan_journal(const storage_file &journal, const uint8_t identity[16], journal_position from,
                       uint64_t durable_epoch, uint64_t page_limit, journal_scan *scan);

// What a layer with a log needs to know of the epoch that header and batches restore.
image_log log_of(const image_header_1 &header, const batch_list &batches);

// Reads a batch's pages from the journal piece by piece, checks each page once more, and hands it on.
// Errors: TY_E_DAMAGED, TY_E_IO, and what the sink returns.
struct page_sink {
    void *context;
    // Pages lie behind one another in memory and in the batch: copies[0..count).
    ty_status (*pages)(void *context, const page_copy *copies, size_t count, const char *bytes);
};
ty_status read_batch(const storage_file &journal, const batch &b, const page_sink &sink);

} // namespace taiyen
