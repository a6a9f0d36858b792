// What the tests of concurrent heaps share: bodies as lambdas, heaps of each kind, and a table in a heap that knows
// whether it is whole.
#pragma once

#include "tests/threads.hpp"
#include "tests/txn/support.hpp"

#include <set>
#include <taiyen/taiyen.h>
#include <thread>
#include <vector>

namespace taiyen::test {

// The body takes the transaction and returns a status.
template <class Body>
ty_status atomically(ty_heap *heap, Body body, const ty_atomic_options *options = nullptr,
                     ty_atomic_result *result = nullptr) {
    return ty_atomically(
        heap, options, [](ty_atomic_txn *txn, void *context) { return (*static_cast<Body *>(context))(txn); }, &body,
        result);
}

inline ty_atomic_options async() {
    ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
    options.commit = TY_COMMIT_ASYNC;
    return options;
}

inline ty_atomic_result result() {
    ty_atomic_result made{};
    made.struct_size = sizeof made;
    return made;
}

template <class T>
ty_status load(ty_atomic_txn *txn, const T &from, T *value) {
    return ty_atomic_load(txn, &from, value, sizeof *value);
}

template <class T>
ty_status store(ty_atomic_txn *txn, T &to, T value) {
    return ty_atomic_store(txn, &to, &value, sizeof value);
}

#define RETURN_IF(expression)                                                                                          \
    do {                                                                                                               \
        if (ty_status failed_ = (expression))                                                                          \
            return failed_;                                                                                            \
    } while (false)

// A heap on a simulated disk, concurrent.
class concurrent_test_heap {
public:
    explicit concurrent_test_heap(ty_background background = TY_BACKGROUND_THREAD, size_t log_bytes = size_t{4} << 20,
                                  uint32_t streams = 3) {
        options_ = files_->options();
        options_.background = background;
        options_.kind = TY_TRANSACTIONAL;
        options_.concurrent = true;
        options_.log_bytes = log_bytes;
        options_.log_streams = streams;
        open();
    }
    ~concurrent_test_heap() {
        EXPECT_OK(ty_discard(heap_)); // NULL does nothing
    }
    ty_heap *get() const { return heap_; }
    disk &files() { return *files_; }
    ty_open_options &options() { return options_; }
    const ty_report &report() const { return report_; }

    // The process dies; what it had not written is gone.
    void die() {
        EXPECT_OK(ty_discard(heap_));
        heap_ = nullptr;
    }
    // The power fails at an event of the disk; what it was not asked to keep may be gone, as a seed says.
    void lose_power(uint64_t event, os::sim_cut how, uint64_t seed) {
        os::sim_disk *left = os::sim_power_cut(files_->get(), event, how, seed);
        die();
        take(left);
    }
    // What another disk holds.
    void take(os::sim_disk *disk_left) {
        files_ = std::make_unique<disk>(disk_left);
        options_.storage = files_->storage();
    }
    // Every write fails for want of space, or none does.
    void set_full(bool full) {
        os::sim_fault fault{};
        if (full)
            fault = {os::sim_op_write | os::sim_op_write_durable | os::sim_op_allocate, 0, true, TY_E_SPACE};
        os::sim_set_fault(files_->get(), fault);
    }
    void fail_one_log_write() { os::sim_set_fault(files_->get(), {os::sim_op_write_durable, 0, false, TY_E_IO}); }
    void open() {
        report_ = {};
        report_.struct_size = sizeof report_;
        EXPECT_OK(ty_open(heap_path, &options_, &heap_, &report_));
    }
    void close() {
        EXPECT_OK(ty_close(heap_));
        heap_ = nullptr;
    }

private:
    std::unique_ptr<disk> files_ = std::make_unique<disk>();
    ty_open_options options_;
    ty_report report_;
    ty_heap *heap_ = nullptr;
};

// A hash table of lists: how many nodes there are, and the sum of their values, stand in its head. Every change moves
// value from one node to another, makes one of a part of another, or lets one take in another.
struct node {
    uint64_t key;
    uint64_t value;
    node *next;
    uint64_t rest[4];
};
struct table {
    static constexpr uint64_t slot_count = 64;
    uint64_t count;
    uint64_t sum;
    node *slots[slot_count];
};

inline constexpr uint64_t table_keys = 200;

inline table *make_table(ty_heap *heap, uint64_t sum) {
    table *made = nullptr;
    EXPECT_OK(atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
        made = static_cast<table *>(ty_atomic_alloc(txn, sizeof(table)));
        if (made == nullptr)
            return TY_E_MEMORY;
        made->count = table_keys / 2;
        made->sum = sum;
        for (uint64_t key = 0; key < made->count; key++) {
            auto *first = static_cast<node *>(ty_atomic_alloc(txn, sizeof(node)));
            if (first == nullptr)
                return TY_E_MEMORY;
            node *&slot = made->slots[key % table::slot_count];
            *first = {key, sum / made->count + (key == 0 ? sum % made->count : 0), slot, {key, key, key, key}};
            slot = first;
        }
        return ty_atomic_root_set(txn, "table", made);
    }));
    return made;
}

