// The atlas: cities, found by name, by country and by position. All of it lives in one heap, and is found again there
// under the root "atlas". Nothing here knows of files: a snapshot makes the whole of it durable.
//
// A function that throws may leave the atlas half changed. That needs no repair: discard the heap, and the last
// snapshot is what counts.
#pragma once

#include "city.hpp"
#include "fingerprint.hpp"
#include "kdtree.hpp"
#include <string_view>
#include <taiyen/taiyen.h>

namespace demo {

inline constexpr size_t country_slots = 26 * 26; // one for each pair of capital letters

struct atlas {
    city **buckets; // the map by name: chains of cities
    uint64_t bucket_count;
    uint64_t city_count;
    kd_node *tree;
    country *countries[country_slots]; // NULL: no city there
    uint64_t country_count;
    fingerprint content; // the sum of all cities' fingerprints, updated with every change
};

// The atlas of a heap; made if the heap has none yet.
atlas *atlas_of(ty_heap *heap);

struct city_data {
    std::string_view name;
    std::string_view region;
    std::string_view district;
    std::string_view country_code; // two capital letters
    double latitude;
    double longitude;
};

bool is_country_code(std::string_view code);

// Adds many cities, and builds the tree once, at the end.
class atlas_loader {
public:
    explicit atlas_loader(atlas *into) : into_(into) {}
    void add(const city_data &data);
    void finish();

private:
    atlas *into_;
    std::vector<city *> added_;
};

city *atlas_add(atlas *book, const city_data &data);
void atlas_remove(atlas *book, city *place);

void atlas_rename(atlas *book, city *place, std::string_view name);
void atlas_move(atlas *book, city *place, double latitude, double longitude);
void atlas_set_note(atlas *book, city *place, std::string_view note);

// The first city of that name, and the next of the same name; NULL if there is none.
city *atlas_find(const atlas *book, std::string_view name);
city *atlas_find_next(const city *place);

// The map's bucket for a hash.
inline uint64_t bucket_of(const atlas *book, uint64_t name_hash) {
    return name_hash & (book->bucket_count - 1);
}
uint64_t hash_name(std::string_view name);

} // namespace demo
