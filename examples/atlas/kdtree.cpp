#include "kdtree.hpp"
#include "heap_file.hpp"
#include <algorithm>

namespace demo {
namespace {

struct extent {
    uint32_t axis;
    double low;
    double width; // 0: all cities are at one point
};

extent widest_extent(city *const *cities, size_t count) {
    extent widest{0, 0, -1};
    for (uint32_t axis = 0; axis < 3; ++axis) {
        auto [low, high] = std::minmax_element(cities, cities + count, [axis](const city *a, const city *b) {
            return a->where.unit[axis] < b->where.unit[axis];
        });
        double width = (*high)->where.unit[axis] - (*low)->where.unit[axis];
        if (width > widest.width)
            widest = {axis, (*low)->where.unit[axis], width};
    }
    return widest;
}

kd_node *make_leaf(ty_heap *heap, city *const *cities, size_t count) {
    auto *leaf = make<kd_node>(heap);
    leaf->axis = kd_leaf;
    leaf->count = static_cast<uint32_t>(count);
    leaf->cities = make<city *>(heap, count);
    std::copy_n(cities, count, leaf->cities);
    return leaf;
}

void free_leaf(kd_node *leaf) {
    release(leaf->cities);
    release(leaf);
}

// The median, or the next larger value if the median is the smallest: so that neither side is empty (K2).
double split_value(city **cities, size_t count, const extent &by) {
    uint32_t axis = by.axis;
    std::nth_element(cities, cities + count / 2, cities + count,
                     [axis](const city *a, const city *b) { return a->where.unit[axis] < b->where.unit[axis]; });
    double split = cities[count / 2]->where.unit[axis];
    if (split > by.low)
        return split;
    split = 2;
    for (size_t i = 0; i < count; ++i)
        if (cities[i]->where.unit[axis] > by.low)
            split = std::min(split, cities[i]->where.unit[axis]);
    return split;
}

kd_node **side_of(kd_node *branch, const city *place) {
    return place->where.unit[branch->axis] < branch->split ? &branch->low : &branch->high;
}

void search(const kd_node *node, const point &from, size_t wanted, std::vector<neighbour> &found) {
    if (node == nullptr)
        return;
    if (node->axis == kd_leaf) {
        for (uint32_t i = 0; i < node->count; ++i) {
            neighbour candidate{node->cities[i], chord_square(from, node->cities[i]->where)};
            auto after =
                std::upper_bound(found.begin(), found.end(), candidate, [](const neighbour &a, const neighbour &b) {
                    return a.chord_square < b.chord_square;
                });
            if (found.size() == wanted && after == found.end())
                continue;
            found.insert(after, candidate);
            if (found.size() > wanted)
                found.pop_back();
        }
        return;
    }
    double away = from.unit[node->axis] - node->split;
    search(away < 0 ? node->low : node->high, from, wanted, found);
    // Everything on the other side is at least as far away as the splitting plane.
    if (found.size() < wanted || away * away <= found.back().chord_square)
        search(away < 0 ? node->high : node->low, from, wanted, found);
}

} // namespace

kd_node *kd_build(ty_heap *heap, city **cities, size_t count) {
    if (count == 0)
        return nullptr;
    extent widest = widest_extent(cities, count);
    if (count <= kd_leaf_capacity || widest.width <= 0)
        return make_leaf(heap, cities, count);

    auto *branch = make<kd_node>(heap);
    branch->axis = widest.axis;
    branch->split = split_value(cities, count, widest);
    city **middle = std::partition(cities, cities + count, [branch](const city *place) {
        return place->where.unit[branch->axis] < branch->split; // K1: which side a city is on
    });
    size_t low_count = static_cast<size_t>(middle - cities);
    branch->low = kd_build(heap, cities, low_count);
    branch->high = kd_build(heap, middle, count - low_count);
    return branch;
}

void kd_insert(kd_node **root, city *place) {
    kd_node **link = root;
    while (*link != nullptr && (*link)->axis != kd_leaf)
        link = side_of(*link, place);
    kd_node *leaf = *link;
    if (leaf == nullptr) { // the first city of all
        *link = make_leaf(ty_heap_of(place), &place, 1);
        return;
    }
    leaf->cities = resize(leaf->cities, leaf->count + 1, leaf);
    leaf->cities[leaf->count++] = place;
    if (leaf->count > kd_leaf_capacity && widest_extent(leaf->cities, leaf->count).width > 0) {
        *link = kd_build(ty_heap_of(leaf), leaf->cities, leaf->count);
        free_leaf(leaf);
    }
}

void kd_remove(kd_node **root, const city *place) {
    kd_node **parent_link = nullptr;
    kd_node **link = root;
    while (*link != nullptr && (*link)->axis != kd_leaf) {
        parent_link = link;
        link = side_of(*link, place);
    }
    kd_node *leaf = *link;
    city **end = leaf == nullptr ? nullptr : leaf->cities + leaf->count;
    city **found = leaf == nullptr ? nullptr : std::find(leaf->cities, end, place);
    if (found == end)
        throw failure("the city is not in the tree");
    *found = end[-1];
    if (--leaf->count > 0)
        return;

    *link = nullptr;
    free_leaf(leaf);
    if (parent_link != nullptr) { // K2: no leaf stays empty: the other side replaces the branch
        kd_node *branch = *parent_link;
        *parent_link = branch->low != nullptr ? branch->low : branch->high;
        release(branch);
    }
}

std::vector<neighbour> kd_nearest(const kd_node *root, const point &from, size_t count) {
    std::vector<neighbour> found;
    found.reserve(count + 1);
    if (count > 0)
        search(root, from, count, found);
    return found;
}

} // namespace demo
