// Taiyen in C++: a queue in a concurrent heap, header-only, C++17 and later.
//
// Purpose: values that some threads push and others pop, first in, first out; a pop may wait. A popped value is back in
// its place if the transaction is rolled back. Created by txn.make or txn.root, or as a member of such an object.
//
// Guarantees: each call is part of the transaction that is passed to it; calls without one are part of the thread's
// transaction on the queue's heap, or a transaction of their own. Failures throw, as in taiyen/concurrent.hpp, and
// leave the queue whole. Values are trivially copyable. Empty a queue before you destroy it: clear().
//
// Cost: a block for each value. A push and a pop conflict only while the queue is (nearly) empty.
#ifndef TAIYEN_QUEUE_HPP
#define TAIYEN_QUEUE_HPP

#include <taiyen/concurrent.hpp>
#include <taiyen/detail/fault.hpp>

#if defined(__cpp_exceptions)

namespace taiyen {
inline namespace v0 {

namespace detail {

template <class T>
struct queue_item {
    T value;
    queue_item *next;
};
template <class T>
struct layout_of; // types.hpp

} // namespace detail

// A queue.
template <class T>
class queue {
public:
    static_assert(std::is_trivially_copyable_v<T>, "values are kept as bytes");

    // Empty.
    queue() = default;
    // Not copyable: it belongs to its place in the heap.
    queue(const queue &) = delete;
    // Not assignable.
    queue &operator=(const queue &) = delete;

    // Appends a value.
    void push(atomic_txn &txn, const T &value) {
        item *made = txn.make<item>(value, nullptr);
        if (item *last = txn[back_.last])
            txn[last->next] = made;
        else
            txn[front_.first] = made;
        txn[back_.last] = made;
        ++txn[back_.pushed];
    }
    // The same.
    void push(const T &value) {
        detail::in_transaction(this, [&](atomic_txn &txn) { push(txn, value); });
    }
    // Removes and returns the first value, if the queue has one.
    std::optional<T> try_pop(atomic_txn &txn) {
        item *first = txn[front_.first];
        if (!first)
            return std::nullopt;
        std::optional<T> value(txn[first->value].load());
        item *next = txn[first->next];
        txn.free(first); // calls that may fail come before stores
        txn[front_.first] = next;
        if (!next && !detail::fault("emptied_queue_keeps_its_last_item"))
            txn[back_.last] = nullptr;
        ++txn[front_.popped];
        return value;
    }
    // The same.
    std::optional<T> try_pop() {
        return detail::in_transaction(this, [this](atomic_txn &txn) { return try_pop(txn); });
    }
    // Removes and returns the first value; waits for one.
    T pop(atomic_txn &txn) {
        std::optional<T> value = try_pop(txn);
        if (!value)
            txn.retry();
        return *value;
    }
    // The same.
    T pop() {
        return detail::in_transaction(this, [this](atomic_txn &txn) { return pop(txn); });
    }
    // The first value, without removing it.
    std::optional<T> front(atomic_txn &txn) const {
        const item *first = txn[front_.first];
        return first ? std::optional<T>(txn[first->value].load()) : std::nullopt;
    }
    // The same.
    std::optional<T> front() const {
        return detail::in_reader(this, [this](atomic_txn &txn) { return front(txn); });
    }
    // The number of values.
    std::uint64_t size(atomic_txn &txn) const { return txn[back_.pushed] - txn[front_.popped]; }
    // The same.
    std::uint64_t size() const {
        return detail::in_reader(this, [this](atomic_txn &txn) { return size(txn); });
    }
    // Removes all values.
    void clear(atomic_txn &txn) {
        while (try_pop(txn)) {
        }
    }
    // The same.
    void clear() {
        detail::in_transaction(this, [this](atomic_txn &txn) { clear(txn); });
    }

private:
    template <class U>
    friend struct detail::layout_of;
    using item = detail::queue_item<T>;
    // J3: the queue's ends are those of one list. Apart from each other, as different threads change them.
    struct alignas(64) front_end {
        item *first = nullptr;
        std::uint64_t popped = 0;
    };
    struct alignas(64) back_end {
        item *last = nullptr;
        std::uint64_t pushed = 0;
    };
    front_end front_;
    back_end back_;
};

} // namespace v0
} // namespace taiyen

#endif
#endif
