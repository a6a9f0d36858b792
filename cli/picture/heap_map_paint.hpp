// Drawing primitives over cairo: colours, text, boxes.
#pragma once

#include <cairo.h>
#include <functional>
#include <string>
#include <taiyen/taiyen.h>

namespace heap_map {

struct colour {
    double red, green, blue;
};

constexpr colour rgb(unsigned value) {
    return {double(value >> 16 & 255) / 255, double(value >> 8 & 255) / 255, double(value & 255) / 255};
}

constexpr colour mix(colour from, colour to, double share) {
    return {from.red + (to.red - from.red) * share, from.green + (to.green - from.green) * share,
            from.blue + (to.blue - from.blue) * share};
}

namespace palette {
inline constexpr colour paper = rgb(0xffffff);
inline constexpr colour ink = rgb(0x1d2430);
inline constexpr colour quiet = rgb(0x66707f);
inline constexpr colour line = rgb(0xd5dae1);
inline constexpr colour free = rgb(0xe6eaef);
inline constexpr colour large = rgb(0xf0a03c);
inline constexpr colour large_start = rgb(0xb3670a);
inline constexpr colour control = rgb(0x3d4757);
inline constexpr colour dirty = rgb(0xd81b45);
} // namespace palette

inline constexpr double ramp_first_log = 3; // 8 bytes
inline constexpr double ramp_last_log = 15; // 32 KiB

// The colour of small blocks of a size, by its base-2 logarithm; and of a page of them filled to this share.
colour ramp(double log_size);
colour filled(colour full, double fill);

class painter {
public:
    explicit painter(cairo_t *context) : context_(context) {}

    void fill(colour c);
    void box(double x, double y, double width, double height) { cairo_rectangle(context_, x, y, width, height); }
    void filled_box(double x, double y, double width, double height, colour c);
    void outline(double x, double y, double width, double height, colour c, double line_width);

    // Text that begins or ends at x, with its base line at y.
    void text(double x, double y, const std::string &text, double size, colour c, bool bold = false);
    void text_right(double x, double y, const std::string &text, double size, colour c);
    double text_width(const std::string &text, double size, bool bold = false);
    // The text in lines of at most `width`; returns the y of the next line.
    double wrapped_text(double x, double y, double width, const std::string &text, double size, colour c);

private:
    void use_font(double size, bool bold);
    cairo_t *context_;
};

// Draws a picture of that width, whose height `draw` returns, into a file whose name can_draw accepts; the file is
// replaced atomically. `draw` is called twice. Errors: as draw (heap_map.hpp).
ty_status draw_file(const std::string &path, int width, const std::function<double(cairo_t *)> &draw);

} // namespace heap_map
