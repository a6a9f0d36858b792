// The picture of a disk: writes per second and bytes per second over the size of a write, on logarithmic scales.
#include "device/device.hpp"

#include "common/text.hpp"
#include "picture/heap_map_paint.hpp"
#include <algorithm>
#include <cmath>

namespace cli::device {

namespace {

using heap_map::colour;
using heap_map::painter;
namespace palette = heap_map::palette;

constexpr int picture_width = 1200;
constexpr double margin = 32, top = 96, plot_height = 400, axis_width = 72, gap = 48;
constexpr double panel_width = (picture_width - 2 * margin - gap) / 2;
constexpr double plot_width = panel_width - axis_width;
constexpr double legend_top = top + plot_height + 72, legend_row = 22, legend_column = 360;

struct curve {
    std::string name;
    way how;
    unsigned threads;
    bool append;
    colour line;
    double dash; // 0: none
};

std::vector<curve> curves() {
    constexpr colour colours[way_count] = {heap_map::rgb(0xb3670a), heap_map::rgb(0xd81b45), heap_map::rgb(0x7a35b0),
                                           heap_map::rgb(0x66707f), heap_map::rgb(0x2f6fd0), heap_map::rgb(0x1fa187)};
    std::vector<curve> all;
    for (unsigned how = 0; how < way_count; ++how)
        all.push_back({facts_of(way(how)).text, way(how), 1, false, colours[how], 0});
    all[way_log].name += " (the log)";
    const std::string log = facts_of(way_log).text, threads = " threads";
    for (unsigned count : {2u, 4u, threads_max})
        all.push_back({log + ", " + std::to_string(count) + threads, way_log, count, false, colours[way_log],
                       12.0 / std::sqrt(count)});
    all.push_back({std::string(facts_of(way_stream).text) + ", 4 threads (snapshots)", way_stream, 4, false,
                   colours[way_stream], 6});
    for (way how : {way_fdatasync, way_log})
        all.push_back({std::string(facts_of(how).text) + ", append", how, 1, true, colours[how], 2});
    return all;
}

using figure = double (cell::*)() const;

// The powers of ten that enclose all values; false: no values.
bool range_of(const profile &all, figure value, int *low, int *high) {
    *low = 100, *high = -100;
    for (const curve &one : curves())
        for (uint32_t bytes : write_sizes)
            if (const cell *found = all.find(one.how, one.threads, bytes, one.append)) {
                const double log = std::log10(std::max((found->*value)(), 1e-3));
                *low = std::min(*low, int(std::floor(log)));
                *high = std::max(*high, int(std::floor(log)) + 1);
            }
    return *low < *high;
}

std::string power_text(int power, const char *unit) {
    if (power < 0)
        return "0." + std::string(static_cast<size_t>(-power - 1), '0') + "1" + unit;
    static constexpr const char *prefixes[] = {"", " k", " M", " G", " T", " P", " E"};
    const auto thousand = std::min<size_t>(static_cast<size_t>(power) / 3, std::size(prefixes) - 1);
    std::string text = "1" + std::string(static_cast<size_t>(power) - 3 * thousand, '0') + prefixes[thousand];
    return *unit && thousand == 0 ? text + " " + unit : text + unit;
}

class panel {
public:
    panel(cairo_t *context, const profile &all, double left, figure value)
        : context_(context), paint_(context), all_(all), left_(left + axis_width), value_(value) {}

