// A seqlock: words that one thread writes and others read meanwhile, without a lock: all words of one write, or none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taiyen {

template <size_t count>
class seqlock {
public:
    // words: count of them. One thread at a time.
    void publish(const void *words) {
        const auto *from = static_cast<const uint64_t *>(words);
        const uint64_t turn = turn_.load(std::memory_order_relaxed);
        turn_.store(turn + 1, std::memory_order_relaxed);
        for (size_t i = 0; i < count; ++i)
            words_[i].store(from[i], std::memory_order_release); // pairs with read: it then sees the odd turn, too
        turn_.store(turn + 2, std::memory_order_release);
    }
    // False: a write is under way, and *words is unchanged.
    bool read(void *words) const {
        uint64_t read[count];
        const uint64_t turn = turn_.load(std::memory_order_acquire);
        for (size_t i = 0; i < count; ++i)
            read[i] = words_[i].load(std::memory_order_acquire);
        if (turn % 2 != 0 || turn_.load(std::memory_order_relaxed) != turn)
            return false;
        for (size_t i = 0; i < count; ++i)
            static_cast<uint64_t *>(words)[i] = read[i];
        return true;
    }

private:
    std::atomic<uint64_t> turn_{0}; // odd while the words are written
    std::atomic<uint64_t> words_[count]{};
};

} // namespace taiyen
