// A shop in four heaps: the counter, where orders are taken; the queue of waiting orders; the shop itself, with stock
// and customers; and the depot, which sends parcels. Orders go from the counter to the queue, and parcels from the shop
// to the depot, as messages (taiyen/outbox.h). An order leaves the queue, and changes the shop and a database's
// invoices, in one distributed transaction (taiyen/distributed.h).
#pragma once

#include "database.hpp"
#include <string>
#include <string_view>
#include <taiyen/distributed.h>
#include <taiyen/outbox.h>
#include <taiyen/taiyen.h>

namespace orders {

inline constexpr const char *orders_box = "orders";   // the counter's outbox
inline constexpr const char *parcels_box = "parcels"; // the shop's

struct counter {
    uint64_t taken; // orders, which have the numbers of their messages
};

// What a customer wants, as a message; the note follows.
struct wish {
    uint32_t customer;
    uint32_t product;
    uint32_t count;
    uint32_t note_bytes;
};

struct order {
    order *next;
    uint64_t number;
    wish what;
    char *note; // NULL: none
};
struct queue {
    order *first;
    order *last;
    uint64_t received; // the last number
    uint64_t done;
};

struct product {
    int64_t cents;
    int64_t stock;
    int64_t sold;
};
struct purchase {
    purchase *before;
    uint64_t number;
    uint32_t product;
    uint32_t count;
    int64_t cents;
};
struct customer {
    int64_t cents;
    purchase *last;
};
struct shop {
    product *products;
    customer **customers;
    uint64_t product_count;
    uint64_t customer_count;
    uint64_t done; // orders
    uint64_t refused;
    int64_t earned_cents;
};

struct parcel {
    uint64_t number;
    uint32_t product;
    uint32_t count; // 0: the order was refused
};
struct depot {
    uint64_t parcels;
    uint64_t product_count;
    int64_t sent[1]; // of each product
};

// The contents of a new shop.
inline constexpr int64_t opening_cents = 100000000000; // each customer
constexpr int64_t opening_stock(uint64_t product) {
    return product % 10 == 0 ? 50 : 1000000000; // some are scarce: their orders will be refused
}

struct shop_paths {
    std::string folder;
    std::string heap(const char *name) const { return folder + "/" + name + ".ty"; }
};
void found_heaps(const shop_paths &paths);

// The object at a root of the heap. Throws if there is none.
template <class T>
T *root_object(ty_heap *heap, const char *root);

// Each of these is a part of the caller's transactions, and throws if it fails.

// Puts a message into the counter's outbox. False: that is full.
bool take_order(ty_txn *txn, counter *at, const wish &what, std::string_view note);
// From the message to the end of the queue.
void queue_order(ty_txn *txn, queue *to, uint64_t number, const void *message, size_t bytes);
// The queue's first order is done or refused, and the depot gets a message. False: the shop's outbox is full, and
// nothing is changed.
bool do_order(ty_txn *queue_txn, queue *from, ty_txn *shop_txn, shop *in, invoice &made);
void send_parcel(ty_txn *txn, depot *from, const void *message, size_t bytes);

} // namespace orders
