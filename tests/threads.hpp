// What tests with several threads share.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace taiyen::test {

// Random numbers that a seed gives.
class dice {
public:
    explicit dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
    uint64_t below(uint64_t end) {
        state_ = state_ * 6364136223846793005 + 1442695040888963407;
        return (state_ >> 33) % end;
    }

private:
    uint64_t state_;
};

// Each with its number; returns when all are done.
inline void in_threads(unsigned count, const std::function<void(unsigned)> &body) {
    std::vector<std::thread> all;
    for (unsigned i = 0; i < count; i++)
        all.emplace_back(body, i);
    for (std::thread &each : all)
        each.join();
}

} // namespace taiyen::test
