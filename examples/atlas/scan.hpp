// The slow and certain way to the nearest city: a scan of all cities. It checks the tree.
#pragma once

#include "atlas.hpp"

namespace demo {

// The smallest distance from a point to any city; the atlas must not be empty.
double nearest_by_scan(const atlas *book, const point &from);

struct scan_comparison {
    unsigned wrong = 0;       // questions for which the tree's answer is not the nearest
    double tree_us = 0;       // per question
    double tree_again_us = 0; // the same questions once more
    double scan_us = 0;
};

// Asks both ways for random points all over the globe, half of them near a city.
scan_comparison compare_with_scan(const atlas *book, unsigned questions, uint64_t seed);

} // namespace demo
