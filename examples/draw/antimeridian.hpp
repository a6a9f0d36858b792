// On a flat map, what crosses the 180th meridian lies at both edges.
#pragma once

#include "geometry.hpp"

namespace draw {

using rings = std::vector<std::vector<point>>; // of one polygon, the outer one first

// Cuts a polygon whose outlines jump from one edge of the map to the other into polygons that do not; one that does not
// jump is returned as it is. An outline around a pole is led along the edge of the map; one that consists only of a
// pole is left out.
std::vector<rings> cut_at_antimeridian(const rings &polygon);

} // namespace draw
