#include "extent_cache.hpp"

namespace taiyen {

// K1: a kept extent is neither block nor free; of two frees one is refused.
bool keep_extent(thread_cache *cache, uint64_t page) {
    ty_heap *heap = cache->heap;
    kept_extents &kept = cache->kept;
    page_descriptor &head = heap->descriptors[page];
    if (!heap->keeps_extents.load(std::memory_order_relaxed) || kind_of(head) != page_extent_head)
        return false;
    uint32_t pages = head.length;
    if (pages == 0 || pages > kept_pages_max || kept.counts[pages] == kept_extents_max ||
        kept.pages + pages > kept_pages_total)
        return false;
    if (!claim_extent(head))
        return false; // just freed by another thread
    kept.firsts[pages][kept.counts[pages]++] = static_cast<uint32_t>(page);
    kept.pages += pages;
    return true;
}

// Takes a kept extent of exactly this length; there must be one.
static page_extent take_last(thread_cache *cache, uint32_t pages) {
    kept_extents &kept = cache->kept;
    uint32_t first = kept.firsts[pages][--kept.counts[pages]];
    kept.pages -= pages;
    unclaim_extent(cache->heap->descriptors[first]);
    return {first, pages};
}

page_extent take_kept_extent(thread_cache *cache, uint64_t pages) {
    uint64_t most = pages + (pages + 3) / 8;
    for (; pages <= most && pages <= kept_pages_max; pages++)
        if (cache->kept.counts[pages] != 0)
            return take_last(cache, static_cast<uint32_t>(pages));
    return {};
}

[[gnu::cold]] bool free_kept_extents(thread_cache *cache) {
    if (cache->kept.pages == 0)
        return false;
    os::lock_guard guard(cache->heap->pages_lock);
    for (uint32_t pages = 1; pages <= kept_pages_max; pages++) {
        while (cache->kept.counts[pages] != 0)
            static_cast<void>(
                release_pages(cache->heap, take_last(cache, pages))); // on failure damaged: verify reports it
    }
    return true;
}

} // namespace taiyen
