// A whole run: workloads shared out to worker processes, states spread over their events, failures with the command
// that replays them.
#pragma once

#include "explorer.hpp"

namespace crash {

struct run_options {
    uint64_t states = 1000;
    uint64_t seed = 1;
    unsigned jobs = 2;
    const mode *what = &snapshot_mode;
    canary broken = canary::none;
    bool faults = false;
};

tally run(const run_options &options);

// Replays one state, printing what happens. The finding of its last cut.
finding replay(const state &which, const run_options &options);

const char *verdict_name(verdict what);
const char *canary_name(canary broken);

} // namespace crash
