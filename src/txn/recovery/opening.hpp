// What an open knows of itself, shared by open.cpp and in_doubt.cpp.
#pragma once

#include "open_steps.hpp"

namespace taiyen {

// Files that a writer has open are opened as copies; or somebody looks at what is in doubt, and resolves nothing.
struct reading_beside {
    const ty_storage *storage = nullptr; // of the files that were copied
    uint64_t earlier = 0;                // what was in doubt in an earlier copy; 0: there was none
    uint64_t in_doubt = 0;               // what is in this one
    bool only_looks = false;
    ty_in_doubt_txn txn{}; // where it only looks; struct_size 0: nothing is in doubt
    uint8_t description[description_max];
};

// What an open learns on its way.
struct opening {
    ty_open_options options;
    const in_doubt_resolver *resolver;
    const open_judge *judge; // may be NULL
    reading_beside *beside;  // NULL: the files as they are, for whatever they are opened for
    const char *heap_path;
    uint64_t started_ns = os::now_ns();
    log_place place{};
    log_identity identity{};
    log_open_2 named{}; // by the heap's image
    log_header_2 found{};
    io_buffer buffer; // for the log's header
    log_marks from{};
    replay_plan plan{};
    bool attached = false;
    bool recreated = false;
    bool detaches = false;
    bool dropped = false;  // the heap has no log any more, and the one that it had was not needed
    bool makes = false;    // a log
    log_shape shape{};     // of the one that it makes
    bool reshaped = false; // the log is made anew with other log streams
    bool made = false;     // its file: of no use if the open fails
    bool receives = false;
    bool replayed = false;
    ty_outcome outcome = TY_OUTCOME_UNKNOWN; // of what was in doubt
    ty_heap *heap = nullptr;                 // from start on
    uint64_t replay_ns = 0;

    bool read_only() const { return opens_for_reading(options.mode); }
    bool threads() const { return options.background == TY_BACKGROUND_THREAD; }
    ~opening() {
        plan.records.destroy();
        place_destroy(place);
    }
};

// ---- in_doubt.cpp

// Before anything is changed: whether an open for writing can resolve what the log's end holds.
ty_status check_can_resolve(const opening &state);
// Before a file is changed, where that can be: whether an open for writing will be told.
ty_status ask_whether_told(opening &state, ty_heap *heap);
// Of an open for reading: what is in doubt is done in memory if it was committed.
ty_status resolve_for_reading(opening &state, txn_runtime &rt);
// X28: what is in doubt is resolved, durably; records that no prepared one follows are rolled back.
ty_status resolve_held(opening &state, txn_runtime &rt);

} // namespace taiyen
