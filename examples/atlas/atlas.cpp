#include "atlas.hpp"
#include "heap_file.hpp"
#include <algorithm>
#include <cmath>
#include <numbers>
#include <xxhash.h>

namespace demo {
namespace {

constexpr uint64_t first_bucket_count = 1024;

void link_name(atlas *book, city *place) {
    city **bucket = &book->buckets[bucket_of(book, place->name_hash)];
    place->next_in_bucket = *bucket;
    *bucket = place;
}

void unlink_name(atlas *book, city *place) {
    city **link = &book->buckets[bucket_of(book, place->name_hash)];
    while (*link != nullptr && *link != place)
        link = &(*link)->next_in_bucket;
    if (*link == nullptr)
        throw failure("the city is not in the map");
    *link = place->next_in_bucket;
}

// Doubles the buckets once there are as many cities.
void grow_map(atlas *book) {
    city **old = book->buckets;
    uint64_t old_count = book->bucket_count;
    book->buckets = make<city *>(ty_heap_of(book), old_count * 2);
    book->bucket_count = old_count * 2;
    for (uint64_t i = 0; i < old_count; ++i) {
        for (city *place = old[i], *next = nullptr; place != nullptr; place = next) {
            next = place->next_in_bucket;
            link_name(book, place);
        }
    }
    release(old);
}

size_t country_slot(std::string_view code) {
    return static_cast<size_t>(code[0] - 'A') * 26 + static_cast<size_t>(code[1] - 'A');
}

void link_country(atlas *book, city *place, std::string_view code) {
    country *&home = book->countries[country_slot(code)];
    if (home == nullptr) {
        home = make<country>(ty_heap_of(book));
        std::memcpy(home->code, code.data(), 2);
        ++book->country_count;
    }
    home->cities = resize(home->cities, home->count + 1, home);
    home->cities[home->count] = place;
    place->home = home;
    place->home_index = home->count++;
}

void unlink_country(atlas *book, city *place) {
    country *home = place->home;
    city *last = home->cities[--home->count];
    home->cities[place->home_index] = last;
    last->home_index = place->home_index;
    if (home->count > 0)
        return;
    book->countries[country_slot(home->code)] = nullptr;
    --book->country_count;
    release(home->cities);
    release(home);
}

city *make_city(atlas *book, const city_data &data) {
    if (!is_country_code(data.country_code))
        throw failure("a country code is two capital letters");
    ty_heap *heap = ty_heap_of(book);
    city *place = make<city>(heap);
    place->name = copy_text(heap, data.name);
    place->region = copy_text(heap, data.region);
    place->district = copy_text(heap, data.district);
    place->name_hash = hash_name(data.name);
    place->where = point_at(data.latitude, data.longitude);
    if (book->city_count == book->bucket_count)
        grow_map(book);
    link_name(book, place);
    link_country(book, place, data.country_code);
    ++book->city_count;
    book->content += fingerprint_of(*place);
    return place;
}

// Around every change of a city: subtracts its old content from the sum, adds the new one.
void begin_edit(atlas *book, const city *place) {
    book->content -= fingerprint_of(*place);
}

void end_edit(atlas *book, city *place) {
    ++place->edition;
    book->content += fingerprint_of(*place);
}

} // namespace

point point_at(double latitude, double longitude) {
    double phi = latitude * std::numbers::pi / 180;
    double lambda = longitude * std::numbers::pi / 180;
    return {latitude, longitude, {std::cos(phi) * std::cos(lambda), std::cos(phi) * std::sin(lambda), std::sin(phi)}};
}

double chord_square(const point &a, const point &b) {
    double x = a.unit[0] - b.unit[0];
    double y = a.unit[1] - b.unit[1];
    double z = a.unit[2] - b.unit[2];
    return x * x + y * y + z * z;
}

double kilometres(double chord_square) {
    constexpr double earth_radius_km = 6371.0;
    return 2 * earth_radius_km * std::asin(std::min(1.0, std::sqrt(chord_square) / 2));
}

uint64_t hash_name(std::string_view name) {
    return XXH3_64bits(name.data(), name.size());
}

bool is_country_code(std::string_view code) {
    auto capital = [](char letter) { return letter >= 'A' && letter <= 'Z'; };
    return code.size() == 2 && capital(code[0]) && capital(code[1]);
}

atlas *atlas_of(ty_heap *heap) {
    auto *book = static_cast<atlas *>(ty_root(heap, "atlas"));
    if (book == nullptr) {
        book = make<atlas>(heap);
        book->buckets = make<city *>(heap, first_bucket_count);
        book->bucket_count = first_bucket_count;
        check(ty_root_set(heap, "atlas", book));
    }
    return book;
}

void atlas_loader::add(const city_data &data) {
    added_.push_back(make_city(into_, data));
}

void atlas_loader::finish() {
    if (into_->tree == nullptr) {
        into_->tree = kd_build(ty_heap_of(into_), added_.data(), added_.size());
    } else {
        for (city *place : added_)
            kd_insert(&into_->tree, place);
    }
    added_.clear();
}

city *atlas_add(atlas *book, const city_data &data) {
    city *place = make_city(book, data);
    kd_insert(&book->tree, place);
    return place;
}

void atlas_remove(atlas *book, city *place) {
    book->content -= fingerprint_of(*place);
    kd_remove(&book->tree, place);
    unlink_name(book, place);
    unlink_country(book, place);
    --book->city_count;
    release(place->name);
    release(place->region);
    release(place->district);
    release(place->note);
    release(place);
}

void atlas_rename(atlas *book, city *place, std::string_view name) {
    begin_edit(book, place);
    unlink_name(book, place);
    release(place->name);
    place->name = copy_text(ty_heap_of(book), name);
    place->name_hash = hash_name(name);
    link_name(book, place);
    end_edit(book, place);
}

void atlas_move(atlas *book, city *place, double latitude, double longitude) {
    begin_edit(book, place);
    kd_remove(&book->tree, place);
    place->where = point_at(latitude, longitude);
    kd_insert(&book->tree, place);
    end_edit(book, place);
}

void atlas_set_note(atlas *book, city *place, std::string_view note) {
    begin_edit(book, place);
    if (note.empty()) {
        release(place->note);
        place->note = nullptr;
    } else {
        place->note = resize(place->note, note.size() + 1, place);
        std::memcpy(place->note, note.data(), note.size());
        place->note[note.size()] = '\0';
    }
    end_edit(book, place);
}

city *atlas_find(const atlas *book, std::string_view name) {
    uint64_t hash = hash_name(name);
    city *place = book->buckets[bucket_of(book, hash)];
    while (place != nullptr && (place->name_hash != hash || view(place->name) != name))
        place = place->next_in_bucket;
    return place;
}

city *atlas_find_next(const city *place) {
    city *next = place->next_in_bucket;
    while (next != nullptr && (next->name_hash != place->name_hash || view(next->name) != view(place->name)))
        next = next->next_in_bucket;
    return next;
}

} // namespace demo
