// Allocating and freeing for a thread that has entered a heap already.
#pragma once

#include "cache.hpp"

namespace taiyen {

void *alloc_entered(ty_heap *heap, thread_cache *cache, size_t size, size_t alignment, bool zeroed);
// cache may be NULL: then the gate's lock is held.
ty_status free_entered(ty_heap *heap, thread_cache *cache, const void *block);
ty_status not_writable(const char *verb, const ty_heap *heap);

} // namespace taiyen
