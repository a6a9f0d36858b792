#include "fingerprint.hpp"
#include "city.hpp"
#include "heap_file.hpp"
#include <xxhash.h>

namespace demo {
namespace {

fingerprint hash(const void *bytes, size_t count) {
    XXH128_hash_t value = XXH3_128bits(bytes, count);
    return {value.low64, value.high64};
}

fingerprint hash(const char *text) {
    return hash(view(text).data(), view(text).size());
}

} // namespace

fingerprint fingerprint_of(const city &place) {
    struct {
        fingerprint name, region, district, note;
        double latitude, longitude;
        char code[4];
        uint32_t edition;
    } content{hash(place.name),
              hash(place.region),
              hash(place.district),
              hash(place.note),
              place.where.latitude,
              place.where.longitude,
              {},
              place.edition};
    static_assert(sizeof content == 4 * 16 + 2 * 8 + 4 + 4, "no padding, or the hash would take it in");
    std::memcpy(content.code, place.home->code, sizeof content.code);
    return hash(&content, sizeof content);
}

} // namespace demo
