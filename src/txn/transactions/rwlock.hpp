// One writer or many readers. A word that counts who is in and who waits; who must wait sleeps in the kernel. A waiting
// writer holds new readers up, so that it is served; when it is done, those who waited go before the next writer. A
// thread's nested read sections must not come here again.
#pragma once

#include "../../os/os.hpp"
#include <atomic>

namespace taiyen {

class fair_rwlock {
public:
    // For a transaction.
    void lock() {
        uint64_t free = 0;
        if (!state_.compare_exchange_strong(free, writer_in, std::memory_order_acquire, std::memory_order_relaxed))
            [[unlikely]]
            lock_slowly();
    }
    bool try_lock() { // false: somebody is in, or waits
        uint64_t free = 0;
        return state_.compare_exchange_strong(free, writer_in, std::memory_order_acquire, std::memory_order_relaxed);
    }
    void unlock() {
        uint64_t alone = writer_in;
        if (!state_.compare_exchange_strong(alone, 0, std::memory_order_release, std::memory_order_relaxed))
            [[unlikely]]
            unlock_slowly();
    }
    // For a reader, or a snapshot.
    void lock_shared();
    bool try_lock_shared();
    void unlock_shared();

private:
    // Fields of the state: readers that are in, that wait, and that may come in before the next writer (X10: not
    // more than wait, and each of those takes one as it comes in, so it gets 0 again); writers that wait; the writer
    // that is in. Each count has room for 65,535 threads at least.
    static constexpr uint64_t reader_in = 1;
    static constexpr uint64_t reader_waits = uint64_t{1} << 16;
    static constexpr uint64_t reader_next = uint64_t{1} << 32;
    static constexpr uint64_t writer_waits = uint64_t{1} << 48;
    static constexpr uint64_t writer_in = uint64_t{1} << 63;
    static constexpr uint64_t count_mask = 0xffff;

    void lock_slowly();
    void unlock_slowly();
    static bool reader_may_enter(uint64_t state, uint64_t *entered);

    std::atomic<uint64_t> state_{0};
    std::atomic<uint32_t> readers_{0}; // changes before readers are woken
    std::atomic<uint32_t> writers_{0}; // changes before a writer is woken
};

} // namespace taiyen
