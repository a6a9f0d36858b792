// Points, boxes and operations on a sequence of points. Nothing here knows of the heap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace draw {

struct point {
    double x; // degrees, east is positive
    double y; // degrees, north is positive
    bool operator==(const point &) const = default;
};

struct box {
    double low_x = std::numeric_limits<double>::infinity(); // an empty box, until something is added
    double low_y = std::numeric_limits<double>::infinity();
    double high_x = -std::numeric_limits<double>::infinity();
    double high_y = -std::numeric_limits<double>::infinity();

    void add(const box &other) {
        low_x = std::min(low_x, other.low_x);
        low_y = std::min(low_y, other.low_y);
        high_x = std::max(high_x, other.high_x);
        high_y = std::max(high_y, other.high_y);
    }
    void add(point p) { add(box{p.x, p.y, p.x, p.y}); }
    bool contains(const box &other) const {
        return low_x <= other.low_x && low_y <= other.low_y && high_x >= other.high_x && high_y >= other.high_y;
    }
    bool overlaps(const box &other) const {
        return low_x <= other.high_x && low_y <= other.high_y && high_x >= other.low_x && high_y >= other.low_y;
    }
    point middle() const { return {(low_x + high_x) / 2, (low_y + high_y) / 2}; }
    bool operator==(const box &) const = default;
};

// x' = xx x + xy y + x0, and y' likewise.
struct affine {
    double xx, xy, x0;
    double yx, yy, y0;
    point operator()(point p) const { return {xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0}; }
};
affine moved_by(double x, double y);
affine rotated_about(point centre, double degrees); // counterclockwise
affine scaled_about(point centre, double factor);

// Which points Douglas and Peucker's algorithm keeps: no omitted point is further than `tolerance` from the remaining
// line. The ends of an open line are kept; of a closed one, at least three points are.
std::vector<bool> simplified(const point *points, uint32_t count, bool closed, double tolerance);

} // namespace draw
