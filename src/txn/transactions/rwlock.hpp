// A fair reader-writer lock: one writer or many readers. One word counts the threads that are in and those that wait; a
// thread that must wait sleeps in the kernel. A waiting writer holds back new readers, so that it does not starve; when
// it is done, the readers that waited go before the next writer. A thread's nested read sections must not lock again.
#pragma once

#include "src/os/os.hpp"
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
    bool try_lock() { // false: another thread is in, or waits
        uint64_t free = 0;
        return state_.compare_exchange_strong(free, writer_in, std::memory_order_acquire, std::memory_order_relaxed);
    }
    void unlock() {
        uint64_t only_writer = writer_in;
        if (!state_.compare_exchange_strong(only_writer, 0, std::memory_order_release, std::memory_order_relaxed))
            [[unlikely]]
            unlock_slowly();
    }
    // For a reader, or a snapshot.
    void lock_shared();
    bool try_lock_shared();
    void unlock_shared();

private:
    // Fields of the state: readers that are in; readers that wait; readers that may enter before the next writer (X10:
    // those that waited for a writer, no more; each takes one as it enters, so the count returns to 0); writers that
    // wait; the writer that is in. Each count has room for at least 65,535 threads.
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
