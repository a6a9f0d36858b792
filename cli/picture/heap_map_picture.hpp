// The whole picture: title, metrics, cells, legend.
#pragma once

#include "picture/heap_map_model.hpp"
#include <cairo.h>

namespace heap_map {

// How the cells are laid out.
struct grid {
    uint64_t columns;
    double cell_size;

    uint64_t cells_max() const;
};

// The largest cells for which the touched pages fit; columns are a power of two, so that rows start at round addresses.
grid choose_grid(double width, uint64_t pages);

// Draws everything; returns the height.
double draw_picture(cairo_t *context, const model &model, const grid &grid, const options &options);

} // namespace heap_map
