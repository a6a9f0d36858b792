// The state of an open, shared by open.cpp and in_doubt.cpp.
#pragma once

#include "open_steps.hpp"

namespace taiyen {

// For files that a writer has open, which are opened as copies; or for a caller that inspects what is in doubt, and
// resolves nothing.
struct reading_beside {
    const ty_storage *storage = nullptr; // of the files that were copied
    uint64_t earlier = 0;                // what was in doubt in an earlier copy; 0: none
    uint64_t in_doubt = 0;               // what is in doubt in this one
    bool only_looks = false;
    ty_in_doubt_txn txn{}; // if it only inspects; struct_size 0: nothing is in doubt
    uint8_t description[description_max];
};

// What an open finds out on its way.
struct heap_opening {
    ty_open_options options;
    const open_validator *validator; // may be NULL
    reading_beside *beside;          // NULL: the files as they are, for any mode
    const char *heap_path;
    txn_runtime *again = nullptr; // of a heap that is open already, and goes on as this one (sharing/)
    uint64_t started_ns = os::now_ns();
    log_location location{};
    log_identity identity{};
    open_identity named{}; // by the heap's image
    log_header found{};
    io_buffer buffer; // for the log's header
    log_positions from{};
    replay_plan plan{};
    bool attached = false;
    bool recreated = false;
    bool detaches = false;
    bool dropped = false;    // the heap no longer has a log, and the one that it had was not needed
    bool makes = false;      // creates a log
    log_shape shape{};       // of the new log
    bool relaid_out = false; // the log is recreated with another number of log streams
    bool made = false;       // the log's file: of no use if the open fails
    bool receives = false;
    bool replayed = false;
    ty_outcome outcome = TY_OUTCOME_UNKNOWN; // of what was in doubt
    ty_heap *heap = nullptr;                 // set by start()
    uint64_t replay_ns = 0;

    bool read_only() const { return opens_for_reading(options.mode); }
    bool follows() const { return options.mode == TY_OPEN_FOLLOW; }
    bool threads() const { return options.background == TY_BACKGROUND_THREAD; }
    ~heap_opening() {
        plan.records.destroy();
        log_location_destroy(location);
    }
};

// ---- open.cpp

// A heap that follows is opened for writing, at its addresses, by the same handle. path: resolved. With the
// reader-writer lock held exclusively. TY_E_BUSY: another process has it, and nothing has changed.
ty_status open_again_for_writing(txn_runtime &rt, const char *path, const ty_open_options &options);

// ---- sharing/

// For what is refused while other processes share the heap.
inline ty_status others_share(ty_status refusal, const char *call, const char *image_path) {
    return failure(refusal, "%s: other processes share it", call)
        .at(image_path)
        .remedy("let them close it first; or open it with the option shared, and a limit that is no higher");
}
// With the image locked, before anything is changed: the refusal, if processes share it. Removes a log buffer that
// nobody uses.
ty_status check_not_shared(const ty_storage &storage, const char *image_path, ty_status refusal, const char *call);
// For the process that has the heap open for writing: others can join from now on. Takes over what the buffer holds, if
// some have joined a process that died.
ty_status sharing_begin_as_log_writer(const heap_opening &state, txn_runtime &rt);
// For one that follows it. TY_E_BUSY: no process that shares it writes the log. TY_E_UNSUPPORTED: the heap's limit
// would be raised.
ty_status sharing_join(const heap_opening &state, txn_runtime &rt);

// ---- in_doubt.cpp

// Before anything is changed: whether an open for writing can resolve what is at the log's end.
ty_status check_can_resolve(const heap_opening &state);
// Before a file is changed, if possible: whether an open for writing will get the outcome.
ty_status ask_for_outcome(heap_opening &state, ty_heap *heap);
// For an open for reading: applies what is in doubt in memory if it was committed.
ty_status resolve_for_reading(heap_opening &state, txn_runtime &rt);
// X28: resolves what is in doubt, durably; rolls back records that no prepared one follows.
ty_status resolve_held(heap_opening &state, txn_runtime &rt);

} // namespace taiyen
