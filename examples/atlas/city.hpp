// The records of the atlas: ordinary structs with ordinary pointers. They live in the heap, so they are durable.
#pragma once

#include <cstddef>
#include <cstdint>

namespace demo {

// A point on the globe. The unit vector makes distances simple: neighbours across the date line or around a pole are as
// near in it as on the globe, and the nearer point by the straight line is the nearer by the great circle.
struct point {
    double latitude;  // degrees, north is positive
    double longitude; // degrees, east is positive
    double unit[3];
};

point point_at(double latitude, double longitude);

// The square of the straight distance between two points of the unit sphere, 0 to 4.
double chord_square(const point &a, const point &b);
double kilometres(double chord_square);

struct country;

struct city {
    char *name; // strings are separate blocks; NULL: empty
    char *region;
    char *district;
    char *note;
    country *home;
    city *next_in_bucket; // of the map by name
    uint64_t name_hash;
    uint32_t home_index; // this is home->cities[home_index]
    uint32_t edition;    // how often the record was changed
    point where;
};

struct country {
    char code[4];   // two capital letters
    uint32_t count; // of its cities
    city **cities;  // in no particular order
};

} // namespace demo
