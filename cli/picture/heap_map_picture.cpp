#include "picture/heap_map_picture.hpp"

#include "common/text.hpp"
#include "picture/heap_map_paint.hpp"
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace heap_map {

namespace {

constexpr double margin = 36;
constexpr double gutter = 84; // for the addresses, left of the cells
constexpr double map_height_max = 640;
constexpr double body_size = 12.5;
constexpr double class_bar_max = 90; // height, for the block size with the most memory
constexpr double class_step_max = 44;

const char *kind_name(ty_kind kind) {
    switch (kind) {
    case TY_ARCHIVE:
        return "Archive heap";
    case TY_SNAPSHOT:
        return "Snapshot heap";
    default:
        return "Volatile heap";
    }
}

class picture {
public:
    picture(cairo_t *context, const model &model, const grid &grid, const options &options)
        : paint_(context), model_(model), grid_(grid), options_(options), width_(options.width) {}

    // Draws everything; returns the height.
    double draw() {
        double y = margin;
        y = draw_title(y);
        y = draw_figures(y);
        y = draw_shares(y);
        y = draw_cells(y);
        y = draw_classes(y);
        return draw_legend(y) + margin - 10;
    }

private:
    double draw_title(double y) {
        paint_.text(margin, y + 20, options_.name.empty() ? "Heap" : options_.name, 24, palette::ink, true);
        const ty_heap_stats &stats = model_.stats;
        std::string line = std::string(kind_name(model_.kind)) + " at " + text::hex(stats.base) + ": " +
                           text::size(stats.touched_bytes) + " touched of " + text::size(stats.limit_bytes) +
                           " reserved";
        if (model_.dirty_pages)
            line += ", " + text::counted(model_.dirty_pages, "page") +
                    (options_.waiting ? " waiting in the journal" : " changed since the last snapshot");
        return paint_.wrapped_text(margin, y + 44, width_ - 2 * margin, line, 13.5, palette::quiet) + 8;
    }

    // Relates to all pages in use, not only resident ones: a heap that was just opened has hardly any pages in memory.
    double page_efficiency() const {
        const double used =
            (model_.total.spans() + model_.total.large) * double(page_bytes) + double(model_.stats.control_bytes);
        return used > 0 ? std::min(1.0, double(model_.stats.live_bytes) / used) : 1;
    }

    double draw_figures(double y) {
        const ty_heap_stats &stats = model_.stats;
        const std::tuple<const char *, std::string, std::string> metrics[] = {
            {"Live", text::size(stats.live_bytes), "in " + text::counted(stats.live_blocks, "block")},
            {"Free", text::size(stats.free_bytes), "incl. " + text::counted(stats.free_extents, "free extent")},
            {"Control data", text::size(stats.control_bytes), "header and tables"},
            {"Page efficiency", text::percent(page_efficiency()), "live of used pages' bytes"},
            {"Availability", text::percent(stats.availability), "of free space is usable"},
            {"Largest free", text::size(stats.largest_free_bytes), "fits in one block now"},
        };
        const int in_row = width_ >= 900 ? 6 : 3;
        const double step = (width_ - 2 * margin) / in_row;
        constexpr double height = 74;
        int index = 0;
        for (const auto &[label, value, note] : metrics) {
            const double x = margin + step * (index % in_row);
            const double top = y + height * (index / in_row);
            paint_.filled_box(x, top, 3, height - 16, palette::line);
            paint_.text(x + 12, top + 12, label, 11.5, palette::quiet);
            paint_.text(x + 12, top + 36, value, 20, palette::ink, true);
            paint_.text(x + 12, top + 54, note, 11.5, palette::quiet);
            ++index;
        }
        return y + height * (6 / in_row) + 6;
    }

    colour small_colour() const {
        const cell &total = model_.total;
        return ramp(total.spans() > 0 ? total.log_size / total.spans() : ramp_first_log);
    }

    // One bar: the shares of the touched part.
    double draw_shares(double y) {
        const cell &total = model_.total;
        const double pages = total.touched();
        if (pages <= 0)
            return y;
        const std::tuple<const char *, double, colour, colour> parts[] = {
            {"small blocks", total.small, small_colour(), palette::paper},
            {"room in spans", total.small_free, filled(small_colour(), 0.1), palette::ink},
            {"large blocks", total.large, palette::large, palette::ink},
            {"free pages", total.free, palette::free, palette::ink},
            {"control", total.control, palette::control, palette::paper},
        };
        const double whole = width_ - 2 * margin;
        double x = margin;
        for (const auto &[label, amount, back, front] : parts) {
            const double width = whole * amount / pages;
            paint_.filled_box(x, y, width, 24, back);
            const std::string words = std::string(label) + " " + text::percent(amount / pages);
            if (paint_.text_width(words, 11.5) + 12 < width)
                paint_.text(x + 6, y + 16.5, words, 11.5, front);
            x += width;
        }
        return y + 24 + 26;
    }

    using colour_key = std::tuple<int, int, int>;
    struct box {
        double x, y, width;
    };
    using boxes_by_colour = std::map<colour_key, std::vector<box>>;

    // The parts of a cell, side by side in proportion. Boxes of one colour become one path, which keeps the SVG small;
    // colours are rounded to have few of them.
    void add_parts(const cell &c, double x, double y, double side, boxes_by_colour &boxes) const {
        const std::pair<double, colour> parts[] = {
            {c.spans(), c.spans() > 0 ? filled(ramp(c.log_size / c.spans()), c.small / c.spans()) : palette::free},
            {c.large, palette::large},
            {c.free, palette::free},
            {c.control, palette::control},
        };
        for (const auto &[pages, shade] : parts) {
            if (pages <= 0)
                continue;
            const double width = side * pages / c.touched();
            boxes[{int(shade.red * 63 + 0.5), int(shade.green * 63 + 0.5), int(shade.blue * 63 + 0.5)}].push_back(
                {x, y, width});
            x += width;
        }
    }

    double side() const { return grid_.cell_size - (grid_.cell_size >= 12 ? 2 : 1); }

    void draw_cell_bodies(double left, double top) {
        boxes_by_colour boxes;
        for (uint64_t i = 0; i < model_.cells.size(); ++i)
            if (model_.cells[i].touched() > 0)
                add_parts(model_.cells[i], x_of(left, i), y_of(top, i), side(), boxes);
        for (const auto &[key, list] : boxes) {
            for (const box &b : list)
                paint_.box(b.x, b.y, b.width, side());
            const auto &[red, green, blue] = key;
            paint_.fill({red / 63.0, green / 63.0, blue / 63.0});
        }
        if (model_.pages_per_cell > 1)
            return;
        for (uint64_t i = 0; i < model_.cells.size(); ++i)
            if (model_.cells[i].starts)
                paint_.box(x_of(left, i), y_of(top, i), std::max(1.5, side() / 8), side());
        paint_.fill(palette::large_start);
    }

    void draw_cell_outlines(double left, double top) {
        const uint64_t in_rows = (model_.cells.size() + grid_.columns - 1) / grid_.columns * grid_.columns;
        for (uint64_t i = 0; i < in_rows; ++i) {
            const double x = x_of(left, i), y = y_of(top, i);
            if (i >= model_.cells.size() || model_.cells[i].touched() <= 0)
                paint_.outline(x, y, side(), side(), palette::line, 0.75);
            else if (model_.cells[i].dirty)
                paint_.outline(x, y, side(), side(), palette::dirty, side() >= 12 ? 2 : 1.5);
        }
    }

    double x_of(double left, uint64_t i) const { return left + double(i % grid_.columns) * grid_.cell_size; }
    double y_of(double top, uint64_t i) const { return top + double(i / grid_.columns) * grid_.cell_size; }

    double draw_cells(double y) {
        const uint64_t cell_bytes = model_.pages_per_cell * page_bytes;
        const char *parts = model_.pages_per_cell > 1 ? " Its parts show in proportion what the pages hold." : "";
        const std::string scale = "One cell is " + text::counted(model_.pages_per_cell, "page") + " (" +
                                  text::size(cell_bytes) + "), a row " + text::size(cell_bytes * grid_.columns) +
                                  ". Addresses rise from left to right, then down; they are counted from the heap's "
                                  "base." +
                                  parts;
        y = paint_.wrapped_text(margin, y, width_ - 2 * margin, scale, body_size, palette::quiet) + 2;
        const double left = margin + gutter;
        draw_cell_bodies(left, y);
        draw_cell_outlines(left, y);
        const uint64_t rows = (model_.cells.size() + grid_.columns - 1) / grid_.columns;
        const uint64_t label_step = std::max<uint64_t>(1, uint64_t(std::ceil(30 / grid_.cell_size)));
        for (uint64_t row = 0; row < rows; row += label_step)
            paint_.text_right(left - 10, y + double(row) * grid_.cell_size + std::min(grid_.cell_size, 16.0) / 2 + 4,
                              text::size(row * grid_.columns * cell_bytes), 11, palette::quiet);
        return y + double(rows) * grid_.cell_size + 34;
    }

    static colour class_colour(const ty_class_stats &one) {
        return one.block_bytes ? ramp(std::log2(double(one.block_bytes))) : palette::large;
    }

    // A bar for each block size: its memory, the live part in the full colour.
    double draw_classes(double y) {
        if (model_.classes.empty())
            return y;
        const auto more_memory = [](const ty_class_stats &a, const ty_class_stats &b) {
            return a.span_bytes < b.span_bytes;
        };
        const ty_class_stats &most = *std::max_element(model_.classes.begin(), model_.classes.end(), more_memory);
        const std::string words = "Memory by size of block, the live part of it in full colour. The highest bar is " +
                                  text::size(most.span_bytes) + ".";
        y = paint_.wrapped_text(margin, y, width_ - 2 * margin, words, body_size, palette::quiet) + class_bar_max;
        const double step = std::min(class_step_max, (width_ - 2 * margin) / double(model_.classes.size()));
        double x = margin, free_from = margin; // where the space for labels is free
        for (const ty_class_stats &one : model_.classes) {
            const double height = std::max(1.0, class_bar_max * double(one.span_bytes) / double(most.span_bytes));
            const double live = height * double(one.live_bytes) / double(std::max<size_t>(one.span_bytes, 1));
            paint_.filled_box(x, y - height, step * 0.8, height, filled(class_colour(one), 0.15));
            paint_.filled_box(x, y - live, step * 0.8, live, class_colour(one));
            const std::string label = one.block_bytes ? text::size(one.block_bytes) : "pages";
            if (x >= free_from) {
                paint_.text(x, y + 15, label, 11, palette::quiet);
                free_from = x + paint_.text_width(label, 11) + 8;
            }
            x += step;
        }
        return y + 48;
    }

    struct entry {
        const char *term;
        std::string sentence;
        void (picture::*swatch)(double x, double y);
    };

    void ramp_swatch(double x, double y) {
        for (int i = 0; i < 30; ++i)
            paint_.filled_box(x + i * 2, y, 2, 16, ramp(ramp_first_log + (ramp_last_log - ramp_first_log) * i / 29));
    }
    void fill_swatch(double x, double y) {
        for (int i = 0; i < 30; ++i)
            paint_.filled_box(x + i * 2, y, 2, 16, filled(ramp(9), i / 29.0));
    }
    void large_swatch(double x, double y) {
        paint_.filled_box(x, y, 60, 16, palette::large);
        paint_.filled_box(x, y, 3, 16, palette::large_start);
        paint_.filled_box(x + 36, y, 3, 16, palette::large_start);
    }
    void free_swatch(double x, double y) { paint_.filled_box(x, y, 60, 16, palette::free); }
    void control_swatch(double x, double y) { paint_.filled_box(x, y, 60, 16, palette::control); }
    void unused_swatch(double x, double y) { paint_.outline(x, y, 60, 16, palette::line, 0.75); }
    void dirty_swatch(double x, double y) {
        paint_.filled_box(x, y, 60, 16, filled(ramp(6), 0.6));
        paint_.outline(x, y, 60, 16, palette::dirty, 2);
    }

    std::vector<entry> entries() const {
        std::vector<entry> list{
            {"Small blocks",
             "Blocks of one size share a span of pages; the colour shows the size, from 8 bytes (left) to 32 KiB "
             "(right).",
             &picture::ramp_swatch},
            {"How full",
             "The stronger the colour, the more of the page is in use; a pale page has room for more blocks.",
             &picture::fill_swatch},
            {"Large blocks", "Each is an extent of whole pages of its own; a dark edge marks where one starts.",
             &picture::large_swatch},
            {"Free pages", "Were used before and are ready to be used again.", &picture::free_swatch},
            {"Control data", "The heap's own header and tables, kept apart from the blocks.", &picture::control_swatch},
            {"Never used",
             "Address space that is only reserved; it takes no memory. The heap goes on like this up to its limit.",
             &picture::unused_swatch},
        };
        if (model_.dirty_pages && options_.waiting)
            list.push_back({"Waiting", "Durable in the journal; the next opening copies these pages to the image.",
                            &picture::dirty_swatch});
        else if (model_.dirty_pages)
            list.push_back({"Changed", "Written since the last snapshot; the next snapshot makes them durable.",
                            &picture::dirty_swatch});
        return list;
    }

    double draw_legend(double y) {
        paint_.filled_box(margin, y - 16, width_ - 2 * margin, 1, palette::line);
        const int columns = width_ >= 900 ? 2 : 1;
        const double step = (width_ - 2 * margin) / columns;
        double row_end = y;
        int index = 0;
        for (const entry &e : entries()) {
            const int column = index++ % columns;
            if (column == 0)
                y = row_end + 6;
            const double x = margin + step * column;
            (this->*e.swatch)(x, y);
            paint_.text(x + 76, y + 12.5, e.term, 13, palette::ink, true);
            const double end = paint_.wrapped_text(x + 76, y + 31, step - 100, e.sentence, body_size, palette::quiet);
            row_end = column == 0 ? end : std::max(row_end, end);
        }
        return row_end;
    }

    painter paint_;
    const model &model_;
    const grid &grid_;
    const options &options_;
    double width_;
};

} // namespace

uint64_t grid::cells_max() const {
    return columns * static_cast<uint64_t>(map_height_max / cell_size);
}

grid choose_grid(double width, uint64_t pages) {
    grid chosen{};
    for (uint64_t columns : {32, 64, 128}) {
        chosen = {columns, std::floor((width - 2 * margin - gutter) / double(columns))};
        if (pages <= chosen.cells_max())
            break;
    }
    return chosen;
}

double draw_picture(cairo_t *context, const model &model, const grid &grid, const options &options) {
    return picture(context, model, grid, options).draw();
}

} // namespace heap_map
