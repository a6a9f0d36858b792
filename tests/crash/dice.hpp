// Random numbers that are the same on every machine for the same seed (splitmix64), so that a seed replays a run.
#pragma once

#include <cstdint>

namespace crash {

class dice {
public:
    explicit dice(uint64_t seed) : state_(seed * 0xd1342543de82ef95u + 1) {}
    uint64_t roll() {
        state_ += 0x9e3779b97f4a7c15u;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t bound) { return roll() % bound; }
    bool one_in(uint64_t n) { return below(n) == 0; }

private:
    uint64_t state_;
};

} // namespace crash
