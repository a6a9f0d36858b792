// A branch of the bank, where many tellers transfer money concurrently: each in transactions of its own on a concurrent
// heap, which conflict only if two need the same account.
//
// Every teller numbers its transfers 1, 2, 3, ... and keeps the slips of the last ones. A slip that is dropped is added
// to the opening balances: so the balances always follow from opening balances and slips.
#pragma once

#include "ledger.hpp"
#include <taiyen/concurrent.hpp>

namespace ledger {

struct slip {
    uint64_t number;
    int64_t cents;
    uint32_t from;
    uint32_t to;
    char *note; // NULL: none
};

struct alignas(64) teller { // each has its own cache lines: tellers do not conflict here
    static constexpr uint64_t slips_kept = 60;
    uint64_t done;
    slip *slips[slips_kept]; // of transfer n at n % slips_kept; NULL: none yet
};

struct branch {
    account *accounts;
    uint64_t account_count;
    int64_t total_cents;
    teller *tellers;
    uint64_t teller_count;
};

// Founds a branch as the heap's root "branch": each account has the same opening balance.
branch *found_branch(ty_heap *heap, uint64_t account_count, int64_t opening_cents, uint64_t teller_count);

// Within a body. False: the payer has too little money, and nothing is changed.
bool transfer(const taiyen::atomic_txn &txn, branch &b, teller &by, uint32_t from, uint32_t to, int64_t cents,
              std::string_view note);
int64_t sum_of_balances(const taiyen::atomic_txn &txn, const branch &b);

// Checks everything, while no teller works, and returns what is wrong; empty: nothing. *blocks: how many blocks of the
// heap the branch has.
std::string audit(const branch *b, uint64_t *blocks);

} // namespace ledger
