// A bank and its message queue as plain structs and pointers in one transactional heap. Every function that changes
// something takes the transaction it belongs to.
//
// An *order* asks for a transfer. It is posted to the end of the queue; later it is taken from the front, settled, and
// a *receipt* is written: in one transaction, so an order is neither lost nor done twice. Orders are numbered 1, 2, 3,
// ... as they are posted, and the queue is served in that order: orders 1 to `settled` are settled, and the rest up to
// `posted` wait. Old receipts are archived: added to the opening balances, and freed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <taiyen/taiyen.h>

namespace ledger {

struct account {
    int64_t opening_cents; // with all archived receipts
    int64_t cents;
};

struct order {
    order *next;
    uint64_t number;
    int64_t cents;
    uint32_t from;
    uint32_t to;
    char *note; // NULL: none
};

struct receipt {
    receipt *next;
    uint64_t number;
    int64_t cents; // 0: refused, for lack of money
    uint32_t from;
    uint32_t to;
    char *note;
};

struct bank {
    account *accounts;
    uint64_t account_count;
    int64_t total_cents;
    order *first_order;
    order *last_order;
    uint64_t posted;
    receipt *first_receipt;
    receipt *last_receipt;
    uint64_t settled;
    uint64_t archived; // receipts of the orders 1 to `archived` were freed
    uint64_t refused;
};

// Founds a bank as the heap's root "bank": each account has the same opening balance.
bank *found(ty_heap *heap, uint64_t account_count, int64_t opening_cents);

// Returns the order's number.
uint64_t post(ty_txn *txn, bank *b, uint32_t from, uint32_t to, int64_t cents, std::string_view note);

enum class settlement { done, no_money, nothing_to_do };
// Takes the first order and settles it. no_money: the payer's balance is too small, and the transaction, in which the
// order is taken and the payer debited already, must be rolled back.
settlement settle(ty_txn *txn, bank *b);
// Takes the first order and writes a receipt that refuses it.
void refuse(ty_txn *txn, bank *b);

// Archives the oldest `count` receipts.
void archive(ty_txn *txn, bank *b, uint64_t count);

// Checks everything and returns what is wrong; empty: nothing. *blocks: how many blocks of the heap the bank has.
std::string audit(const bank *b, uint64_t *blocks);
int64_t sum_of_balances(const bank *b);

} // namespace ledger
