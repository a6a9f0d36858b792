// The proof: a worker is killed at a random moment, the bank, or the branch, opened again, and audited.
#pragma once

#include "killing.hpp"

namespace ledger {

struct kill_plan {
    std::string heap_path;
    unsigned rounds;
    unsigned threads;
    uint64_t seed;
    bool branch; // tellers of a branch, in place of clerks of the bank
};

struct kill_result : demo::kill_count {
    uint64_t acknowledged = 0; // orders posted or settled, or transfers, as the workers reported
    uint64_t posted = 0;       // in the bank in the end
    uint64_t settled = 0;
    uint64_t refused = 0;
    uint64_t transfers = 0;   // of all tellers of the branch
    uint64_t replayed = 0;    // transactions, from the log, in all opens
    unsigned with_replay = 0; // opens that replayed any
};

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress);

} // namespace ledger