inline ty_status find_node(ty_atomic_txn *txn, table *t, uint64_t key, node ***link, node **found) {
    *link = &t->slots[key % table::slot_count];
    for (;;) {
        RETURN_IF(load(txn, **link, found));
        if (*found == nullptr)
            return TY_OK;
        uint64_t here = 0;
        RETURN_IF(load(txn, (*found)->key, &here));
        if (here == key)
            return TY_OK;
        *link = &(*found)->next;
    }
}

inline ty_status add_to(ty_atomic_txn *txn, uint64_t &word, uint64_t difference) {
    uint64_t value = 0;
    RETURN_IF(load(txn, word, &value));
    return store(txn, word, value + difference);
}

// One change, by two keys. Where the first is not there, nothing.
inline ty_status change_table(ty_atomic_txn *txn, table *t, uint64_t from_key, uint64_t to_key, bool takes_in) {
    node **from_link = nullptr, **to_link = nullptr, *from = nullptr, *to = nullptr;
    if (from_key == to_key)
        return TY_OK;
    RETURN_IF(find_node(txn, t, from_key, &from_link, &from));
    if (from == nullptr)
        return TY_OK;
    uint64_t value = 0;
    RETURN_IF(load(txn, from->value, &value));
    const uint64_t moved = takes_in ? value : value / 2;
    RETURN_IF(find_node(txn, t, to_key, &to_link, &to));
    if (to == nullptr) {
        auto *made = static_cast<node *>(ty_atomic_alloc(txn, sizeof(node)));
        if (made == nullptr)
            return ty_atomic_status(txn) != TY_OK ? ty_atomic_status(txn) : TY_E_MEMORY;
        *made = {to_key, moved, nullptr, {to_key, to_key, to_key, to_key}};
        RETURN_IF(store(txn, *to_link, made));
        RETURN_IF(add_to(txn, t->count, 1));
    } else {
        RETURN_IF(add_to(txn, to->value, moved));
    }
    if (!takes_in)
        return store(txn, from->value, value - moved);
    node *next = nullptr;
    RETURN_IF(find_node(txn, t, from_key, &from_link, &from)); // the link may be the new node's
    RETURN_IF(load(txn, from->next, &next));
    RETURN_IF(store(txn, *from_link, next));
    RETURN_IF(add_to(txn, t->count, UINT64_MAX));
    return ty_atomic_free(txn, from);
}

// Whether the heap holds the table, whole, and no block besides but those of the library, of which there are none where
// it was closed in order; read as it lies there.
inline void expect_whole(ty_heap *heap, uint64_t sum, bool was_closed = false) {
    auto *t = static_cast<table *>(ty_root(heap, "table"));
    ASSERT_NE(nullptr, t);
    std::set<const void *> blocks{t};
    if (const void *other = ty_root(heap, "counters"))
        blocks.insert(other);
    uint64_t count = 0, total = 0;
    for (uint64_t slot = 0; slot < table::slot_count; slot++) {
        for (const node *each = t->slots[slot]; each != nullptr; each = each->next) {
            ASSERT_TRUE(blocks.insert(each).second) << "a node is in two lists";
            ASSERT_EQ(slot, each->key % table::slot_count);
            for (uint64_t rest : each->rest)
                ASSERT_EQ(each->key, rest);
            count++;
            total += each->value;
        }
    }
    EXPECT_EQ(t->count, count);
    EXPECT_EQ(sum, total);
    EXPECT_EQ(sum, t->sum);
    constexpr size_t own_block_bytes = 4000;
    struct look {
        std::set<const void *> &blocks;
        const size_t bytes_below;
        uint64_t leaked = 0;
    } looking{blocks, was_closed ? SIZE_MAX : own_block_bytes};
    EXPECT_OK(ty_each_block(
        heap,
        [](const ty_block *block, void *context) {
            auto &see = *static_cast<look *>(context);
            see.leaked += see.blocks.erase(block->address) == 0 && block->size_bytes < see.bytes_below;
            return true;
        },
        &looking));
    EXPECT_TRUE(blocks.empty()) << "a node is in no live block";
    EXPECT_EQ(0u, looking.leaked) << "blocks that nothing leads to";
    EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
}

} // namespace taiyen::test
