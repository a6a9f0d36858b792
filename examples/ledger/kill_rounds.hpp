// The proof: a worker is killed at a random moment, the bank, or the branch, opened again, and audited.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ledger {

struct kill_plan {
    std::string heap_path;
    unsigned rounds;
    unsigned threads;
    uint64_t seed;
    bool branch; // tellers of a branch, in place of clerks of the bank
};

struct kill_result {
    unsigned rounds = 0;
    unsigned proven = 0;
    uint64_t acknowledged = 0; // orders posted or settled, or transfers, as the workers told
    uint64_t posted = 0;       // in the bank in the end
    uint64_t settled = 0;
    uint64_t refused = 0;
    uint64_t transfers = 0;   // of all tellers of the branch
    uint64_t replayed = 0;    // transactions, from the log, in all opens
    unsigned with_replay = 0; // opens that found any
    std::vector<double> open_ms;
    std::string failure; // what was not proven; empty: nothing
};

// Stops at the first round that is not proven; the files then stay as they are. Calls `progress` after each round.
kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress);

} // namespace ledger
