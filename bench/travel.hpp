// A travel agency, after the published description of STAMP's vacation: clients reserve cars, rooms and flights for
// customers, customers are removed, and the offers change. The four tables are ordered: skip lists, whose rows are
// found, added and removed in the transaction itself.
//
// The same code runs in the transactions of all subjects. What they load, store, allocate and release goes through a
// Transaction, which has:
//     uint64_t load(const uint64_t *word)      0 when the transaction is lost
//     void store(uint64_t *word, uint64_t value)
//     void store_new(uint64_t *word, uint64_t value)   to a block that this transaction has allocated
//     uint64_t *allocate(size_t words)         nullptr when the transaction is lost
//     void release(uint64_t *block)
// A lost transaction loads zeros, so every walk along pointers ends.
#pragma once

#include "oltp_store.hpp"

#include <cstdlib>

namespace bench {

enum travel_table { cars, rooms, flights, customers, travel_tables };
constexpr size_t offer_tables = customers;
constexpr size_t travel_most_items = 4;

enum class travel_action { found_agency, add_customer, reserve, remove_customer, change_offers };

// A client's request: drawn before the transaction, so that a retry does the same.
struct travel_request {
    travel_action action;
    uint64_t customer;
    size_t count;
    struct item {
        uint64_t table, key;
        uint64_t price; // change_offers: 0 removes units, else adds units, at this price
    } items[travel_most_items];
};

// A row has a key, three fields, and then the next row on each level that the row is on.
struct travel_row {
    static constexpr size_t levels = 20;
    static constexpr size_t key = 0, total = 1, used = 2, price = 3, next = 4;
    static constexpr size_t reservations = 1; // customer: the first one
};
// A reservation in a customer's list.
struct travel_reservation {
    static constexpr size_t next = 0, table = 1, key = 2, price = 3, words = 4;
};
constexpr uint64_t units_a_change = 100;

// A Transaction of subjects whose loads and stores are the language's own.
struct plain_memory {
    TAIYEN_BENCH_IN_TRANSACTION uint64_t load(const uint64_t *word) { return *word; }
    TAIYEN_BENCH_IN_TRANSACTION void store(uint64_t *word, uint64_t value) { *word = value; }
    TAIYEN_BENCH_IN_TRANSACTION void store_new(uint64_t *word, uint64_t value) { *word = value; }
    TAIYEN_BENCH_IN_TRANSACTION uint64_t *allocate(size_t words) {
        return static_cast<uint64_t *>(std::malloc(words * sizeof(uint64_t)));
    }
    TAIYEN_BENCH_IN_TRANSACTION void release(uint64_t *block) { std::free(block); }
};

template <typename Transaction>
class travel_agency {
public:
    // first_rows: for each table a row before all others; made by found_agency.
    TAIYEN_BENCH_IN_TRANSACTION travel_agency(Transaction &transaction, uint64_t *first_rows)
        : transaction_(transaction), first_rows_(first_rows) {}

    // Returns by how many the number of reservations has changed.
    TAIYEN_BENCH_IN_TRANSACTION int64_t serve(const travel_request &request) {
        switch (request.action) {
        case travel_action::found_agency:
            found();
            return 0;
        case travel_action::add_customer:
            insert(customers, request.customer);
            return 0;
        case travel_action::reserve:
            return reserve(request);
        case travel_action::remove_customer:
            return -remove_customer(request.customer);
        case travel_action::change_offers:
            for (size_t at = 0; at < request.count; at++)
                change_offer(request.items[at]);
            return 0;
        }
        return 0;
    }

private:
    struct path {
        uint64_t *before[travel_row::levels]; // on each level, the last row with a lower key
    };

    TAIYEN_BENCH_IN_TRANSACTION static uint64_t *pointer(uint64_t word) { return reinterpret_cast<uint64_t *>(word); }
    TAIYEN_BENCH_IN_TRANSACTION static uint64_t word(uint64_t *pointer) { return reinterpret_cast<uint64_t>(pointer); }

    TAIYEN_BENCH_IN_TRANSACTION uint64_t *next_of(uint64_t *row, size_t level) {
        return pointer(transaction_.load(row + travel_row::next + level));
    }

    // The row with this key, or nullptr.
    TAIYEN_BENCH_IN_TRANSACTION uint64_t *find(uint64_t table, uint64_t key, path *found = nullptr) {
        uint64_t *at = pointer(transaction_.load(first_rows_ + table)), *next = nullptr;
        for (size_t level = travel_row::levels; at && level-- > 0;) {
            for (next = next_of(at, level); next && transaction_.load(next + travel_row::key) < key;
                 next = next_of(at, level))
                at = next;
            if (found)
                found->before[level] = at;
        }
        return next && transaction_.load(next + travel_row::key) == key ? next : nullptr;
    }

    // A row's number of levels: half of the rows have two, a quarter three, and so on, by their keys.
    TAIYEN_BENCH_IN_TRANSACTION static size_t height_of(uint64_t key) {
        uint64_t mixed = (key + 1) * 0x9e3779b97f4a7c15u;
        mixed ^= mixed >> 32;
        size_t height = 1;
        for (; height < travel_row::levels && mixed % 2 == 1; mixed /= 2)
            height++;
        return height;
    }

