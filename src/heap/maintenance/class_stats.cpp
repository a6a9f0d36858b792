// Statistics by size class and by thread: counted from the persistent metadata and the owners of spans, so that the
// fast path counts nothing.
#include "walk.hpp"

#include <new>

namespace taiyen {
namespace {

// Results in mapped memory, passed to a callback after the pause.
template <class Figures>
class metric_list {
public:
    ty_status start(size_t room) {
        bytes_ = room * sizeof(Figures);
        void *memory;
        ty_status status = os::map_memory(bytes_, os::memory_hint::none, &memory);
        if (status == TY_OK)
            all_ = static_cast<Figures *>(memory);
        return status;
    }
    ~metric_list() { os::unmap_memory(all_, bytes_); }
    metric_list() = default;
    metric_list(const metric_list &) = delete;
    metric_list &operator=(const metric_list &) = delete;
    Figures &operator[](size_t i) { return all_[i]; }

private:
    Figures *all_ = nullptr;
    size_t bytes_ = 0;
};

void count_span(const ty_heap *heap, page_extent extent, ty_class_stats *stats) {
    const class_info &info = heap->classes[heap->descriptors[extent.first].size_class];
    uint64_t live = count_allocated(heap, info, extent.first);
    stats->spans++;
    stats->span_bytes += extent.count * page_bytes;
    stats->block_count += info.blocks;
    stats->live_blocks += live;
    stats->live_bytes += live * info.block_bytes;
}

void count_extent(page_extent extent, ty_class_stats *stats) {
    stats->spans++;
    stats->span_bytes += extent.count * page_bytes;
    stats->block_count++;
    stats->live_blocks++;
    stats->live_bytes += extent.count * page_bytes;
}

ty_status count_classes(ty_heap *heap, metric_list<ty_class_stats> *list) {
    pause_guard paused(heap);
    extent_walk walk(heap);
    page_extent extent;
    while (walk.next(&extent)) {
        if (kind_at(heap, extent.first) == page_span)
            count_span(heap, extent, &(*list)[heap->descriptors[extent.first].size_class]);
        else if (kind_at(heap, extent.first) == page_extent_head)
            count_extent(extent, &(*list)[heap->class_count]);
    }
    return walk.damaged() ? tables_damaged("no extent starts there", heap, walk.page()) : TY_OK;
}

size_t count_caches(const ty_heap *heap) {
    size_t caches = 0;
    for (const thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        caches += cache->table != nullptr; // the others rest
    return caches;
}

void count_owned(const ty_heap *heap, const thread_cache *cache, ty_thread_stats *stats) {
    stats->struct_size = sizeof *stats;
    stats->thread = cache->thread;
    for (uint32_t c = 0; c < heap->class_count; c++) {
        const class_info &info = heap->classes[c];
        for (uint32_t number = cache->classes[c].owned; number != 0; number = heap->states[number].next_owned) {
            stats->spans++;
            stats->span_bytes += info.pages * page_bytes;
            stats->free_bytes += uint64_t{info.blocks - heap->states[number].used} * info.block_bytes;
        }
    }
}

} // namespace

ty_status heap_each_class(ty_heap *heap, ty_class_callback *callback, void *context) {
    metric_list<ty_class_stats> list;
    if (ty_status status = list.start(heap->class_count + size_t{1}); status != TY_OK)
        return status;
    if (ty_status status = count_classes(heap, &list); status != TY_OK)
        return status;
    for (uint32_t c = 0; c <= heap->class_count; c++) {
        list[c].struct_size = sizeof(ty_class_stats);
        list[c].block_bytes = c < heap->class_count ? heap->classes[c].block_bytes : 0;
        if (list[c].spans != 0 && !callback(&list[c], context))
            break;
    }
    return TY_OK;
}

ty_status heap_each_thread(ty_heap *heap, ty_thread_callback *callback, void *context) {
    metric_list<ty_thread_stats> list;
    size_t count;
    give_up_ended_threads();
    {
        pause_guard paused(heap);
        os::lock_guard guard(heap->safepoint_lock);
        count = count_caches(heap);
        if (ty_status status = count != 0 ? list.start(count) : TY_OK; status != TY_OK)
            return status;
        size_t i = 0;
        for (const thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
            if (cache->table != nullptr)
                count_owned(heap, cache, &list[i++]);
    }
    for (size_t i = 0; i < count; i++)
        if (!callback(&list[i], context))
            break;
    return TY_OK;
}

bool heap_size_class(const ty_heap *heap, size_t number, ty_size_class *found) {
    if (number >= heap->class_count)
        return false;
    *found = {heap->classes[number].block_bytes, heap->classes[number].pages * page_bytes};
    return true;
}

} // namespace taiyen
