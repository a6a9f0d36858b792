// The proof: a worker is killed at a random moment, and the state opened again. It must be one that was acknowledged,
// or the one that was about to be; all that follows from its number is checked; lines are undone and redone.
#pragma once

#include "worker.hpp"

namespace lua {

struct kill_plan {
    std::string path;
    unsigned rounds;
    uint64_t seed;
};

struct kill_result : demo::kill_count {
    unsigned during_snapshot = 0;
    unsigned under_way = 0; // killed within a script, which continues
    uint64_t acknowledged = 0;
    uint64_t counted = 0;
    uint64_t walked = 0;     // lines undone and redone by the proofs
    uint64_t code_words = 0; // addresses of code that were repointed, by the proofs
};

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress);

} // namespace lua
