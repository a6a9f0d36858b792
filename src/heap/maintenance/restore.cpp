// Changes at given addresses, by recovery: in a heap that no other thread uses yet.
#include "../blocks/blocks.hpp"
#include "../spans/spans.hpp"
#include "../threads/threads.hpp"

#include <cstring>

namespace taiyen {
namespace {

// Zeroes the memory of a block, except pages that were never used: they read as zeros (H7).
void zero_used(const ty_heap *heap, char *from, size_t bytes, uint64_t top_before) {
    char *end = from + bytes;
    char *fresh = page_address(heap, top_before);
    if (end > fresh)
        end = fresh;
    if (from < end)
        memset(from, 0, static_cast<size_t>(end - from));
}

// A fork holds caches_lock from its first read of the heaps to its last. Set before the pause, so that no fork waits
// for its end.
void set_own(ty_heap *heap, bool own) {
    os::lock_guard guard(caches_lock);
    heap->own = own;
}

} // namespace

void heap_change_begin(ty_heap *heap) {
    heap_pause(heap, pause_to::change);
    // So that a free changes the persistent metadata at once, and the block can be taken again.
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        flush_cache(cache, give_up::all);
}

void heap_change_end(ty_heap *heap) {
    heap_resume(heap);
}

// Y3: a fork waits while it holds nothing; so it must not wait for its own thread's recovery.
void heap_restore_begin(ty_heap *heap) {
    if (!fault("fork_waits_for_its_own_recovery"))
        set_own(heap, true);
    heap_change_begin(heap);
}

void heap_restore_end(ty_heap *heap) {
    heap_change_end(heap);
    set_own(heap, false);
}

ty_status heap_restore_alloc(ty_heap *heap, void *address, size_t size) {
    uint64_t top_before = top_of(heap);
    if (ty_status status = alloc_at_paused(heap, address, size); status != TY_OK)
        return status;
    bool small = size <= heap->small_max;
    size_t bytes = small ? heap->classes[heap->class_of[(size + 7) / 8]].block_bytes
                         : (size + page_bytes - 1) / page_bytes * page_bytes;
    zero_used(heap, static_cast<char *>(address), bytes, top_before);
    return TY_OK;
}

ty_status heap_restore_free(ty_heap *heap, void *block) {
    return free_entered(heap, nullptr, block);
}

ty_status heap_restore_resize(ty_heap *heap, void *block, size_t size) {
    uint64_t top_before = top_of(heap);
    size_t before = 0, bytes = 0;
    if (ty_status status = resize_paused(heap, block, size, &before, &bytes); status != TY_OK)
        return status;
    if (bytes > before)
        zero_used(heap, static_cast<char *>(block) + before, bytes - before, top_before);
    return TY_OK;
}

heap_words heap_block_words(const ty_heap *heap) {
    constexpr uint64_t words = page_bytes / sizeof(uint64_t);
    return {first_user_page * words, heap->first_table_page * words};
}

} // namespace taiyen
