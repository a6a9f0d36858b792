#include "antimeridian.hpp"
#include <cmath>

namespace draw {
namespace {

constexpr double edge = 180;

// The same outline without a jump: where it crosses the meridian, it continues beyond 180 degrees.
std::vector<point> unwrapped(const std::vector<point> &ring) {
    std::vector<point> out;
    double turns = 0;
    for (const point &p : ring) {
        double x = p.x + turns;
        if (!out.empty() && std::abs(x - out.back().x) > edge) {
            turns += x > out.back().x ? -2 * edge : 2 * edge;
            x = p.x + turns;
        }
        out.push_back({x, p.y});
    }
    if (std::abs(out.back().x - out.front().x) > edge) { // around a pole
        double pole = out.front().y < 0 ? -90 : 90;
        double around = out.back().x > out.front().x ? 2 * edge : -2 * edge;
        out.push_back({out.front().x + around, out.front().y});
        out.push_back({out.front().x + around, pole});
        out.push_back({out.front().x, pole});
    }
    return out;
}

// Some files have a ring along the lower edge of the map: the South Pole, one point of the globe.
bool is_pole(const std::vector<point> &ring) {
    return std::all_of(ring.begin(), ring.end(), [](point p) { return std::abs(p.y) > 89.99; });
}

// The part of an outline on one side of a meridian (Sutherland and Hodgman); side 1: west of it, -1: east.
std::vector<point> clipped(const std::vector<point> &ring, double meridian, double side) {
    std::vector<point> out;
    for (size_t i = 0; i < ring.size(); ++i) {
        point a = ring[i];
        point b = ring[(i + 1) % ring.size()];
        bool a_in = (meridian - a.x) * side >= 0;
        bool b_in = (meridian - b.x) * side >= 0;
        if (a_in)
            out.push_back(a);
        if (a_in != b_in && a.x != meridian && b.x != meridian)
            out.push_back({meridian, a.y + (b.y - a.y) * (meridian - a.x) / (b.x - a.x)});
    }
    return out;
}

bool has_extent(const std::vector<point> &ring) {
    constexpr double narrow = 1e-6;
    box all;
    for (const point &p : ring)
        all.add(p);
    return ring.size() >= 3 && all.high_x - all.low_x > narrow;
}

} // namespace

std::vector<rings> cut_at_antimeridian(const rings &polygon) {
    rings whole;
    for (const std::vector<point> &ring : polygon)
        if (!is_pole(ring))
            whole.push_back(unwrapped(ring));
    if (whole == polygon)
        return {polygon};
    std::vector<rings> pieces;
    for (double shift : {0.0, 2 * edge, -2 * edge}) {
        rings piece;
        for (std::vector<point> ring : whole) {
            for (point &p : ring)
                p.x += shift;
            ring = clipped(clipped(ring, edge, 1), -edge, -1);
            if (has_extent(ring))
                piece.push_back(ring);
            else if (piece.empty())
                break; // nothing of the outer ring, so nothing of holes
        }
        if (!piece.empty())
            pieces.push_back(piece);
    }
    return pieces;
}

} // namespace draw
