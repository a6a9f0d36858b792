// A k-d tree over the cities' unit vectors: finds the nearest without visiting everything. Leaves hold a few cities
// each; a branch splits its cities by one coordinate.
//
// K1: all cities below `low` have unit[axis] < split, all below `high` have unit[axis] >= split. K2: no leaf is empty,
// and a leaf has more than kd_leaf_capacity cities only if they are all at one point.
#pragma once

#include "city.hpp"
#include <taiyen/heap.h>
#include <vector>

namespace demo {

inline constexpr uint32_t kd_leaf_capacity = 16;
inline constexpr uint32_t kd_leaf = 3; // the "axis" of a leaf

struct kd_node {
    uint32_t axis;  // 0, 1, 2: a branch; kd_leaf: a leaf
    uint32_t count; // leaf: number of cities
    double split;   // branch
    kd_node *low;
    kd_node *high;
    city **cities; // leaf
};

// Builds a balanced tree; reorders the array. NULL for no cities.
kd_node *kd_build(ty_heap *heap, city **cities, size_t count);

// Adds or removes one city; *root may change. Uses the heap that the city lives in.
void kd_insert(kd_node **root, city *place);
void kd_remove(kd_node **root, const city *place);

struct neighbour {
    const city *place;
    double chord_square;
};

// The `count` cities nearest to a point, the nearest first. Exact.
std::vector<neighbour> kd_nearest(const kd_node *root, const point &from, size_t count);

} // namespace demo
