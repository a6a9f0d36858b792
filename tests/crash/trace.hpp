// What a run on a simulated disk leaves behind: the disk with its events, what was acknowledged when, and which events
// belong to which phase. From it follows what a heap may hold after a power cut at any event.
#pragma once

#include "tests/simulated_disk/storage_sim.hpp"
#include "undo_model.hpp"

#include <memory>
#include <string>
#include <vector>

namespace crash {

inline constexpr const char *heap_path = "/disk/heap.ty";

enum class phase {
    create,
    attach,
    detach,
    raise,
    open,
    restore,
    archive,
    snapshot,
    write_back_early,
    apply,
    commit,
    durable, // ty_durable
    close,
    count
};
const char *phase_name(phase what);

// A state of the heap's content that may be found again: from `started` on it may be durable, from `acknowledged` on it
// must be, unless a later point is.
struct point {
    static constexpr uint64_t never = UINT64_MAX;
    bool exists = true; // false: there is no heap yet
    content what;
    uint64_t started = 0; // the number of events when the call that commits it began
    uint64_t acknowledged = never;
    uint64_t epoch = 0; // 0: not known
    uint64_t lsn = 0;   // of the last transaction, where the heap is transactional; 0: not known
    undo_model undo = {};
    bool inherited = false; // it was possible before the first event
};

// The events (first, last] of one call.
struct call {
    phase what;
    uint64_t first;
    uint64_t last;
};

struct disk_delete {
    void operator()(taiyen::os::sim_disk *disk) const { taiyen::os::sim_destroy(disk); }
};
using disk_owner = std::unique_ptr<taiyen::os::sim_disk, disk_delete>;

// What was done to a file before the open that recovers (lost_files.hpp).
struct loss {
    const char *how = nullptr; // NULL: nothing
    const char *name = nullptr;
    bool older = false; // the content may be an older one
    bool anew = false;  // the heap may be made anew
    bool ended = false; // it was refused, or is another heap now: nothing more is explored from there
};

struct trace {
    disk_owner disk;
    loss lost;
    uint64_t first_event = 0;  // the first of this trace; those before are of the process that died
    std::vector<point> points; // in order of `started`
    std::vector<call> calls;
    std::vector<call> unsafe; // while an archive heap was open: a cut may leave a mixture
    bool mixture = false;     // there was one from the beginning
    undo_choice undo;
    std::shared_ptr<class commit_history> commits = {}; // of threads at once (concurrent_mode.cpp), in place of points

    uint64_t events() const { return taiyen::os::sim_event_count(disk.get()); }
    phase phase_at(uint64_t event) const;
    bool unsafe_at(uint64_t event) const;
    // The points that may be found after a cut just before the event: [first, last].
    struct range {
        size_t first;
        size_t last;
    };
    range possible_at(uint64_t event) const;
    // What may be found in `from` after a cut there may still be found in this one, from its beginning on.
    void inherit(const trace &from, uint64_t event);
    // Everything up to the point is acknowledged now.
    void acknowledge(size_t index);
};

} // namespace crash
