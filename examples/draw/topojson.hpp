// Reads country outlines from a TopoJSON file (as world-atlas has them from Natural Earth; compressed or not): the
// objects "countries" and "land", and the borders, which are the arcs that two countries share.
#pragma once

#include "drawing.hpp"

namespace draw {

struct map_layer {
    std::string name;
    std::vector<shape> shapes;
};

// The layers "land", "countries" and "borders". Throws with the reason if the file is not such a one.
std::vector<map_layer> read_countries(const std::string &path);

} // namespace draw
