#include "ledger.hpp"
#include "heap_file.hpp"
#include <vector>

namespace ledger {
namespace {

using demo::check;
using demo::failure;

// Declares an object that will be written, and returns it.
template <class T>
T &writing(ty_txn *txn, T &object) {
    check(ty_declare(txn, &object, sizeof object));
    return object;
}

// Blocks of this transaction need not be declared.
void *allocate(ty_txn *txn, size_t bytes) {
    void *block = ty_txn_alloc(txn, bytes);
    if (block == nullptr)
        throw failure(ty_error_text());
    return block;
}

template <class T>
T *make(ty_txn *txn) {
    return static_cast<T *>(allocate(txn, sizeof(T)));
}

order *take_first(ty_txn *txn, bank *b) {
    order *taken = b->first_order;
    writing(txn, b->first_order) = taken->next;
    if (taken->next == nullptr)
        writing(txn, b->last_order) = nullptr;
    writing(txn, b->settled) = taken->number;
    return taken;
}

// The receipt takes over the order's note.
void write_receipt(ty_txn *txn, bank *b, order *done, int64_t cents) {
    auto *slip = make<receipt>(txn);
    *slip = {nullptr, done->number, cents, done->from, done->to, done->note};
    if (b->last_receipt != nullptr)
        writing(txn, b->last_receipt->next) = slip;
    else
        writing(txn, b->first_receipt) = slip;
    writing(txn, b->last_receipt) = slip;
    check(ty_txn_free(txn, done));
}

} // namespace

bank *found(ty_heap *heap, uint64_t account_count, int64_t opening_cents) {
    ty_txn *txn = nullptr;
    check(ty_begin(heap, nullptr, &txn));
    auto *b = make<bank>(txn);
    b->accounts = static_cast<account *>(allocate(txn, account_count * sizeof(account)));
    b->account_count = account_count;
    b->total_cents = static_cast<int64_t>(account_count) * opening_cents;
    for (uint64_t i = 0; i < account_count; ++i)
        b->accounts[i] = {opening_cents, opening_cents};
    check(ty_txn_root_set(txn, "bank", b));
    check(ty_commit(txn));
    return b;
}

uint64_t post(ty_txn *txn, bank *b, uint32_t from, uint32_t to, int64_t cents, std::string_view note) {
    auto *wish = make<order>(txn);
    *wish = {nullptr, b->posted + 1, cents, from, to, nullptr};
    if (!note.empty()) {
        wish->note = static_cast<char *>(allocate(txn, note.size() + 1));
        note.copy(wish->note, note.size());
    }
    if (b->last_order != nullptr)
        writing(txn, b->last_order->next) = wish;
    else
        writing(txn, b->first_order) = wish;
    writing(txn, b->last_order) = wish;
    return writing(txn, b->posted) = wish->number;
}

settlement settle(ty_txn *txn, bank *b) {
    if (b->first_order == nullptr)
        return settlement::nothing_to_do;
    order *wish = take_first(txn, b);
    account &payer = writing(txn, b->accounts[wish->from]);
    payer.cents -= wish->cents;
    if (payer.cents < 0)
        return settlement::no_money;
    writing(txn, b->accounts[wish->to]).cents += wish->cents;
    write_receipt(txn, b, wish, wish->cents);
    return settlement::done;
}

void refuse(ty_txn *txn, bank *b) {
    write_receipt(txn, b, take_first(txn, b), 0);
    ++writing(txn, b->refused);
}

void archive(ty_txn *txn, bank *b, uint64_t count) {
    for (; count > 0 && b->first_receipt != nullptr; --count) {
        receipt *old = b->first_receipt;
        writing(txn, b->accounts[old->from]).opening_cents -= old->cents;
        writing(txn, b->accounts[old->to]).opening_cents += old->cents;
        writing(txn, b->archived) = old->number;
        writing(txn, b->first_receipt) = old->next;
        if (old->next == nullptr)
            writing(txn, b->last_receipt) = nullptr;
        check(ty_txn_free(txn, old->note));
        check(ty_txn_free(txn, old));
    }
}

int64_t sum_of_balances(const bank *b) {
    int64_t sum = 0;
    for (uint64_t i = 0; i < b->account_count; ++i)
        sum += b->accounts[i].cents;
    return sum;
}

std::string audit(const bank *b, uint64_t *blocks) {
    std::vector<int64_t> balances;
    for (uint64_t i = 0; i < b->account_count; ++i)
        balances.push_back(b->accounts[i].opening_cents);
    *blocks = 2;

    uint64_t number = b->archived;
    const receipt *last_receipt = nullptr;
    for (const receipt *slip = b->first_receipt; slip != nullptr; slip = slip->next) {
        if (slip->number != ++number)
            return "there is a receipt for order " + std::to_string(slip->number) + " where that for " +
                   std::to_string(number) + " should be";
        if (slip->from >= b->account_count || slip->to >= b->account_count || slip->cents < 0)
            return "the receipt of order " + std::to_string(number) + " is damaged";
        balances[slip->from] -= slip->cents;
        balances[slip->to] += slip->cents;
        if (balances[slip->from] < 0)
            return "account " + std::to_string(slip->from) + " was overdrawn by order " + std::to_string(number);
        *blocks += slip->note == nullptr ? 1 : 2;
        last_receipt = slip;
    }
    if (number != b->settled || last_receipt != b->last_receipt)
        return "the receipts end at " + std::to_string(number) + ", but orders up to " + std::to_string(b->settled) +
               " are settled";

    const order *last_order = nullptr;
    for (const order *wish = b->first_order; wish != nullptr; wish = wish->next) {
        if (wish->number != ++number)
            return "order " + std::to_string(wish->number) + " is in the queue where " + std::to_string(number) +
                   " should be";
        *blocks += wish->note == nullptr ? 1 : 2;
        last_order = wish;
    }
    if (number != b->posted || last_order != b->last_order)
        return "the queue ends at " + std::to_string(number) + ", but orders up to " + std::to_string(b->posted) +
               " are posted";

    int64_t sum = 0;
    for (uint64_t i = 0; i < b->account_count; ++i) {
        sum += b->accounts[i].cents;
        if (balances[i] != b->accounts[i].cents)
            return "account " + std::to_string(i) + " has " + std::to_string(b->accounts[i].cents) +
                   " cents, its receipts say " + std::to_string(balances[i]);
    }
    if (sum != b->total_cents)
        return "there are " + std::to_string(sum) + " cents in all, not " + std::to_string(b->total_cents);
    return {};
}

} // namespace ledger
