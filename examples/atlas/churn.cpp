#include "churn.hpp"
#include <cmath>
#include <numbers>
#include <string>

namespace demo {

double churn::uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(random_() >> 11) / 9007199254740992.0); // 2^53
}

// Some city: the first one from a random bucket on.
city *churn::pick() {
    for (uint64_t bucket = below(book_->bucket_count);; bucket = (bucket + 1) % book_->bucket_count)
        if (book_->buckets[bucket] != nullptr)
            return book_->buckets[bucket];
}

void churn::add() {
    std::string name = "New Town " + std::to_string(below(1000000));
    const char code[2] = {static_cast<char>('A' + below(26)), static_cast<char>('A' + below(26))};
    atlas_add(book_, {.name = name,
                      .region = below(2) == 0 ? "Somewhere" : "",
                      .district = "",
                      .country_code = {code, 2},
                      .latitude = std::asin(uniform(-1, 1)) * 180 / std::numbers::pi,
                      .longitude = uniform(-180, 180)});
}

// Notes are mostly short, some fill pages, and a third are removed.
void churn::set_note(city *place) {
    uint64_t limit = below(3) == 0 ? 1 : below(200) == 0 ? 50000 : 200;
    std::string note(below(limit), '.');
    for (char &letter : note)
        letter = static_cast<char>('a' + below(26));
    atlas_set_note(book_, place, note);
}

void churn::change_one() {
    uint64_t what = book_->city_count < 2 ? 0 : below(8);
    if (what == 0)
        add();
    else if (what == 1)
        atlas_remove(book_, pick());
    else if (what == 2)
        atlas_rename(book_, pick(), "Renamed " + std::to_string(below(1000000)));
    else if (what == 3)
        atlas_move(book_, pick(), uniform(-90, 90), uniform(-180, 180));
    else
        set_note(pick());
}

} // namespace demo
