// Vectors for the index: made from their number, in clusters, the same in each run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vectors {

constexpr size_t dimensions_max = 1024;

class source {
public:
    source(size_t dimensions, uint64_t seed);
    size_t dimensions() const { return dimensions_; }
    // Near the centre of one of the clusters.
    void make(uint64_t number, float *vector) const;

private:
    size_t dimensions_;
    uint64_t seed_;
    std::vector<float> centres_;
};

// A number that follows from these two alone, and looks random.
uint64_t mixed(uint64_t seed, uint64_t number);

} // namespace vectors
