// Allocates and frees for a thread that has entered the heap.
#pragma once

#include "../pages/pages.hpp"
#include "../threads/threads.hpp"

namespace taiyen {

inline void *no_block(ty_status) {
    return nullptr; // the detail is set
}
void *alloc_entered(ty_heap *heap, thread_cache *cache, size_t size, size_t alignment, bool zeroed);
// An extent, whatever the size. cache may be NULL: then no extent of a thread cache is used.
void *alloc_extent_entered(ty_heap *heap, thread_cache *cache, size_t size, size_t alignment, bool zeroed);
// cache may be NULL: then the safepoint's lock is held.
ty_status free_entered(ty_heap *heap, thread_cache *cache, const void *block);
// The same for what is not a small block. The pages in emptied have no memory any more.
ty_status free_extent(ty_heap *heap, thread_cache *cache, const void *block, page_extent emptied);
// For a paused heap whose spans have no owner, or one whose remote frees are done.
ty_status alloc_at_paused(ty_heap *heap, void *address, size_t size);
ty_status resize_paused(ty_heap *heap, void *address, size_t size, size_t *bytes_before, size_t *bytes);
ty_status unsupported_by_checks(const char *verb, const ty_heap *heap);
ty_status not_writable(const char *verb, const ty_heap *heap);

} // namespace taiyen
