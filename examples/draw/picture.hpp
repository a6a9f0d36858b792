// The drawing as a picture of the world, for a browser or a viewer: what lies outside of it is cut off. Hidden layers
// are left out.
#pragma once

#include "drawing.hpp"

namespace draw {

// The path's extension selects the format: .svg or .png. The same drawing gives the same bytes.
void export_picture(const drawing *d, const std::string &path);

} // namespace draw
