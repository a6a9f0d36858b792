// The proof by killing: the shop's processes work, and are killed again and again.
#pragma once

#include "roles.hpp"
#include <functional>

namespace orders {

struct kill_plan {
    shop_paths paths;
    std::string database;
    std::string where;
    unsigned rounds = 30;      // kills of each process that is to be killed
    unsigned check_every = 20; // kills
    uint64_t seed = 1;
    bool is_apart = false; // without distributed transactions: the proof must fail
    int only = -1;         // the role that is killed; -1: each of them in turn
};

struct kill_result {
    unsigned kills = 0;
    unsigned proofs = 0;
    uint64_t acknowledged = 0; // orders
    uint64_t done = 0;
    uint64_t resolved = 0; // distributed transactions that a worker found in doubt
    std::string failure;   // empty: all is proven
};

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress);

} // namespace orders
