#include "scan.hpp"
#include "stopwatch.hpp"
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

namespace demo {
namespace {

point random_point(std::mt19937_64 &random) {
    std::uniform_real_distribution<double> sine(-1, 1);
    std::uniform_real_distribution<double> longitude(-180, 180);
    return point_at(std::asin(sine(random)) * 180 / std::numbers::pi, longitude(random));
}

point point_near_city(const atlas *book, std::mt19937_64 &random) {
    uint64_t bucket = random() % book->bucket_count;
    while (book->buckets[bucket] == nullptr)
        bucket = (bucket + 1) % book->bucket_count;
    std::normal_distribution<double> degrees(0, 0.1);
    const point &city = book->buckets[bucket]->where;
    return point_at(std::clamp(city.latitude + degrees(random), -90.0, 90.0), city.longitude + degrees(random));
}

} // namespace

double nearest_by_scan(const atlas *book, const point &from) {
    double nearest = std::numeric_limits<double>::infinity();
    for (uint64_t bucket = 0; bucket < book->bucket_count; ++bucket)
        for (const city *place = book->buckets[bucket]; place != nullptr; place = place->next_in_bucket)
            nearest = std::min(nearest, chord_square(from, place->where));
    return nearest;
}

scan_comparison compare_with_scan(const atlas *book, unsigned questions, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<point> from;
    for (unsigned i = 0; i < questions; ++i)
        from.push_back(i % 2 == 0 ? random_point(random) : point_near_city(book, random));
    std::vector<double> by_tree(questions);
    auto ask_tree = [&]() {
        stopwatch clock;
        for (unsigned i = 0; i < questions; ++i)
            by_tree[i] = kd_nearest(book->tree, from[i], 1).front().chord_square;
        return clock.ms() * 1e3 / questions;
    };
    scan_comparison compared;
    compared.tree_us = ask_tree();
    compared.tree_again_us = ask_tree();
    stopwatch clock;
    for (unsigned i = 0; i < questions; ++i)
        compared.wrong += nearest_by_scan(book, from[i]) != by_tree[i];
    compared.scan_us = clock.ms() * 1e3 / questions;
    return compared;
}

} // namespace demo
