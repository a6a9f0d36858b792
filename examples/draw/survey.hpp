// A walk over everything in a drawing that trusts nothing: it checks each structure, counts, and takes fingerprints.
#pragma once

#include "drawing.hpp"

namespace draw {

struct fingerprint {
    uint64_t low;
    uint64_t high;
    bool operator==(const fingerprint &) const = default;
};
std::string text_of(const fingerprint &f); // 32 hexadecimal digits

struct survey {
    fingerprint content{}; // of the visible drawing and its names; the same on each machine
    fingerprint memory{};  // of all bytes of all its blocks, including the index, and their addresses
    uint64_t layers = 0;
    uint64_t entities = 0;
    uint64_t points = 0;
    uint64_t blocks = 0;
    uint64_t bytes = 0;  // of the structures; the blocks that hold them may be larger
    std::string problem; // the first thing that is wrong; empty: all is sound
};

survey survey_drawing(const drawing *d);

} // namespace draw
