// Blocks of a heap that nothing leads to.
#pragma once

#include <taiyen/checks.h>
#include <taiyen/heap.h>

namespace taiyen {

// ty_each_unreached.
ty_status each_unreached(ty_heap *heap, ty_site_callback *callback, void *context);

} // namespace taiyen
