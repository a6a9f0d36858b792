#include "wait_word.hpp"

#include <algorithm>

namespace taiyen {

bool patience::sees_change(const std::atomic<uint32_t> &word, uint32_t seen) {
    uint64_t now = os::now_ns();
    if (now < paused_until_ns_.load(std::memory_order_relaxed))
        return false;
    for (unsigned look = 0; look < looks; ++look) {
        if (word.load(std::memory_order_acquire) != seen)
            return true;
        uint64_t before = now;
        os::yield();
        now = os::now_ns();
        uint64_t pause = pause_ns_.load(std::memory_order_relaxed);
        if (now - before > turn_ns_max) {
            paused_until_ns_.store(now + pause, std::memory_order_relaxed);
            pause_ns_.store(std::min(4 * pause, pause_ns_max), std::memory_order_relaxed);
            return false;
        }
        if (pause > pause_ns_min)
            pause_ns_.store(pause - pause / 64, std::memory_order_relaxed);
    }
    return false;
}

void wait_word::wait(uint32_t seen, patience &patience) {
    if (patience.sees_change(word_, seen))
        return;
    sleepers_.fetch_add(1);
    os::wait_on(word_, seen); // looks at the word again
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
