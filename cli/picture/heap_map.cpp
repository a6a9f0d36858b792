#include "picture/heap_map.hpp"

#include "picture/heap_map_paint.hpp"
#include "picture/heap_map_picture.hpp"
#include "picture/picture_file.hpp"
#include <algorithm>
#include <cairo-svg.h>
#include <cmath>

namespace heap_map {

namespace {

cairo_status_t append(void *closure, const unsigned char *bytes, unsigned count) {
    static_cast<std::string *>(closure)->append(reinterpret_cast<const char *>(bytes), count);
    return CAIRO_STATUS_SUCCESS;
}

bool has_ending(const std::string &path, const char *ending) {
    const std::string wanted = ending;
    if (path.size() <= wanted.size())
        return false;
    return std::equal(wanted.begin(), wanted.end(), path.end() - static_cast<std::ptrdiff_t>(wanted.size()),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

// Returns its height; 0 if cairo failed, after which it draws nothing more.
double draw_on(cairo_surface_t *surface, const std::function<double(cairo_t *)> &draw) {
    cairo_t *context = cairo_create(surface);
    cairo_set_source_rgb(context, 1, 1, 1);
    cairo_paint(context);
    const double height = draw(context);
    const bool drawn = cairo_status(context) == CAIRO_STATUS_SUCCESS;
    cairo_destroy(context);
    return drawn ? height : 0;
}

// The picture as the bytes of a file; empty if memory ran out.
std::string render(bool svg, int width, const std::function<double(cairo_t *)> &draw) {
    cairo_surface_t *scratch = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);
    const double height = std::ceil(draw_on(scratch, draw)); // drawn without output, to learn the height
    cairo_surface_destroy(scratch);

    std::string bytes;
    cairo_surface_t *surface = svg ? cairo_svg_surface_create_for_stream(append, &bytes, width, height)
                                   : cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, int(height));
    if (svg)
        cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
    const bool drawn = draw_on(surface, draw) > 0;
    const bool encoded = svg || cairo_surface_write_to_png_stream(surface, append, &bytes) == CAIRO_STATUS_SUCCESS;
    cairo_surface_finish(surface);
    const bool sound = drawn && encoded && cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS;
    cairo_surface_destroy(surface);
    return sound ? bytes : std::string();
}

} // namespace

bool can_draw(const std::string &path) {
    return has_ending(path, ".svg") || has_ending(path, ".png");
}

ty_status draw(ty_heap *heap, const std::string &path, const options &options) {
    if (!can_draw(path))
        return ty_error_set(TY_E_ARGUMENT, 0, "draw a picture of this kind", path.c_str(), UINT64_MAX,
                            "end the file's name in .svg or .png");
    if (options.width < width_min || options.width > width_max)
        return ty_error_set(TY_E_ARGUMENT, 0, "draw a picture of this width", path.c_str(), UINT64_MAX,
                            "give a width of 600 to 8000 pixels");
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    if (ty_status status = ty_heap_get_stats(heap, &stats))
        return status;
    const grid grid = choose_grid(options.width, stats.touched_bytes / page_bytes);
    model model;
    if (ty_status status = look(heap, grid.cells_max(), model))
        return status;
    return draw_file(path, options.width,
                     [&](cairo_t *context) { return draw_picture(context, model, grid, options); });
}

ty_status draw_file(const std::string &path, int width, const std::function<double(cairo_t *)> &draw) {
    const std::string bytes = render(has_ending(path, ".svg"), width, draw);
    if (bytes.empty())
        return ty_error_set(TY_E_MEMORY, 0, "draw the picture", path.c_str(), UINT64_MAX, "draw a smaller picture");
    return write_picture(path, bytes);
}

} // namespace heap_map
