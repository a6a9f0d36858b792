// The steps of the demo, in order.
#pragma once

#include "report.hpp"
#include <filesystem>

namespace demo {

struct tour_plan {
    std::filesystem::path cities; // the file to load
    std::filesystem::path folder; // where the heap, its journal and the pictures go
    unsigned rounds;
    uint64_t seed;
};

// Runs all steps and prints what they find. True: everything that was to be proven is proven.
bool run_tour(const tour_plan &plan);

} // namespace demo
