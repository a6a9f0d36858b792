// A walk over everything in an atlas that believes nothing: it checks every structure and adds up the content anew.
#pragma once

#include "atlas.hpp"
#include <string>

namespace demo {

struct survey {
    fingerprint content{}; // of all cities, found by way of the map
    uint64_t cities = 0;
    uint64_t blocks = 0; // that the atlas consists of; a heap that holds an atlas alone has just these live blocks
    std::string problem; // the first thing that is wrong; empty: all is sound
};

survey survey_atlas(const atlas *book);

} // namespace demo