    void draw(const std::string &title, const char *unit) {
        paint_.text(left_ - axis_width, top - 16, title, 15, palette::ink, true);
        if (!range_of(all_, value_, &low_, &high_)) {
            paint_.text(left_, top + 32, "nothing was measured", 13, palette::quiet);
            return;
        }
        for (int power = low_; power <= high_; ++power) {
            paint_.filled_box(left_, y_of(power), plot_width, 1, palette::line);
            paint_.text_right(left_ - 8, y_of(power) + 4, power_text(power, unit), 12, palette::quiet);
        }
        for (uint32_t bytes : write_sizes) {
            paint_.filled_box(x_of(bytes), top, 1, plot_height, palette::line);
            const std::string size = text::size(bytes);
            paint_.text(x_of(bytes) - paint_.text_width(size, 12) / 2, top + plot_height + 20, size, 12,
                        palette::quiet);
        }
        for (const curve &one : curves())
            draw_curve(one);
    }

private:
    double x_of(uint32_t bytes) const {
        const double first = std::log2(write_sizes.front()), last = std::log2(write_sizes.back());
        return left_ + 24 + (plot_width - 56) * (std::log2(bytes) - first) / (last - first);
    }
    double y_of(double log) const { return top + plot_height * (high_ - log) / (high_ - low_); }

    void draw_curve(const curve &one) {
        cairo_set_source_rgb(context_, one.line.red, one.line.green, one.line.blue);
        cairo_set_line_width(context_, 2);
        cairo_set_dash(context_, &one.dash, one.dash > 0 ? 1 : 0, 0);
        for (uint32_t bytes : write_sizes)
            if (const cell *found = all_.find(one.how, one.threads, bytes, one.append))
                cairo_line_to(context_, x_of(bytes), y_of(std::log10(std::max((found->*value_)(), 1e-3))));
        cairo_stroke(context_);
        cairo_set_dash(context_, nullptr, 0, 0);
        for (uint32_t bytes : write_sizes)
            if (const cell *found = all_.find(one.how, one.threads, bytes, one.append))
                paint_.filled_box(x_of(bytes) - 2.5, y_of(std::log10(std::max((found->*value_)(), 1e-3))) - 2.5, 5, 5,
                                  one.line);
    }

    cairo_t *context_;
    painter paint_;
    const profile &all_;
    double left_;
    figure value_;
    int low_ = 0, high_ = 0;
};

double draw_legend(cairo_t *context, const profile &all) {
    painter paint(context);
    size_t place = 0;
    double y = legend_top;
    for (const curve &one : curves()) {
        if (std::none_of(write_sizes.begin(), write_sizes.end(),
                         [&](uint32_t bytes) { return all.find(one.how, one.threads, bytes, one.append) != nullptr; }))
            continue;
        const double x = margin + legend_column * double(place % 3);
        y = legend_top + legend_row * double(place++ / 3);
        cairo_set_source_rgb(context, one.line.red, one.line.green, one.line.blue);
        cairo_set_line_width(context, 2);
        cairo_set_dash(context, &one.dash, one.dash > 0 ? 1 : 0, 0);
        cairo_move_to(context, x, y - 4);
        cairo_line_to(context, x + 36, y - 4);
        cairo_stroke(context);
        cairo_set_dash(context, nullptr, 0, 0);
        paint.text(x + 44, y, one.name, 12, palette::ink);
    }
    return y + legend_row;
}

} // namespace

ty_status draw(const profile &all, const std::string &folder, const std::string &picture_path) {
    std::string subtitle = "each write durable when it returns, overwriting, one thread, unless it says otherwise; " +
                           all.where.file_system;
    if (!all.where.device.empty())
        subtitle += " on " + all.where.device;
    return heap_map::draw_file(picture_path, picture_width, [&](cairo_t *context) {
        painter paint(context);
        paint.text(margin, 32, "The disk of " + text::printable(folder), 18, palette::ink, true);
        paint.text(margin, 54, subtitle, 12, palette::quiet);
        panel(context, all, margin, &cell::writes_per_s).draw("Writes a second", "");
        panel(context, all, margin + panel_width + gap, &cell::bytes_per_s).draw("Bytes a second", "B");
        double y = draw_legend(context, all) + 8;
        for (const std::string &note : all.where.notes)
            y = paint.wrapped_text(margin, y, picture_width - 2 * margin, note, 12, palette::quiet);
        return y + 8;
    });
}

} // namespace cli::device
