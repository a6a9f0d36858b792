// Random work on an atlas: cities are added and removed, renamed and moved, and their notes grow and shrink.
#pragma once

#include "atlas.hpp"
#include <random>

namespace demo {

class churn {
public:
    churn(atlas *book, uint64_t seed) : book_(book), random_(seed) {}

    void change_one();
    uint64_t below(uint64_t limit) { return random_() % limit; }

private:
    city *pick();
    void add();
    void set_note(city *place);
    double uniform(double low, double high);

    atlas *book_;
    std::mt19937_64 random_;
};

} // namespace demo
