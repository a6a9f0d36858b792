#include "wait_word.hpp"

#include <algorithm>

namespace taiyen {

// False: it took long, which costs credit.
bool spin_budget::take_turn(uint64_t *now) {
    uint64_t before = *now;
    os::yield();
    *now = os::now_ns();
    if (*now - before <= long_turn_ns)
        return true;
    if (before < paid_at_ns_.exchange(*now, std::memory_order_relaxed))
        return false; // another thread already paid for the same turn
    int32_t credit = credit_.load(std::memory_order_relaxed);
    credit_.store(std::max(credit - long_turn_price, 0), std::memory_order_relaxed);
    if (credit < long_turn_price)
        paused_until_ns_.store(*now + pause_ns, std::memory_order_relaxed);
    return false;
}

bool spin_budget::lets_others_run() {
    uint64_t now = os::now_ns();
    return !is_paused(now) && take_turn(&now);
}

bool spin_budget::sees_change(const std::atomic<uint32_t> &word, uint32_t seen) {
    uint64_t now = os::now_ns();
    if (is_paused(now))
        return false;
    for (uint64_t until = now + look_ns; now < until;) {
        for (unsigned look = 0; look < polls_per_turn; look++) {
            if (word.load(std::memory_order_acquire) != seen) {
                int32_t credit = credit_.load(std::memory_order_relaxed);
                credit_.store(std::min(credit + 1, credit_max), std::memory_order_relaxed);
                return true;
            }
            os::pause_briefly();
        }
        if (!take_turn(&now))
            return false;
    }
    return false;
}

void wait_word::wait(uint32_t seen, spin_budget &budget) {
    if (budget.sees_change(word_, seen))
        return;
    sleepers_.fetch_add(1);
    os::wait_on(word_, seen); // reads the word again
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void wait_word::wake_one() {
    if (sleepers_.load() != 0)
        os::wake_one(word_);
}

void wait_word::wake_all() {
    if (sleepers_.load() != 0)
        os::wake_all(word_);
}

} // namespace taiyen
