#include "source.hpp"
#include <stdexcept>
#include <string>

namespace vectors {
namespace {

constexpr size_t clusters = 64;

// From -1 to 1.
float unit(uint64_t &state) { // xorshift64
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<float>(static_cast<int64_t>(state) >> 40) / 8388608.0F; // 2^23
}

} // namespace

uint64_t mixed(uint64_t seed, uint64_t number) { // splitmix64
    uint64_t z = seed * 0xd1342543de82ef95U + (number + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

source::source(size_t dimensions, uint64_t seed)
    : dimensions_(dimensions), seed_(seed), centres_(clusters * dimensions) {
    if (dimensions == 0 || dimensions > dimensions_max)
        throw std::invalid_argument("vectors have 1 to " + std::to_string(dimensions_max) + " dimensions");
    uint64_t state = mixed(seed, ~uint64_t{0}) | 1;
    for (float &each : centres_)
        each = unit(state);
}

void source::make(uint64_t number, float *vector) const {
    uint64_t state = mixed(seed_, number) | 1;
    const float *centre = &centres_[state / 2 % clusters * dimensions_];
    for (size_t i = 0; i < dimensions_; ++i)
        vector[i] = centre[i] + unit(state) / 2;
}

} // namespace vectors
