// Power cuts: takes a trace, cuts the power at an event, recovers, and holds what is found against what must be there.
// The recovery leaves a trace of its own, in which the power can be cut again.
#pragma once

#include "session.hpp"

#include <optional>

namespace crash {

inline constexpr uint64_t cut_kinds = 6;

struct cut {
    uint64_t event;
    taiyen::os::sim_cut how;
    uint64_t seed;
};

// A state of the disk: a workload, and the cuts that follow each other. As text: "WORKLOAD:EVENT:HOW:SEED/EVENT:...".
struct state {
    uint64_t workload = 0;
    std::vector<cut> cuts;

    std::string text() const;
    static std::optional<state> parse(const std::string &text);
};

// What is broken on purpose: a promise of the storage, so that the explorer must find losses, or the history of undo
// that a recovery finds, which it must find inconsistent, or all files are older ones.
enum class canary { none, flush, durable_write, undo_history, older_files };

// What differs with the kind of heap under test.
struct mode {
    const char *name;
    canary canaries[3];
    size_t canary_count;
    finding (*workload)(uint64_t seed, trace &on);         // sound unless the library fails without any cut
    finding (*faulted_workload)(uint64_t seed, trace &on); // see faults.hpp
    // On the disk that a cut left: opens, goes on using the heap, closes it and opens it again.
    finding (*recover)(const trace &from, const cut &at, trace &recovery);
    bool threads = false; // several at once: the same seed gives other events in each run
};
extern const mode snapshot_mode;
extern const mode transactional_mode;
extern const mode archive_mode;
extern const mode concurrent_mode;

// Cuts and recovers. `recovery` becomes the trace of all that.
finding explore(const mode &of, const trace &from, const cut &at, trace &recovery, canary broken = canary::none);

// What the states of a run were and found.
struct tally {
    static constexpr size_t phases = static_cast<size_t>(phase::count);
    uint64_t states = 0;
    uint64_t first[phases] = {}; // by the phase in which the power failed
    uint64_t again[phases] = {}; // the same, during a recovery from an earlier cut
    uint64_t lost = 0;
    uint64_t inconsistent = 0;
    uint64_t refused = 0;

    uint64_t failed() const { return lost + inconsistent + refused; }
    void count(phase in, bool second, const finding &found);
    void add(const tally &other);
};

} // namespace crash
