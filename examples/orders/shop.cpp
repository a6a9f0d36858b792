#include "shop.hpp"
#include "heap_file.hpp"
#include <cstring>

namespace orders {
namespace {

using demo::check;
using demo::failure;

constexpr uint64_t products = 100;
constexpr uint64_t customers = 500;
constexpr size_t outbox_bytes = 16384; // a few hundred messages: then a thread that puts more waits

template <class T>
T &writing(ty_txn *txn, T &object) {
    check(ty_declare(txn, &object, sizeof object));
    return object;
}

template <class T>
T *make(ty_txn *txn, size_t count = 1) {
    void *block = ty_txn_alloc(txn, count * sizeof(T));
    if (block == nullptr)
        throw failure(ty_error_text());
    return static_cast<T *>(block);
}

// A new heap, with what `fill` makes in it at the root `name`.
template <class Fill>
void found(const shop_paths &paths, const char *name, Fill &&fill) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_CREATE_NEW;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = size_t{256} << 20;
    options.log_bytes = size_t{4} << 20; // small, so that it wraps often and snapshots are taken by themselves
    demo::heap_file heap(paths.heap(name), options);
    ty_txn *txn = nullptr;
    check(ty_begin(heap.get(), nullptr, &txn));
    check(ty_txn_root_set(txn, name, fill(txn)));
    check(ty_commit(txn));
    heap.close();
}

shop *make_shop(ty_txn *txn) {
    auto *made = make<shop>(txn);
    made->product_count = products;
    made->customer_count = customers;
    made->products = make<product>(txn, products);
    for (uint64_t i = 0; i < products; ++i)
        made->products[i] = {static_cast<int64_t>(100 + i * 37), opening_stock(i), 0};
    made->customers = make<customer *>(txn, customers);
    for (uint64_t i = 0; i < customers; ++i) {
        made->customers[i] = make<customer>(txn);
        made->customers[i]->cents = opening_cents;
    }
    return made;
}

// False: the outbox is full.
bool put(ty_txn *txn, const char *box, const void *message, size_t bytes, uint64_t *number) {
    const ty_status status = ty_outbox_put(txn, box, message, bytes, number);
    if (status != TY_E_SPACE)
        check(status);
    return status == TY_OK;
}

order *take_first(ty_txn *txn, queue *from) {
    order *first = from->first;
    writing(txn, from->first) = first->next;
    if (first->next == nullptr)
        writing(txn, from->last) = nullptr;
    writing(txn, from->done) = first->number;
    return first;
}

void sell(ty_txn *txn, shop *in, const invoice &sold) {
    product &what = writing(txn, in->products[sold.product]);
    what.stock -= sold.count;
    what.sold += sold.count;
    customer &who = writing(txn, *in->customers[sold.customer]);
    who.cents -= sold.cents;
    auto *slip = make<purchase>(txn);
    *slip = {who.last, sold.number, sold.product, sold.count, sold.cents};
    who.last = slip;
    writing(txn, in->earned_cents) += sold.cents;
}

} // namespace

void found_heaps(const shop_paths &paths) {
    found(paths, "counter", [](ty_txn *txn) {
        check(ty_outbox_make(txn, orders_box, outbox_bytes));
        return make<counter>(txn);
    });
    found(paths, "queue", [](ty_txn *txn) { return make<queue>(txn); });
    found(paths, "shop", [](ty_txn *txn) {
        check(ty_outbox_make(txn, parcels_box, outbox_bytes));
        return make_shop(txn);
    });
    found(paths, "depot", [](ty_txn *txn) {
        void *block = ty_txn_alloc(txn, sizeof(depot) + products * sizeof(int64_t));
        if (block == nullptr)
            throw failure(ty_error_text());
        auto *made = static_cast<depot *>(block);
        made->product_count = products;
        return made;
    });
}

template <class T>
T *root_object(ty_heap *heap, const char *root) {
    void *address = ty_root(heap, root);
    if (address == nullptr)
        throw failure(std::string("the root \"") + root + "\" is gone");
    return static_cast<T *>(address);
}
template counter *root_object<counter>(ty_heap *, const char *);
template queue *root_object<queue>(ty_heap *, const char *);
template shop *root_object<shop>(ty_heap *, const char *);
template depot *root_object<depot>(ty_heap *, const char *);

bool take_order(ty_txn *txn, counter *at, const wish &what, std::string_view note) {
    std::string message(reinterpret_cast<const char *>(&what), sizeof what);
    message += note;
    uint64_t number = 0;
    if (!put(txn, orders_box, message.data(), message.size(), &number))
        return false;
    writing(txn, at->taken) = number;
    return true;
}

void queue_order(ty_txn *txn, queue *to, uint64_t number, const void *message, size_t bytes) {
    auto *made = make<order>(txn);
    made->number = number;
    if (bytes < sizeof made->what)
        throw failure("a message is no order");
    std::memcpy(&made->what, message, sizeof made->what);
    if (bytes != sizeof made->what + made->what.note_bytes || made->what.customer >= customers ||
        made->what.product >= products)
        throw failure("a message is no order of this shop");
    if (made->what.note_bytes != 0) {
        made->note = make<char>(txn, made->what.note_bytes);
        std::memcpy(made->note, static_cast<const char *>(message) + sizeof made->what, made->what.note_bytes);
    }
    if (to->last != nullptr)
        writing(txn, to->last->next) = made;
    else
        writing(txn, to->first) = made;
    writing(txn, to->last) = made;
    writing(txn, to->received) = number;
}

bool do_order(ty_txn *queue_txn, queue *from, ty_txn *shop_txn, shop *in, invoice &made) {
    const order *next = from->first;
    const product &what = in->products[next->what.product];
    const int64_t cents = what.cents * next->what.count;
    const bool can_be_done = what.stock >= next->what.count && in->customers[next->what.customer]->cents >= cents;
    made = {next->number, next->what.customer, next->what.product, next->what.count, can_be_done ? cents : 0};
    const parcel sent{made.number, made.product, can_be_done ? made.count : 0};
    if (!put(shop_txn, parcels_box, &sent, sizeof sent, nullptr))
        return false;
    order *first = take_first(queue_txn, from);
    if (can_be_done)
        sell(shop_txn, in, made);
    else
        ++writing(shop_txn, in->refused);
    writing(shop_txn, in->done) = made.number;
    if (first->note != nullptr)
        check(ty_txn_free(queue_txn, first->note));
    check(ty_txn_free(queue_txn, first));
    return true;
}

void send_parcel(ty_txn *txn, depot *from, const void *message, size_t bytes) {
    parcel sent;
    if (bytes != sizeof sent)
        throw failure("a message is no parcel");
    std::memcpy(&sent, message, sizeof sent);
    if (sent.product >= from->product_count)
        throw failure("a parcel holds what there is not");
    writing(txn, from->sent[sent.product]) += sent.count;
    ++writing(txn, from->parcels);
}

} // namespace orders