    TAIYEN_BENCH_IN_TRANSACTION uint64_t *insert(uint64_t table, uint64_t key) {
        path way;
        uint64_t *found = find(table, key, &way);
        if (found)
            return found;
        size_t height = height_of(key);
        uint64_t *made = transaction_.allocate(travel_row::next + height);
        if (!made)
            return nullptr;
        transaction_.store_new(made + travel_row::key, key);
        for (size_t field = travel_row::total; field <= travel_row::price; field++)
            transaction_.store_new(made + field, 0);
        for (size_t level = 0; level < height; level++) {
            uint64_t *link = way.before[level] + travel_row::next + level;
            transaction_.store_new(made + travel_row::next + level, transaction_.load(link));
            transaction_.store(link, word(made));
        }
        return made;
    }

    TAIYEN_BENCH_IN_TRANSACTION void remove(uint64_t table, uint64_t key) {
        path way;
        uint64_t *found = find(table, key, &way);
        if (!found)
            return;
        for (size_t level = 0, height = height_of(key); level < height; level++)
            transaction_.store(way.before[level] + travel_row::next + level, word(next_of(found, level)));
        transaction_.release(found);
    }

    TAIYEN_BENCH_IN_TRANSACTION void found() {
        for (size_t table = 0; table < travel_tables; table++) {
            uint64_t *made = transaction_.allocate(travel_row::next + travel_row::levels);
            if (!made)
                return;
            for (size_t at = 0; at < travel_row::next + travel_row::levels; at++)
                transaction_.store_new(made + at, 0);
            transaction_.store(first_rows_ + table, word(made));
        }
    }

    TAIYEN_BENCH_IN_TRANSACTION bool is_free(uint64_t *row) {
        return transaction_.load(row + travel_row::used) < transaction_.load(row + travel_row::total);
    }

    // Checks all items, and reserves the most expensive one of each table.
    TAIYEN_BENCH_IN_TRANSACTION int64_t reserve(const travel_request &request) {
        uint64_t *best[offer_tables] = {};
        uint64_t prices[offer_tables] = {};
        for (size_t at = 0; at < request.count; at++) {
            const travel_request::item &item = request.items[at];
            uint64_t *row = find(item.table, item.key);
            if (!row || !is_free(row))
                continue;
            uint64_t price = transaction_.load(row + travel_row::price);
            if (price > prices[item.table]) {
                best[item.table] = row;
                prices[item.table] = price;
            }
        }
        return reserve_rows(request.customer, best, prices);
    }

    TAIYEN_BENCH_IN_TRANSACTION int64_t reserve_rows(uint64_t key, uint64_t *const *rows, const uint64_t *prices) {
        if (!rows[cars] && !rows[rooms] && !rows[flights])
            return 0;
        uint64_t *customer = insert(customers, key);
        if (!customer)
            return 0;
        int64_t count = 0;
        uint64_t first = transaction_.load(customer + travel_row::reservations);
        for (uint64_t table = 0; table < offer_tables; table++) {
            if (!rows[table])
                continue;
            uint64_t *made = transaction_.allocate(travel_reservation::words);
            if (!made)
                return 0;
            transaction_.store_new(made + travel_reservation::next, first);
            transaction_.store_new(made + travel_reservation::table, table);
            transaction_.store_new(made + travel_reservation::key, transaction_.load(rows[table] + travel_row::key));
            transaction_.store_new(made + travel_reservation::price, prices[table]);
            first = word(made);
            add_used(rows[table], 1);
            count++;
        }
        transaction_.store(customer + travel_row::reservations, first);
        return count;
    }

    TAIYEN_BENCH_IN_TRANSACTION void add_used(uint64_t *row, uint64_t more) {
        transaction_.store(row + travel_row::used, transaction_.load(row + travel_row::used) + more);
    }

    // Returns how many reservations the customer had.
    TAIYEN_BENCH_IN_TRANSACTION int64_t remove_customer(uint64_t key) {
        uint64_t *customer = find(customers, key);
        if (!customer)
            return 0;
        int64_t count = 0;
        for (uint64_t *at = pointer(transaction_.load(customer + travel_row::reservations)); at; count++) {
            uint64_t *row = find(transaction_.load(at + travel_reservation::table),
                                 transaction_.load(at + travel_reservation::key));
            if (!row)
                break; // lost: what is reserved is not removed from the offers
            add_used(row, uint64_t{0} - 1);
            uint64_t *next = pointer(transaction_.load(at + travel_reservation::next));
            transaction_.release(at);
            at = next;
        }
        remove(customers, key);
        return count;
    }

    TAIYEN_BENCH_IN_TRANSACTION void change_offer(const travel_request::item &item) {
        if (item.price > 0) {
            uint64_t *row = insert(item.table, item.key);
            if (!row)
                return;
            transaction_.store(row + travel_row::total, transaction_.load(row + travel_row::total) + units_a_change);
            transaction_.store(row + travel_row::price, item.price);
            return;
        }
        uint64_t *row = find(item.table, item.key);
        if (!row)
            return;
        uint64_t total = transaction_.load(row + travel_row::total);
        if (total - transaction_.load(row + travel_row::used) < units_a_change || total < units_a_change)
            return;
        if (total == units_a_change)
            remove(item.table, item.key); // none of them is reserved
        else
            transaction_.store(row + travel_row::total, total - units_a_change);
    }

    Transaction &transaction_;
    uint64_t *first_rows_;
};

// Counts the reservations of all customers, while no transaction runs. Throws if they differ from the used units of the
// offers, or if a table is not in order.
uint64_t count_reservations(const uint64_t *first_rows);

} // namespace bench
