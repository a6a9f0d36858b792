// The proof: a writer is killed at a random moment, the atlas opened again, and its content compared with what was
// acknowledged to the writer as durable.
#pragma once

#include "killing.hpp"
#include "survey.hpp"
#include <array>

namespace demo {

struct kill_plan {
    std::string heap_path;
    unsigned rounds;
    uint64_t seed;
};

struct kill_result : kill_count {
    unsigned during_snapshot = 0;    // kills between "about to" and "acknowledged"
    unsigned found_new = 0;          // of these: the snapshot in progress turned out to be durable
    uint64_t acknowledged = 0;       // snapshots, in all rounds
    std::array<unsigned, 6> found{}; // by ty_recovery_state: the state in which the files were
    std::vector<double> pause_ms;    // of the writers' snapshots
    std::vector<double> kilobytes;   // written by them
};

// `content` is the content of the last snapshot now.
kill_result run_kill_rounds(const kill_plan &plan, fingerprint content,
                            const std::function<void(const kill_result &)> &progress);

} // namespace demo
