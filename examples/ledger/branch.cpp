#include "branch.hpp"
#include <vector>

namespace ledger {
namespace {

using taiyen::atomic_txn;

// Adds a slip to the opening balances, and frees it.
void file_away(const atomic_txn &txn, branch &b, slip *old) {
    const slip was = txn[*old];
    txn[b.accounts[was.from].opening_cents] -= was.cents;
    txn[b.accounts[was.to].opening_cents] += was.cents;
    txn.free(was.note);
    txn.destroy(old);
}

// Until the commit a new block belongs to the transaction alone: it is filled by plain stores.
char *copy_note(const atomic_txn &txn, std::string_view note) {
    if (note.empty())
        return nullptr;
    auto *copy = static_cast<char *>(txn.alloc(note.size() + 1));
    note.copy(copy, note.size());
    return copy;
}

} // namespace

branch *found_branch(ty_heap *heap, uint64_t account_count, int64_t opening_cents, uint64_t teller_count) {
    return taiyen::heap_view(heap).atomically([&](const atomic_txn &txn) {
        auto *b = txn.make<branch>();
        b->accounts = static_cast<account *>(txn.alloc(account_count * sizeof(account)));
        b->account_count = account_count;
        b->total_cents = static_cast<int64_t>(account_count) * opening_cents;
        for (uint64_t i = 0; i < account_count; ++i)
            b->accounts[i] = {opening_cents, opening_cents};
        b->tellers = static_cast<teller *>(txn.alloc(teller_count * sizeof(teller), alignof(teller)));
        b->teller_count = teller_count;
        txn.set_root("branch", b);
        return b;
    });
}

bool transfer(const atomic_txn &txn, branch &b, teller &by, uint32_t from, uint32_t to, int64_t cents,
              std::string_view note) {
    if (txn[b.accounts[from].cents] < cents)
        return false;
    txn[b.accounts[from].cents] -= cents;
    txn[b.accounts[to].cents] += cents;
    const uint64_t number = ++txn[by.done];
    slip *&place = by.slips[number % teller::slips_kept];
    if (slip *old = txn[place])
        file_away(txn, b, old);
    txn[place] = txn.make<slip>(slip{number, cents, from, to, copy_note(txn, note)});
    return true;
}

int64_t sum_of_balances(const atomic_txn &txn, const branch &b) {
    int64_t sum = 0;
    for (uint64_t i = 0; i < b.account_count; ++i)
        sum += txn[b.accounts[i].cents];
    return sum;
}

std::string audit(const branch *b, uint64_t *blocks) {
    std::vector<int64_t> balances;
    for (uint64_t i = 0; i < b->account_count; ++i)
        balances.push_back(b->accounts[i].opening_cents);
    *blocks = 3;
    for (uint64_t t = 0; t < b->teller_count; ++t) {
        const teller &by = b->tellers[t];
        uint64_t expected = by.done < teller::slips_kept ? 1 : by.done - teller::slips_kept + 1;
        for (; expected <= by.done; ++expected) {
            const slip *one = by.slips[expected % teller::slips_kept];
            if (one == nullptr || one->number != expected)
                return "teller " + std::to_string(t) + " has no slip of transfer " + std::to_string(expected);
            if (one->from >= b->account_count || one->to >= b->account_count || one->cents < 0)
                return "the slip of transfer " + std::to_string(expected) + " is damaged";
            balances[one->from] -= one->cents;
            balances[one->to] += one->cents;
            *blocks += one->note == nullptr ? 1 : 2;
        }
    }
    int64_t sum = 0;
    for (uint64_t i = 0; i < b->account_count; ++i) {
        sum += b->accounts[i].cents;
        if (b->accounts[i].cents < 0 || balances[i] != b->accounts[i].cents)
            return "account " + std::to_string(i) + " has " + std::to_string(b->accounts[i].cents) +
                   " cents, its slips say " + std::to_string(balances[i]);
    }
    if (sum != b->total_cents)
        return "there are " + std::to_string(sum) + " cents in all, not " + std::to_string(b->total_cents);
    return {};
}

} // namespace ledger
