// The lock that a process has while it writes to a heap that several processes share: a word in shared memory, with the
// owner's number. Waiters sleep in the kernel. Who finds that its owner is gone takes it.
//
// PR3: one process at a time has the lock; it passes from a process that died to another one. A process that has waited
//      for a millisecond gets it before all that come later.
#pragma once

#include "log_buffer.hpp"

namespace taiyen {

class writer_lock {
public:
    explicit writer_lock(const log_buffer &buffer) : buffer_(buffer) {}

    void lock() {
        uint32_t free = 0;
        if (!word().compare_exchange_strong(free, buffer_.number(), std::memory_order_acquire,
                                            std::memory_order_relaxed)) [[unlikely]]
            (void)lock_slowly(UINT64_MAX);
    }
    // False: another process has it all that time.
    bool try_lock_for(uint64_t timeout_ns);
    void unlock() {
        uint32_t own = buffer_.number();
        if (!word().compare_exchange_strong(own, 0, std::memory_order_release, std::memory_order_relaxed)) [[unlikely]]
            unlock_slowly();
    }
    // What was left to this process's number, but not to it: its predecessor died with the lock, or waiting for it.
    // While no thread of the process wants the lock.
    void release_unwanted();

private:
    static constexpr uint32_t waited = uint32_t{1} << 31;

    std::atomic<uint32_t> &word() const { return buffer_.header().owner; }
    std::atomic<uint32_t> &heir() const { return buffer_.header().heir; }
    bool lock_slowly(uint64_t timeout_ns);
    void unlock_slowly();
    bool take(uint32_t seen);
    void look_for_dead(uint32_t seen);

    const log_buffer &buffer_;
};

} // namespace taiyen
