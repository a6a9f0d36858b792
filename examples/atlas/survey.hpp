// A walk over everything in an atlas that trusts nothing: it checks every structure and recomputes the sum of the
// content.
#pragma once

#include "atlas.hpp"
#include <string>

namespace demo {

struct survey {
    fingerprint content{}; // of all cities, found through the map
    uint64_t cities = 0;
    uint64_t blocks = 0; // that the atlas consists of; a heap with only an atlas has exactly these live blocks
    std::string problem; // the first thing that is wrong; empty: all is sound
};

survey survey_atlas(const atlas *book);

} // namespace demo
