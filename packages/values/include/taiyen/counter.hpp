// Taiyen in C++: a counter in a concurrent heap whose additions do not conflict, header-only, C++17 and later.
//
// Purpose: a count that many threads add to, and few read. Created by txn.make or txn.root, or as a member of such an
// object.
//
// Guarantees: each call is part of the transaction that is passed to it; calls without one are part of the thread's
// transaction on the counter's heap, or a transaction of their own. Failures throw, as in taiyen/concurrent.hpp.
//
// Cost: 1 KB. Up to 16 threads add to words of their own; a read loads all of these, and conflicts with each thread
// that adds.
#ifndef TAIYEN_COUNTER_HPP
#define TAIYEN_COUNTER_HPP

#include <taiyen/concurrent.hpp>
#include <taiyen/detail/fault.hpp>

#if defined(__cpp_exceptions)

#include <atomic>

namespace taiyen {
inline namespace v0 {
namespace detail {

// The number of the thread: threads that start one after the other have different ones.
inline unsigned thread_number() noexcept {
    static std::atomic<unsigned> next{0};
    thread_local const unsigned own = next.fetch_add(1, std::memory_order_relaxed);
    return own;
}

} // namespace detail

// A counter.
class counter {
public:
    // Zero.
    counter() = default;
    // Not copyable: it belongs to its place in the heap.
    counter(const counter &) = delete;
    // Not assignable.
    counter &operator=(const counter &) = delete;

    // Adds to it; a negative amount subtracts.
    void add(atomic_txn &txn, std::int64_t amount) { txn[parts_[detail::thread_number() % count].value] += amount; }
    // The same.
    void add(std::int64_t amount) {
        detail::in_transaction(this, [&](atomic_txn &txn) { add(txn, amount); });
    }
    // The sum of all that was added.
    std::int64_t read(atomic_txn &txn) const {
        std::int64_t sum = 0;
        for (const part &each : parts_)
            sum += txn[each.value];
        return sum;
    }
    // The same.
    std::int64_t read() const {
        return detail::in_reader(this, [this](atomic_txn &txn) { return read(txn); });
    }

private:
    static constexpr unsigned count = 16;
    struct alignas(64) part { // J5: threads that add do not conflict: no two parts share a lock
        std::int64_t value = 0;
    };
    part parts_[count];
};

} // namespace v0
} // namespace taiyen

#endif
#endif
