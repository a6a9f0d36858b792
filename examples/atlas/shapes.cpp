#include "shapes.hpp"

#include "atlas.hpp"

namespace demo {

TY_SHAPE_DECLARE(city);
TY_SHAPE_DECLARE(country);
TY_SHAPE_DECLARE(kd_node);

TY_SHAPE_POINTER_TO(city_pointer, &city_shape)

TY_SHAPE(city, TY_BYTES(city, name), TY_BYTES(city, region), TY_BYTES(city, district), TY_BYTES(city, note),
         TY_POINTER(city, home, &country_shape), TY_POINTER(city, next_in_bucket, &city_shape))

TY_SHAPE(country, TY_POINTER_COUNTED(country, cities, count, &city_pointer_shape))

TY_SHAPE(kd_node, TY_POINTER(kd_node, low, &kd_node_shape), TY_POINTER(kd_node, high, &kd_node_shape),
         TY_POINTER_COUNTED(kd_node, cities, count, &city_pointer_shape))

TY_SHAPE(atlas, TY_POINTER_COUNTED(atlas, buckets, bucket_count, &city_pointer_shape),
         TY_POINTER(atlas, tree, &kd_node_shape), TY_POINTERS(atlas, countries, &country_shape))

} // namespace demo
