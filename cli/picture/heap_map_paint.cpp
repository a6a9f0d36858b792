#include "picture/heap_map_paint.hpp"

#include "common/text.hpp"
#include <algorithm>
#include <sstream>

namespace heap_map {

colour ramp(double log_size) {
    constexpr colour small = rgb(0x1fa187);
    constexpr colour middle = rgb(0x2f6fd0);
    constexpr colour big = rgb(0x7a35b0);
    const double at = std::clamp((log_size - ramp_first_log) / (ramp_last_log - ramp_first_log), 0.0, 1.0);
    return at < 0.5 ? mix(small, middle, at * 2) : mix(middle, big, at * 2 - 1);
}

colour filled(colour full, double fill) {
    return mix(palette::free, full, 0.2 + 0.8 * fill);
}

void painter::fill(colour c) {
    cairo_set_source_rgb(context_, c.red, c.green, c.blue);
    cairo_fill(context_);
}

void painter::filled_box(double x, double y, double width, double height, colour c) {
    box(x, y, width, height);
    fill(c);
}

void painter::outline(double x, double y, double width, double height, colour c, double line_width) {
    box(x + line_width / 2, y + line_width / 2, width - line_width, height - line_width);
    cairo_set_source_rgb(context_, c.red, c.green, c.blue);
    cairo_set_line_width(context_, line_width);
    cairo_stroke(context_);
}

void painter::use_font(double size, bool bold) {
    cairo_select_font_face(context_, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(context_, size);
}

void painter::text(double x, double y, const std::string &text, double size, colour c, bool bold) {
    use_font(size, bold);
    cairo_set_source_rgb(context_, c.red, c.green, c.blue);
    cairo_move_to(context_, x, y);
    cairo_show_text(context_, text::utf8(text).c_str());
    cairo_new_path(context_);
}

void painter::text_right(double x, double y, const std::string &text, double size, colour c) {
    this->text(x - text_width(text, size), y, text, size, c);
}

double painter::text_width(const std::string &text, double size, bool bold) {
    use_font(size, bold);
    cairo_text_extents_t extents;
    cairo_text_extents(context_, text::utf8(text).c_str(), &extents);
    return extents.x_advance;
}

double painter::wrapped_text(double x, double y, double width, const std::string &text, double size, colour c) {
    const double line_height = size * 1.4;
    std::istringstream words(text);
    std::string line;
    for (std::string word; words >> word;) {
        const std::string longer = line.empty() ? word : line + " " + word;
        if (!line.empty() && text_width(longer, size) > width) {
            this->text(x, y, line, size, c);
            y += line_height;
            line = word;
        } else {
            line = longer;
        }
    }
    this->text(x, y, line, size, c);
    return y + line_height;
}

} // namespace heap_map
