// A whole run: workloads shared out to worker processes, states spread over their events, failures with the command
// that replays them.
#pragma once

#include "explorer.hpp"

namespace crash {

struct run_options {
    uint64_t states = 1000;
    uint64_t seed = 1;
    unsigned jobs = 2;
    bool canary = false;
    bool faults = false;
};

tally run(const run_options &options);

// Replays one state, telling what happens. The finding of its last cut.
finding replay(const state &which, bool canary, bool faults);

const char *verdict_name(verdict what);

} // namespace crash
