// The batch that is being written: pages are copied into chunks in a ring of staging slots, and any idle thread
// checksums the chunks and writes them. docs/design/image.md, "Snapshot".
//
//   closed --writer_open--> open --writer_add(last)--> sealed --writer_finish--> closed (durable, or failed)
//                            |  \--writer_add-- (early write-back)
//                            \--a chunk's write fails--> failing --writer_finish / writer_abandon--> closed (failed)
#pragma once

#include "../files/files.hpp"

namespace taiyen {

inline constexpr size_t staging_slot_bytes = size_t{1} << 20; // one chunk; the unused rest keeps slots aligned
// Staging memory kept between snapshots: as much as the last batches needed, within these bounds. New memory costs more
// than the copy into it: the kernel zeroes it first, within the writers' pause.
inline constexpr size_t staging_keep_min_bytes = size_t{64} << 20;
inline constexpr size_t staging_keep_max_bytes = size_t{1} << 30;
static_assert(chunk_bytes(chunk_pages_max) <= staging_slot_bytes);

// At most so many threads write at a time; the others checksum meanwhile. If all of them wrote, the disk, which
// completes writes together, would be idle while all of them checksum.
inline constexpr uint32_t chunk_writers = 4;

struct staging_slot {
    uint64_t offset;   // of the chunk in the journal
    size_t first_copy; // of the batch's copies
    uint32_t page_count;
    uint32_t next; // in the list that it is in
};

// A slot is empty; or owned by the thread that fills it; or filled; or owned by the thread that checksums it; or
// summed; or owned by the thread that writes it. The slot that became empty last is filled next: it is in memory, and
// its content may still be in the processor's caches.
struct staging {
    // A queue of slots, first in, first out.
    struct line {
        uint32_t first = none;
        uint32_t last = none; // valid if there is a first
    };

    os::space memory{}; // of as many slots as were ever needed
    staging_slot *slots = nullptr;
    uint32_t slot_count = 0;
    uint32_t touched = 0;     // slots that may be in memory; those after were not used since memory was released
    uint32_t empty = none;    // a stack of touched ones
    line filled;              // wait for their checksums
    line summed;              // wait to be written
    uint32_t in_use = 0;      // touched ones that are not empty
    uint32_t most_in_use = 0; // the most at a time in this batch
    uint32_t wanted = 0;      // the most of the last batches; an eighth less with each batch that needs less

    static constexpr uint32_t none = UINT32_MAX;

    ty_status create(size_t bytes);
    void destroy();
    char *slot_memory(size_t slot) const { return memory.as<char>() + slot * staging_slot_bytes; }
    // Returns an empty slot, or `none` if all are in use.
    uint32_t take_empty();
    bool has_memory(uint32_t slot); // false: out of memory
    void put_empty(uint32_t slot);
    void put(line &to, uint32_t slot);
    uint32_t take(line &from); // from a line that is not empty
    // All become empty, and those from `keep` on count as not in memory.
    void clear(uint32_t keep);
};

enum class batch_outcome { none, durable, failed };

struct batch_writer {
    staging ring;

    bool open;
    bool sealed;    // the last chunk is filled
    bool finishing; // a thread is flushing
    bool failing;   // a write failed; error says why
    bool trimming;  // staging memory is being released
    ty_error error;
    batch *target; // copies are complete up to `filled`, their sums up to `written`
    uint64_t previous_nonce;
    uint64_t attempt;
    uint64_t position;        // in the journal, of the next chunk
    log_positions redo_point; // of the epoch; known when its last pages are
    uint32_t filled;          // chunks passed on
    uint32_t written;
    uint32_t active;  // threads that checksum or write a chunk now
    uint32_t writing; // threads that write one now
    uint64_t started_ns;
    uint64_t bytes;

    uint64_t allocated_end; // of the journal: disk blocks are allocated up to here
    batch_outcome outcome;  // of the last batch, until it is taken over
    uint64_t failed_epoch;
    ty_error failed_error;

    bool may_write() const { return writing < chunk_writers; }
    // Whether a chunk waits for a thread.
    bool has_work() const {
        return open && !failing &&
               (ring.filled.first != staging::none || (ring.summed.first != staging::none && may_write()));
    }
};

} // namespace taiyen
