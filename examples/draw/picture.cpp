#include "picture.hpp"
#include <cairo.h>
#include <cerrno>
#include <cstdarg>
#include <fstream>
#include <memory>

namespace draw {
namespace {

using demo::failure;

constexpr uint32_t sea = 0xdbe8f0;
constexpr int png_width = 1800;
constexpr int png_height = 900;
constexpr double line_width = 0.15; // degrees

std::string escaped(std::string_view text) {
    std::string safe;
    for (char letter : text) {
        if (letter == '<')
            safe += "&lt;";
        else if (letter == '&')
            safe += "&amp;";
        else if (letter == '"')
            safe += "&quot;";
        else
            safe += letter;
    }
    return safe;
}

[[gnu::format(printf, 2, 3)]] void append(std::string &text, const char *format, ...) {
    char piece[128];
    std::va_list arguments;
    va_start(arguments, format);
    int length = std::vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    text.append(piece, static_cast<size_t>(length));
}

void append_svg(std::string &svg, const entity *item) {
    svg += "<path d=\"";
    for (uint32_t i = 0; i < item->part_count; ++i) {
        const part &p = item->parts[i];
        for (uint64_t k = 0; k < p.count; ++k)
            append(svg, "%c%.4f %.4f", k == 0 ? 'M' : 'L', p.points[k].x, 0 - p.points[k].y); // never "-0"
        svg += item->is_area != 0 ? "Z" : "";
    }
    append(svg, "\" %s=\"#%06x\"><title>", item->is_area != 0 ? "fill" : "stroke", item->colour);
    svg += escaped(demo::view(item->name)) + "</title></path>\n";
}

void write_svg(const drawing *d, const std::string &path) {
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-180 -90 360 180\" fill=\"none\" "
                      "fill-rule=\"evenodd\" stroke-linejoin=\"round\" ";
    append(svg, "stroke-width=\"%.2f\">\n<rect x=\"-180\" y=\"-90\" width=\"360\" height=\"180\" fill=\"#%06x\"/>\n",
           line_width, sea);
    for (const layer *l = d->first_layer; l != nullptr; l = l->next) {
        if (l->visible == 0)
            continue;
        svg += "<g id=\"" + escaped(demo::view(l->name)) + "\">\n";
        for (const entity *item = l->first; item != nullptr; item = item->next)
            append_svg(svg, item);
        svg += "</g>\n";
    }
    svg += "</svg>\n";
    std::ofstream file(path, std::ios::binary);
    if (!(file << svg << std::flush))
        throw failure("cannot write " + path + ": " + std::strerror(errno));
}

void use_colour(cairo_t *context, uint32_t colour) {
    cairo_set_source_rgb(context, (colour >> 16 & 255) / 255.0, (colour >> 8 & 255) / 255.0, (colour & 255) / 255.0);
}

void paint(cairo_t *context, const entity *item) {
    for (uint32_t i = 0; i < item->part_count; ++i) {
        const part &p = item->parts[i];
        cairo_new_sub_path(context);
        for (uint64_t k = 0; k < p.count; ++k)
            cairo_line_to(context, p.points[k].x, p.points[k].y);
        if (item->is_area != 0)
            cairo_close_path(context);
    }
    use_colour(context, item->colour);
    if (item->is_area != 0)
        cairo_fill(context);
    else
        cairo_stroke(context);
}

void write_png(const drawing *d, const std::string &path) {
    std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t *)> surface(
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, png_width, png_height), cairo_surface_destroy);
    std::unique_ptr<cairo_t, void (*)(cairo_t *)> context(cairo_create(surface.get()), cairo_destroy);
    cairo_t *to = context.get();
    use_colour(to, sea);
    cairo_paint(to);
    cairo_translate(to, png_width / 2.0, png_height / 2.0);
    cairo_scale(to, png_width / 360.0, -png_height / 180.0); // degrees
    cairo_set_fill_rule(to, CAIRO_FILL_RULE_EVEN_ODD);
    cairo_set_line_join(to, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_width(to, line_width);
    for (const layer *l = d->first_layer; l != nullptr; l = l->next)
        for (const entity *item = l->visible != 0 ? l->first : nullptr; item != nullptr; item = item->next)
            paint(to, item);
    cairo_status_t status = cairo_status(to);
    errno = 0;
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_write_to_png(surface.get(), path.c_str());
    if (status != CAIRO_STATUS_SUCCESS)
        throw failure("cannot write " + path + ": " +
                      (errno != 0 ? std::strerror(errno) : cairo_status_to_string(status)));
}

} // namespace

void export_picture(const drawing *d, const std::string &path) {
    if (path.ends_with(".svg"))
        write_svg(d, path);
    else if (path.ends_with(".png"))
        write_png(d, path);
    else
        throw failure(path + " is neither .svg nor .png");
}

} // namespace draw
