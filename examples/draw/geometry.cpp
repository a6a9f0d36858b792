#include "geometry.hpp"
#include <cmath>
#include <numbers>

namespace draw {
namespace {

double distance_square(point p, point from, point to) {
    double x = to.x - from.x;
    double y = to.y - from.y;
    double length_square = x * x + y * y;
    double along = length_square == 0 ? 0 : ((p.x - from.x) * x + (p.y - from.y) * y) / length_square;
    along = std::clamp(along, 0.0, 1.0);
    double off_x = p.x - (from.x + along * x);
    double off_y = p.y - (from.y + along * y);
    return off_x * off_x + off_y * off_y;
}

struct stretch {
    uint32_t first;
    uint32_t last; // in a closed line it may be `count`, which is point 0 again
};

// The point within a stretch that is furthest from the straight line between its ends.
uint32_t furthest(const point *points, uint32_t count, stretch s, double &square) {
    uint32_t found = s.first;
    square = -1;
    for (uint32_t i = s.first + 1; i < s.last; ++i) {
        double here = distance_square(points[i], points[s.first], points[s.last % count]);
        if (here > square) {
            square = here;
            found = i;
        }
    }
    return found;
}

} // namespace

affine moved_by(double x, double y) {
    return {1, 0, x, 0, 1, y};
}

affine rotated_about(point centre, double degrees) {
    double angle = degrees * std::numbers::pi / 180;
    double c = std::cos(angle);
    double s = std::sin(angle);
    return {c, -s, centre.x - c * centre.x + s * centre.y, s, c, centre.y - s * centre.x - c * centre.y};
}

affine scaled_about(point centre, double factor) {
    return {factor, 0, centre.x * (1 - factor), 0, factor, centre.y * (1 - factor)};
}

std::vector<bool> simplified(const point *points, uint32_t count, bool closed, double tolerance) {
    if (count < 3)
        return std::vector<bool>(count, true);
    std::vector<bool> keep(count, false);
    std::vector<stretch> open;
    double square = 0;
    keep[0] = true;
    if (closed) { // two stretches, from point 0 to the one furthest from it and back
        uint32_t far = furthest(points, count, {0, count}, square);
        keep[far] = true;
        open = {{0, far}, {far, count}};
    } else {
        keep[count - 1] = true;
        open = {{0, count - 1}};
    }
    while (!open.empty()) {
        stretch s = open.back();
        open.pop_back();
        uint32_t at = furthest(points, count, s, square);
        if (square <= tolerance * tolerance)
            continue;
        keep[at] = true;
        open.push_back({s.first, at});
        open.push_back({at, s.last});
    }
    if (closed && std::count(keep.begin(), keep.end(), true) < 3)
        return std::vector<bool>(count, true); // nothing would be left of it
    return keep;
}

} // namespace draw
