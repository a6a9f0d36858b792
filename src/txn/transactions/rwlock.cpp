#include "rwlock.hpp"

namespace taiyen {
namespace {

// A transaction often takes less time than a sleep, so spin a little first.
constexpr unsigned spins = 64;

} // namespace

bool fair_rwlock::reader_may_enter(uint64_t state, uint64_t *entered) {
    bool next = (state / reader_next & count_mask) != 0;
    bool writer_waiting = (state / writer_waits & (count_mask >> 1)) != 0;
    if ((state & writer_in) != 0 || (writer_waiting && !next))
        return false;
    *entered = state + reader_in - (next ? reader_next : 0);
    return true;
}

// No wake-up is lost: a thread that sleeps has counted itself as waiting while it could not enter, and has read its
// wake-up word before it checked the state. A change of the state after that check sees the count, changes the word,
// and so ends the sleep.
void fair_rwlock::lock_slowly() {
    constexpr uint64_t barred = writer_in | count_mask * reader_in | count_mask * reader_next;
    uint64_t registered = 0;
    for (unsigned turn = 0;; turn++) {
        uint32_t word = writers_.load(std::memory_order_acquire);
        uint64_t state = state_.load(std::memory_order_relaxed);
        if ((state & barred) == 0) {
            if (state_.compare_exchange_weak(state, (state - registered) | writer_in, std::memory_order_acquire,
                                             std::memory_order_relaxed))
                return;
            continue;
        }
        if (turn < spins) {
            os::pause_briefly();
        } else if (registered == 0) {
            if (state_.compare_exchange_weak(state, state + writer_waits, std::memory_order_relaxed,
                                             std::memory_order_relaxed))
                registered = writer_waits;
        } else {
            os::wait_on(writers_, word);
        }
    }
}

// X10: readers that waited for a writer go before the next one.
void fair_rwlock::unlock_slowly() {
    uint64_t state = state_.load(std::memory_order_relaxed);
    uint64_t after;
    uint64_t waiting;
    do {
        waiting = state / reader_waits & count_mask;
        after = (state & ~writer_in) + (fault("waiting_readers_passed_over") ? 0 : waiting * reader_next);
    } while (!state_.compare_exchange_weak(state, after, std::memory_order_release, std::memory_order_relaxed));
    if (waiting != 0 && !fault("waiting_readers_passed_over")) { // the last of them wakes a writer
        readers_.fetch_add(1, std::memory_order_release);
        os::wake_all(readers_);
    } else if (after / writer_waits != 0) {
        writers_.fetch_add(1, std::memory_order_release);
        os::wake_one(writers_);
    }
}

void fair_rwlock::lock_shared() {
    uint64_t registered = 0;
    for (unsigned turn = 0;; turn++) {
        uint32_t word = readers_.load(std::memory_order_acquire);
        uint64_t state = state_.load(std::memory_order_relaxed);
        uint64_t entered;
        if (reader_may_enter(state, &entered)) {
            if (state_.compare_exchange_weak(state, entered - registered, std::memory_order_acquire,
                                             std::memory_order_relaxed))
                return;
            continue;
        }
        if (turn < spins) {
            os::pause_briefly();
        } else if (registered == 0) {
            if (state_.compare_exchange_weak(state, state + reader_waits, std::memory_order_relaxed,
                                             std::memory_order_relaxed))
                registered = reader_waits;
        } else {
            os::wait_on(readers_, word);
        }
    }
}

bool fair_rwlock::try_lock_shared() {
    uint64_t state = state_.load(std::memory_order_relaxed);
    uint64_t entered;
    while (reader_may_enter(state, &entered))
        if (state_.compare_exchange_weak(state, entered, std::memory_order_acquire, std::memory_order_relaxed))
            return true;
    return false;
}

void fair_rwlock::unlock_shared() {
    constexpr uint64_t others = count_mask * reader_in | count_mask * reader_next;
    uint64_t after = state_.fetch_sub(reader_in, std::memory_order_release) - reader_in;
    if ((after & others) == 0 && after / writer_waits != 0) {
        writers_.fetch_add(1, std::memory_order_release);
        os::wake_one(writers_);
    }
}

} // namespace taiyen
