// The steps of opening a transactional heap, shared by open.cpp, attach_log.cpp, replay.cpp and read_log.cpp.
#pragma once

#include "../concurrent/concurrent.hpp"
#include "../transactions/transactions.hpp"
#include "page_copier.hpp"
#include "scanned_records.hpp"

#include <cstring>

namespace taiyen {

inline constexpr const char *log_suffix = "-log";

// Where the log of a heap is kept.
struct log_location {
    const ty_open_options *options;
    char *path;                // of the file, or a name for the program's sink
    const ty_log_sink *sink;   // NULL: not opened, or not there
    ty_log_sink *own;          // the same, if the open created it
    const storage_file *image; // of the heap, during its open: the log gets the same access mode (N4)
    bool empty = false;        // found: a file of no bytes, which is equivalent to none
};
// heap_path: as returned by resolve_path.
ty_status log_location_create(log_location &location, const char *heap_path, const ty_open_options &options);
// The same for any path of the heap; NULL: the options alone name the log.
ty_status log_location_of(log_location &location, const char *heap_path, const ty_open_options &options);
void log_location_destroy(log_location &location); // the file is closed, not removed

// ---- attach_log.cpp

// Opens an existing log. TY_E_NOT_FOUND: there is none; a program's sink was never formatted.
ty_status log_location_open(log_location &location, bool writable);
// Where log_location_open found nothing: reports it, and whether there is a file of no bytes. operation: "open a heap
// without ..."
ty_status log_location_refuse_missing(const log_location &location, const char *operation);
// Whether a log may be created there: TY_E_MISMATCH if what is there may be needed. Changes nothing.
ty_status log_location_check(log_location &location, const log_identity &identity);
// The layout of a new log.
struct log_shape {
    uint64_t bytes; // of its file; 0: from the options
    uint32_t streams;
};
// Creates a log that holds nothing, after log_location_check or where log_location_open found nothing: it is complete
// before it has its name. On a failure it leaves none.
ty_status log_location_make(log_location &location, const log_identity &identity, const open_identity &open,
                            const log_shape &shape);
// Whether the log is of the open that the heap's image names. Otherwise the open is refused, unless the heap was closed
// cleanly and the log is older: then the log does not matter.
ty_status log_location_check_open(const log_location &location, const log_header &header, const image_log &recorded,
                                  bool *older);
// How a log fits the image of a heap that has one.
enum class log_fit {
    fits,
    missing, // does not matter, as the next: an open for writing creates one
    older,
    unused // another log of the heap that holds nothing: it can be used
};
// Opens the log of a heap, unless that is open, and checks whether it is the image's, or does not matter.
// Otherwise the open is refused. *other: the identity of an unused one.
ty_status log_location_find(log_location &location, const log_identity &identity, const image_log &recorded,
                            bool writable, log_header *found, log_fit *fit, uint64_t *other);
// The log names this open before the heap's image does (I8), and before a commit of it is acknowledged.
ty_status log_location_name_open(log_location &location, const log_identity &identity, const open_identity &previous,
                                 const open_identity &open, const io_buffer &buffer);
// Makes a log that was found durable, with the same access mode as the image (N4): one that no open has named yet may
// have been created by a process that died before the log's name was durable.
ty_status log_location_make_durable(const log_location &location, const log_header &header);
// For a heap that says it has no log: refuses one of a later open of it. A log that cannot be read counts as none.
ty_status log_location_check_not_newer(const log_location &location, const image_log &recorded);

// ---- copy_files.cpp

// Copies all files of a heap that another process may be writing to, so that they belong together (I21). TY_E_BUSY: it
// is an archive heap; or the writer is faster than the copying.
ty_status copy_files(const char *path, const ty_open_options &options, copied_files &copies);

// ---- replay.cpp

// Records that are read before their outcome: a prepared one, and the pending ones before it.
class held_records {
public:
    held_records() = default;
    ~held_records() { memory_.destroy(); }
    held_records(const held_records &) = delete;
    held_records &operator=(const held_records &) = delete;

    uint32_t count() const { return count_; }
    void forget() { count_ = 0; }
    // copies: the record's bytes do not stay valid. Expected: TY_E_MEMORY. X27 limits the pending records before a
    // prepared one: with more, TY_E_DAMAGED.
    ty_status hold(const log_record &record, bool copies);
    const log_record &at(uint32_t n) const { return memory_.as<log_record>()[n]; }

private:
    static constexpr size_t most = record_pending_max + 1;
    arena memory_; // record heads, then copied bytes, with 8 readable bytes before each
    size_t used_ = 0;
    uint32_t count_ = 0;
};

// How a log is read; as log_reader says.
struct replay_reading {
    bool threads = false;
    bool in_use = false;
    bool brief = false;
    uint64_t up_to = UINT64_MAX;
};
// What a scan of the whole log finds, before anything is changed.
struct replay_plan {
    replay_reading how;
    log_contents contents;
    held_records held; // at the end
    uint64_t in_doubt; // the LSN of the last record, if it is a prepared one; else 0
    scanned_records records;
    page_copier pages;      // that records write to
    uint64_t words;         // number of words that they write
    uint64_t operations;    // and of procedures
    log_positions snapshot; // the last one taken during the replay
    bool has_snapshot;
};
// With fewer bytes of records, a second thread is not worth starting. Tests lower it.
inline uint64_t replay_helper_min_bytes = uint64_t{256} << 10;
// Does not change the heap's memory, if it is there already; may copy pages of it.
ty_status replay_scan(const log_location &location, const log_identity &identity, const log_positions &from,
                      const image_log &recorded, const replay_reading &how, replay_plan *plan);
// TY_E_MEMORY if the pages that records write to are more than memory may hold: for a heap that is opened for reading.
ty_status replay_check_fits(const log_location &location, const replay_plan &plan);
// Whether memory has no room for all pages that records write to: then snapshots are taken on the way.
bool replay_takes_snapshots(const txn_runtime &rt, const replay_plan &plan);
// Brings the heap's memory to the end of what was scanned, except what is in doubt. writes: snapshots may be taken.
ty_status replay_run(txn_runtime &rt, const log_location &location, const log_identity &identity,
                     const log_positions &from, bool writes, replay_plan &plan);

// After replay_run: replays the transactions that were in doubt.
ty_status replay_held(txn_runtime &rt, const log_location &location, replay_plan &plan);

inline log_identity identity_of(const image_log &recorded) {
    log_identity identity{};
    memcpy(identity.heap, recorded.heap_identity, sizeof identity.heap);
    identity.log = recorded.log_identity;
    return identity;
}

} // namespace taiyen
