// The proof: a worker is killed at a random moment, and the state opened again. It is one that was acknowledged, or the
// one that was about to be; all that can be known of it is held against its number; lines are undone and done again.
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
    unsigned under_way = 0; // killed within a script, which goes on
    uint64_t acknowledged = 0;
    uint64_t counted = 0;
    uint64_t walked = 0;     // lines undone and done again by the proofs
    uint64_t code_words = 0; // addresses of code that were repointed, by the proofs
};

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress);

} // namespace lua
