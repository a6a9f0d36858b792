// Volatile heaps: the heap layer over anonymous memory.
#pragma once

#include "src/heap/heap.hpp"

namespace taiyen {

// The options are checked; zeros mean defaults.
ty_status volatile_create(const ty_heap_options &options, ty_heap **heap);
ty_status volatile_destroy(ty_heap *heap);

} // namespace taiyen
