// Building blocks for programs that allocate and free: time, random numbers, sizes, touching. Nothing here allocates.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace bench {

class stopwatch {
public:
    double ns() const { return std::chrono::duration<double, std::nano>(clock::now() - start_).count(); }
    double ms() const { return ns() / 1e6; }

private:
    using clock = std::chrono::steady_clock;
    clock::time_point start_ = clock::now();
};

// A small, fast generator: the same seed gives the same sequence to every subject of a case.
class random_source {
public:
    explicit random_source(uint64_t seed) : state_(seed * 2 + 1) {}
    uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ * 0x9e3779b97f4a7c15u;
    }
    size_t below(size_t bound) { return static_cast<size_t>((next() >> 32) * bound >> 32); } // bound < 2^32
private:
    uint64_t state_;
};

// Sizes spread evenly over the orders of magnitude between low and high.
class size_table {
public:
    size_table(size_t low, size_t high, uint64_t seed) {
        random_source random(seed);
        double span = std::log(static_cast<double>(high) / static_cast<double>(low));
        for (uint32_t &size : sizes_) {
            double at = static_cast<double>(random.below(1u << 30)) / static_cast<double>(1u << 30);
            size = static_cast<uint32_t>(static_cast<double>(low) * std::exp(span * at));
        }
    }
    size_t pick(random_source &random) const { return sizes_[random.next() >> 52]; }

private:
    uint32_t sizes_[4096];
};

// Writes to every page between two offsets of a block, and to the last byte, so that what is allocated is resident.
inline void touch(char *block, size_t from, size_t to) {
    for (size_t at = from; at < to; at += 4096)
        block[at] = 1;
    block[to - 1] = 1;
}

} // namespace bench
