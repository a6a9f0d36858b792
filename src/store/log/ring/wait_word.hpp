// A word that threads wait on until it changes. They avoid sleep where it is expensive.
#pragma once

#include "src/os/os.hpp"
#include <atomic>

namespace taiyen {

// Sleeping and waking cost more than most commits do, and with many committers the next write often ends within a few
// turns of other threads. So a waiting thread polls, and lets others run in between, for a while before it sleeps.
// Where a turn takes long, the processors are busy with something else, and a sleeper would return sooner: successful
// polls earn credit for such turns, each turn is paid for once, and when the credit is used up no thread polls for a
// while. One per log. Thread-safe; its metrics are hints.
class spin_budget {
public:
    // Polls; returns whether the word has changed from `seen` meanwhile.
    bool sees_change(const std::atomic<uint32_t> &word, uint32_t seen);
    // One turn of other threads. False: it took long, or polling is paused.
    bool lets_others_run();

private:
    static constexpr uint64_t look_ns = 300000;     // about three writes of a fast disk
    static constexpr unsigned polls_per_turn = 100; // polls in a row, some microseconds; then others run
    static constexpr uint64_t long_turn_ns = 1000000;
    static constexpr int32_t long_turn_price = 100; // in changes seen: some milliseconds against tens of microseconds
    static constexpr int32_t credit_max = 1000;
    static constexpr uint64_t pause_ns = 100000000;

    bool is_paused(uint64_t now) const { return now < paused_until_ns_.load(std::memory_order_relaxed); }
    bool take_turn(uint64_t *now);

    std::atomic<int32_t> credit_{credit_max};
    std::atomic<uint64_t> paid_at_ns_{0};
    std::atomic<uint64_t> paused_until_ns_{0};
};

class wait_word {
public:
    // For a thread about to wait: what wait() compares with. Read under the lock that changes are made under.
    uint32_t now() const { return word_.load(std::memory_order_relaxed); }
    // Returns when the word differs from `seen`, or spuriously.
    void wait(uint32_t seen, spin_budget &budget);

    void change() { word_.fetch_add(1); }
    // After a change, and after its lock is released. Costs one load when no thread sleeps.
    void wake_one();
    void wake_all();

private:
    // Sequentially consistent: either the thread that changes the word sees the sleeper, or the sleeper sees the
    // change.
    std::atomic<uint32_t> word_{0};
    std::atomic<uint32_t> sleepers_{0};
};

} // namespace taiyen
