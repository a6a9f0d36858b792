#include "writer_lock.hpp"

#include <algorithm>

namespace taiyen {
namespace {

constexpr uint64_t heir_after_ns = 1'000'000;     // then this process is next
constexpr uint64_t look_for_dead_ns = 10'000'000; // an owner's death wakes nobody
constexpr unsigned polls = 200;                   // before a sleep: most transactions are short

} // namespace

// Free, or left to this process.
bool writer_lock::take(uint32_t seen) {
    const uint32_t own = buffer_.number();
    if ((seen & ~waited) == own) // its owner before has handed it over
        return true;
    return (seen & ~waited) == 0 &&
           word().compare_exchange_strong(seen, own | (seen & waited), std::memory_order_acquire,
                                          std::memory_order_relaxed);
}

// PR3: the lock of a process that is gone is free.
void writer_lock::look_for_dead(uint32_t seen) {
    const uint32_t owner = seen & ~waited;
    uint32_t next = heir().load(std::memory_order_relaxed);
    if (buffer_.take_if_gone(next)) {
        heir().compare_exchange_strong(next, 0, std::memory_order_relaxed);
        buffer_.give_back(next);
    }
    if (fault("dead_owner_keeps_the_writer_lock") || !buffer_.take_if_gone(owner))
        return;
    // No new process has the number meanwhile: the word is still that of the dead one.
    if (word().compare_exchange_strong(seen, waited, std::memory_order_acq_rel, std::memory_order_relaxed))
        os::wake_all_shared(word());
    buffer_.give_back(owner);
}

bool writer_lock::try_lock_for(uint64_t timeout_ns) {
    const uint32_t seen = word().load(std::memory_order_relaxed);
    return ((seen & ~waited) == 0 && take(seen)) || (timeout_ns != 0 && lock_slowly(timeout_ns));
}

bool writer_lock::lock_slowly(uint64_t timeout_ns) {
    const uint64_t begun = os::now_ns();
    const uint32_t own = buffer_.number();
    uint64_t looked = begun;
    for (unsigned poll = 0;;) {
        uint32_t seen = word().load(std::memory_order_acquire);
        if (take(seen)) {
            // Others may still sleep: whoever has the lock next wakes them.
            word().fetch_or(waited, std::memory_order_relaxed);
            uint32_t self = own;
            heir().compare_exchange_strong(self, 0, std::memory_order_relaxed);
            return true;
        }
        if ((seen & ~waited) == 0)
            continue;
        if (poll < polls) {
            ++poll;
            os::pause_briefly();
            continue;
        }
        const uint64_t now = os::now_ns();
        if (now - begun >= timeout_ns) {
            release_unwanted(); // the owner may be handing it over
            return false;
        }
        if (now - begun >= heir_after_ns) {
            uint32_t nobody = 0;
            heir().compare_exchange_strong(nobody, own, std::memory_order_relaxed);
        }
        if (now - looked >= look_for_dead_ns) {
            looked = now;
            look_for_dead(seen);
            continue;
        }
        if ((seen & waited) == 0 &&
            !word().compare_exchange_strong(seen, seen | waited, std::memory_order_relaxed, std::memory_order_relaxed))
            continue;
        os::wait_on_shared(word(), seen | waited, std::min(look_for_dead_ns, timeout_ns - (now - begun)));
    }
}

void writer_lock::unlock_slowly() {
    const uint32_t next = heir().load(std::memory_order_relaxed);
    if (next != 0 && next != buffer_.number()) {
        word().store(next | waited, std::memory_order_release);
        os::wake_all_shared(word()); // the next one is among them
        return;
    }
    word().store(0, std::memory_order_release);
    os::wake_one_shared(word());
}

void writer_lock::release_unwanted() {
    uint32_t self = buffer_.number();
    heir().compare_exchange_strong(self, 0, std::memory_order_relaxed);
    uint32_t seen = word().load(std::memory_order_relaxed);
    if ((seen & ~waited) == buffer_.number() &&
        word().compare_exchange_strong(seen, 0, std::memory_order_release, std::memory_order_relaxed))
        os::wake_all_shared(word());
}

} // namespace taiyen
