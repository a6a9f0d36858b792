#include "survey.hpp"
#include "heap_file.hpp"
#include <algorithm>

namespace demo {
namespace {

// Adds up addresses so that two ways to the same cities can be compared: the same count and the same sum.
uint64_t scatter(const void *address) {
    uint64_t x = reinterpret_cast<uintptr_t>(address) * 0x9e3779b97f4a7c15u;
    return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
}

// Sines may differ in their last bits if the atlas was made on another machine.
bool is_consistent(const point &where) {
    constexpr double tolerance = 1e-12;
    return chord_square(where, point_at(where.latitude, where.longitude)) < tolerance * tolerance;
}

struct tally {
    uint64_t count = 0;
    uint64_t sum = 0;
    void add(const city *place) {
        ++count;
        sum += scatter(place);
    }
    bool operator==(const tally &) const = default;
};

class surveyor {
public:
    explicit surveyor(const atlas *book) : book_(book), heap_(ty_heap_of(book)) {}

    survey run() {
        tally by_name;
        tally by_place;
        tally by_country;
        if (owns(book_) && owns(book_->buckets)) {
            walk_map(by_name);
            walk_tree(book_->tree, box{}, 0, by_place);
            walk_countries(by_country);
        }
        expect(by_name.count == book_->city_count, "the map does not hold as many cities as the atlas counts");
        expect(by_place == by_name, "the tree and the map do not hold the same cities");
        expect(by_country == by_name, "the countries and the map do not hold the same cities");
        expect(result_.content == book_->content, "the content is not what the changes to it add up to");
        result_.cities = by_name.count;
        return result_;
    }

private:
    // What the branches above say about a node's cities (K1: the sides of a split).
    struct box {
        double low[3] = {-2, -2, -2};
        double high[3] = {2, 2, 2};
    };

    bool sound() const { return result_.problem.empty(); }

    bool expect(bool holds, const char *problem) {
        if (!holds && sound())
            result_.problem = problem;
        return sound();
    }

    // Counts a block; false if the pointer to it leads out of the heap.
    bool owns(const void *block) {
        ++result_.blocks;
        return expect(ty_heap_of(block) == heap_, "a pointer leads out of the heap");
    }

    bool owns_text(const char *text) { return text == nullptr || owns(text); }

    void walk_map(tally &seen) {
        for (uint64_t bucket = 0; bucket < book_->bucket_count && sound(); ++bucket) {
            for (const city *place = book_->buckets[bucket]; place != nullptr; place = place->next_in_bucket) {
                if (!owns(place) || !owns_text(place->name) || !owns_text(place->region) ||
                    !owns_text(place->district) || !owns_text(place->note) ||
                    !expect(ty_heap_of(place->home) == heap_, "a city has no country") ||
                    !expect(is_consistent(place->where), "a city's unit vector is not that of its place") ||
                    !expect(place->name_hash == hash_name(view(place->name)), "a name's hash is wrong") ||
                    !expect(bucket_of(book_, place->name_hash) == bucket, "a city is in the wrong bucket") ||
                    !expect(seen.count < book_->city_count, "the map holds more cities than the atlas counts"))
                    return;
                seen.add(place);
                result_.content += fingerprint_of(*place);
            }
        }
    }

    void walk_tree(const kd_node *node, const box &within, int depth, tally &seen) {
        constexpr int depth_limit = 1000;
        if (node == nullptr || !owns(node) || !expect(depth < depth_limit, "the tree is bottomless"))
            return;
        if (node->axis == kd_leaf) {
            walk_leaf(node, within, seen);
            return;
        }
        if (!expect(node->axis < 3 && node->low != nullptr && node->high != nullptr, "a branch of the tree is broken"))
            return;
        box below = within;
        box above = within;
        below.high[node->axis] = std::min(below.high[node->axis], node->split);
        above.low[node->axis] = std::max(above.low[node->axis], node->split);
        walk_tree(node->low, below, depth + 1, seen);
        walk_tree(node->high, above, depth + 1, seen);
    }

    void walk_leaf(const kd_node *leaf, const box &within, tally &seen) {
        if (!expect(leaf->count > 0, "a leaf of the tree is empty") || !owns(leaf->cities))
            return;
        for (uint32_t i = 0; i < leaf->count; ++i) {
            const city *place = leaf->cities[i];
            if (!expect(ty_heap_of(place) == heap_, "a pointer of the tree leads out of the heap"))
                return;
            for (int axis = 0; axis < 3; ++axis) {
                double at = place->where.unit[axis];
                expect(at >= within.low[axis] && at < within.high[axis], "a city is in the wrong leaf of the tree");
            }
            seen.add(place);
        }
    }

    void walk_countries(tally &seen) {
        uint64_t count = 0;
        for (const country *home : book_->countries) {
            if (home == nullptr)
                continue;
            ++count;
            if (!owns(home) || !owns(home->cities))
                return;
            for (uint32_t i = 0; i < home->count; ++i) {
                const city *place = home->cities[i];
                if (!expect(ty_heap_of(place) == heap_ && place->home == home && place->home_index == i,
                            "a country lists a city that is not its own"))
                    return;
                seen.add(place);
            }
        }
        expect(count == book_->country_count, "there are not as many countries as the atlas counts");
    }

    const atlas *book_;
    ty_heap *heap_;
    survey result_;
};

} // namespace

survey survey_atlas(const atlas *book) {
    return surveyor(book).run();
}

} // namespace demo
