#include "descriptors.hpp"

#include "atlas.hpp"

namespace demo {

TY_TYPE_DECLARE(city);
TY_TYPE_DECLARE(country);
TY_TYPE_DECLARE(kd_node);

TY_TYPE_POINTER_TO(city_pointer, &city_descriptor)

TY_TYPE(city, TY_BYTES(city, name), TY_BYTES(city, region), TY_BYTES(city, district), TY_BYTES(city, note),
        TY_POINTER(city, home, &country_descriptor), TY_POINTER(city, next_in_bucket, &city_descriptor))

TY_TYPE(country, TY_POINTER_COUNTED(country, cities, count, &city_pointer_descriptor))

TY_TYPE(kd_node, TY_POINTER(kd_node, low, &kd_node_descriptor), TY_POINTER(kd_node, high, &kd_node_descriptor),
        TY_POINTER_COUNTED(kd_node, cities, count, &city_pointer_descriptor))

TY_TYPE(atlas, TY_POINTER_COUNTED(atlas, buckets, bucket_count, &city_pointer_descriptor),
        TY_POINTER(atlas, tree, &kd_node_descriptor), TY_POINTERS(atlas, countries, &country_descriptor))

} // namespace demo
