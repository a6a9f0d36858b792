// Taiyen in C++: a counter in a concurrent heap whose additions do not conflict, header-only, C++17 and later.
//
// Purpose: what many threads count, and few look at. Made by txn.make or txn.root, or a member of an object that is.
//
// Guarantees: each call is part of the transaction that it is given; those without one are part of the thread's
// transaction on the counter's heap, or one of their own. Failures throw, as in concurrent.hpp.
//
// Cost: 1 KB. Up to 16 threads add to words of their own; a read loads all of these, and conflicts with whoever adds.
#ifndef TAIYEN_COUNTER_HPP
#define TAIYEN_COUNTER_HPP

#include "concurrent.hpp"
#include "fault.hpp"

#if defined(__cpp_exceptions)

#include <atomic>

namespace taiyen {
inline namespace v0 {
namespace detail {

// Of the thread: threads that begin one after the other have different ones.
inline unsigned thread_number() noexcept {
    static std::atomic<unsigned> next{0};
    thread_local const unsigned own = next.fetch_add(1, std::memory_order_relaxed);
    return own;
}

} // namespace detail

// A number that is added to.
class counter {
public:
    // Zero.
    counter() = default;
    // Not copied: it is of its place in the heap.
    counter(const counter &) = delete;
    // Not assigned, either.
    counter &operator=(const counter &) = delete;

    // Adds to it; what is negative takes away.
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
    struct alignas(64) part { // J5: no two share a lock
        std::int64_t value = 0;
    };
    part parts_[count];
};

} // namespace v0
} // namespace taiyen

#endif
#endif
