// The entry points that allocate, free and resize.
#include "alloc.hpp"
#include "../pages/pages.hpp"
#include "../tables/tables.hpp"
#include "magazine.hpp"
#include "pointer.hpp"
#include "recycle.hpp"
#include "relocate.hpp"

#include <bit>
#include <cstring>

namespace taiyen {
namespace {

// Takes the block that was freed last.
[[gnu::always_inline]] inline void *take_freed(const ty_heap *heap, class_cache &entry) {
    const freed_block *freed = entry.freed--;
    span_state &state = heap->states[freed->number];
    state.used++;
    std::atomic<uint64_t> &word = state.bits[freed->index / 64];
    if (!fault("block_allocated_twice"))
        word.store(word.load(std::memory_order_relaxed) | uint64_t{1} << freed->index % 64, std::memory_order_relaxed);
    return freed->block;
}

// Takes a block from the cached bitmap word, which has a free one.
[[gnu::always_inline]] inline void *take_from_word(class_cache &entry) {
    uint64_t free = entry.free;
    uint64_t bit = free & -free;
    entry.free = free ^ bit;
    entry.word->store(entry.word->load(std::memory_order_relaxed) | bit, std::memory_order_relaxed);
    return entry.blocks + static_cast<unsigned>(__builtin_ctzll(free)) * entry.block_bytes;
}

void *take_small(thread_cache *cache, uint32_t size_class) {
    if (const cached_calls *cached = cache->heap->cached)
        return cached->take(cache, size_class);
    class_cache &entry = cache->classes[size_class];
    if (!is_bottom(entry.freed))
        return take_freed(cache->heap, entry);
    return entry.free != 0 || refill(cache, size_class) ? take_from_word(entry) : nullptr;
}

[[gnu::noinline]] void *alloc_slowly(thread_cache *cache, uint32_t size_class, size_t size) {
    ty_heap *heap = cache->heap;
    if (heap->checks != nullptr && heap->checks->calls->sample_due(heap)) [[unlikely]] {
        leave(cache); // the stack unwinder may allocate
        if (void *sample = heap->checks->calls->take_sample(heap, size, __builtin_return_address(0)))
            return sample;
        enter(cache);
    }
    void *block = take_small(cache, size_class);
    leave(cache);
    after_growth(heap);
    return block;
}

// A class whose blocks all have the alignment, since spans are aligned to their size. UINT32_MAX: none that wastes less
// than an extent.
uint32_t aligned_class(const ty_heap *heap, size_t size, size_t alignment) {
    if (size > heap->small_max)
        return UINT32_MAX;
    size_t run_bytes = size <= page_bytes ? page_bytes : (size + page_bytes - 1) / page_bytes * page_bytes;
    for (uint32_t c = heap->class_of[(size + 7) / 8]; c < heap->class_count; c++) {
        const class_info &info = heap->classes[c];
        if (info.block_bytes > run_bytes)
            break;
        if (info.block_bytes % alignment == 0 && alignment <= info.span_mask)
            return c;
    }
    return UINT32_MAX;
}

// Takes pages for a block of extent->count pages.
ty_status take_extent(ty_heap *heap, uint64_t align_pages, page_extent *extent, uint64_t *fresh_from,
                      memory_donors *donors) {
    os::lock_guard guard(heap->pages_lock);
    if (ty_status status = take_pages(heap, extent->count, align_pages, &extent->first, fresh_from); status != TY_OK)
        return status;
    heap->descriptors[extent->first] = {page_extent_head, 0, 0, extent->count, 0, 0};
    withdraw_donors(heap, *extent, *fresh_from, donors);
    return TY_OK;
}

enum class local_free { refused, done, noticed };

// Frees a block, given by its offset in the heap, of a span that the thread owns. Refused: it is something else, and
// nothing has changed. Noticed: after_free has more to do.
[[gnu::always_inline]] inline local_free free_own(thread_cache *cache, const void *block, uint64_t offset,
                                                  uint32_t *number) {
    const ty_heap *heap = cache->heap;
    *number = number_of(heap, offset / page_bytes);
    span_state &state = heap->states[*number]; // span number 0 stands for pages of no known span: no owner
    bool own = state.owner.load(std::memory_order_relaxed) == cache;
    if (!own || state.pending.load(std::memory_order_relaxed) != 0) [[unlikely]]
        return local_free::refused;
    class_cache *entry = &cache->classes[state.size_class];
    place_in_span place = find_place(state.reciprocal, offset & state.span_mask);
    std::atomic<uint64_t> &word = state.bits[place.index / 64];
    uint64_t bits =
        word.load(std::memory_order_relaxed); // bits past the last block are clear (H5: set exactly where allocated)
    if (!place.exact || !(bits >> place.index % 64 & 1)) [[unlikely]]
        return local_free::refused;
    if (!fault("freed_block_stays_allocated_in_the_bitmap") || is_bottom(entry->freed + 1))
        word.store(bits ^ uint64_t{1} << place.index % 64, std::memory_order_relaxed);
    freed_block *freed = entry->freed + 1;
    if (!is_bottom(freed)) [[likely]] {
        *freed = {static_cast<char *>(const_cast<void *>(block)), *number, place.index};
        entry->freed = freed;
    }
    return --state.used == state.notice ? local_free::noticed : local_free::done;
}

} // namespace

[[gnu::cold]] ty_status not_writable(const char *verb, const ty_heap *heap) {
    if (!heap_is_open(heap))
        return heap_closed(verb);
    if (heap->left)
        return failure(TY_E_FORKED, "%s: the heap belongs to the parent process", verb).remedy("do it there");
    return failure(TY_E_PERMISSION, "%s in the heap at %p: it is open for reading only", verb,
                   static_cast<void *>(heap->base))
        .remedy("open it for writing");
}

[[gnu::cold]] ty_status unsupported_by_checks(const char *verb, const ty_heap *heap) {
    return failure(TY_E_UNSUPPORTED, "%s in the heap at %p: it is checked", verb, static_cast<void *>(heap->base))
        .remedy("create the heap without checks");
}

void *alloc_extent_entered(ty_heap *heap, thread_cache *cache, size_t size, size_t alignment, bool zeroed) {
    if (size > heap->limit_bytes || alignment > heap->limit_bytes) {
        return no_block(
            failure(TY_E_MEMORY, "allocate a block of %zu bytes: more than the heap's limit", std::max(size, alignment))
                .remedy("use a heap with a larger limit_bytes"));
    }
    uint64_t pages = size == 0 ? 1 : (size + page_bytes - 1) / page_bytes;
    uint64_t align_pages =
        alignment <= page_bytes ? extent_alignment(heap, pages, aligned_extent_pages) : alignment / page_bytes;
    if (cache != nullptr && alignment <= page_bytes) {
        if (page_extent kept = take_kept_extent(cache, pages); kept.count != 0) {
            char *block = page_address(heap, kept.first);
            return zeroed ? memset(block, 0, kept.count * page_bytes) : block;
        }
    }
    page_extent extent{0, static_cast<uint32_t>(pages)};
    uint64_t fresh_from;
    memory_donors donors;
    ty_status status = take_extent(heap, align_pages, &extent, &fresh_from, &donors);
    if (status == TY_E_MEMORY && cache != nullptr && free_kept_extents(cache))
        status = take_extent(heap, align_pages, &extent, &fresh_from, &donors);
    if (status != TY_OK)
        return nullptr;
    recycle(heap, extent, fresh_from, donors);
    if (zeroed)
        zero_pages(heap, extent, fresh_from);
    return page_address(heap, extent.first);
}

void *alloc_entered(ty_heap *heap, thread_cache *cache, size_t size, size_t alignment, bool zeroed) {
    uint32_t size_class;
    if (alignment > 8)
        size_class = aligned_class(heap, size, alignment);
    else
        size_class = size <= heap->small_max ? heap->class_of[(size + 7) / 8] : UINT32_MAX;
    if (size_class == UINT32_MAX)
        return alloc_extent_entered(heap, cache, size, alignment, zeroed);
    void *block = take_small(cache, size_class);
    if (block != nullptr && zeroed)
        memset(block, 0, size);
    return block;
}

ty_status free_extent(ty_heap *heap, thread_cache *cache, const void *block, page_extent emptied) {
    uint64_t page = offset_in(heap, block) / page_bytes;
    bool is_block = false;
    if (emptied.count == 0 && cache != nullptr && page_address(heap, page) == block && keep_extent(cache, page))
        return TY_OK;
    {
        os::lock_guard guard(heap->pages_lock);
        page_extent extent;
        page_descriptor &head = heap->descriptors[page];
        bool sound = extent_at_head(heap, page, &extent);
        is_block = page_address(heap, page) == block && claim_extent(head);
        ty_status status = TY_OK;
        if (is_block)
            status = sound ? release_pages(heap, extent, emptied) : tables_damaged("the extent is wrong", heap, page);
        if (status != TY_OK) {
            unclaim_extent(head);
            return status;
        }
    }
    if (!is_block)
        return not_a_block("free", heap, block);
    decay_if_due(heap);
    return TY_OK;
}

ty_status free_entered(ty_heap *heap, thread_cache *cache, const void *block) {
    uint64_t offset = offset_in(heap, block);
    uint64_t page = offset / page_bytes;
    if (page < first_user_page || page >= top_of(heap))
        return not_a_block("free", heap, block);
    if (cache != nullptr && heap->cached != nullptr) {
        if (cached_free result = heap->cached->hold(cache, block); result != cached_free::elsewhere)
            return result == cached_free::cached ? TY_OK : not_a_block("free", heap, block);
    } else if (cache != nullptr) {
        uint32_t number;
        local_free result = free_own(cache, block, offset, &number);
        if (result == local_free::noticed)
            after_free(cache, number);
        if (result != local_free::refused)
            return TY_OK;
    }
    const page_descriptor &descriptor = heap->descriptors[page];
    if (kind_of(descriptor) != page_span)
        return free_extent(heap, cache, block, {});
    small_block place = small_block_at(heap, descriptor.size_class, offset);
    free_result result{};
    if (place.exact) {
        if (ty_status status = free_unowned(heap, cache, place, &result); status != TY_OK)
            return status;
    }
    if (result.overdue != nullptr) [[unlikely]]
        take_from_sleeper(result.overdue);
    if (!result.freed)
        return not_a_block("free", heap, block);
    decay_if_due(heap);
    return TY_OK;
}

namespace {

[[gnu::cold, gnu::noinline]] void *alloc_otherwise(ty_heap *heap, size_t size, size_t alignment, bool zeroed) {
    if (alignment != 0 && !std::has_single_bit(alignment)) {
        return no_block(
            failure(TY_E_ARGUMENT, "allocate with an alignment of %zu", alignment).remedy("give a power of two"));
    }
    if (!heap->writable)
        return no_block(not_writable("allocate", heap));
    if (checks_all(heap))
        return heap->checks->calls->alloc(heap, size, alignment, zeroed, __builtin_return_address(0));
    void *block = nullptr;
    {
        operation work(heap);
        if (work.cache() != nullptr)
            block = alloc_entered(heap, work.cache(), size, alignment, zeroed);
    }
    after_growth(heap);
    return block;
}

[[gnu::cold, gnu::noinline]] ty_status free_otherwise(void *block) {
    if (block == nullptr)
        return TY_OK;
    ty_heap *heap = heap_at(block);
    if (heap == nullptr)
        return not_a_block("free", nullptr, block);
    if (!heap->writable)
        return not_writable("free", heap);
    if (is_checked(heap, block)) [[unlikely]]
        return heap->checks->calls->free(heap, "free", block, __builtin_return_address(0));
    operation work(heap, cache_to_free);
    return free_entered(heap, work.cache(), block);
}

[[gnu::noinline]] ty_status free_noticed(thread_cache *cache, uint32_t number) {
    after_free(cache, number);
    leave(cache);
    return TY_OK;
}

[[gnu::noinline]] ty_status free_elsewhere(void *block) {
    return find_cache(block) ? heap_free(block) : free_otherwise(block);
}

} // namespace

void *heap_alloc(ty_heap *heap, size_t size, size_t alignment, bool zeroed) {
    if (alignment == 0 && !zeroed)
        return heap_alloc(heap, size);
    return alloc_otherwise(heap, size, alignment, zeroed);
}

// This and heap_free make only tail calls, so that they need no stack frame.
void *heap_alloc(ty_heap *heap, size_t size) {
    thread_cache *cache = cache_at(heap->slot);
    if (size > heap->small_max || cache == nullptr || !try_enter(cache)) [[unlikely]]
        return alloc_otherwise(heap, size, 0, false);
    uint32_t size_class = heap->class_of[(size + 7) / 8];
    class_cache &entry = cache->classes[size_class];
    void *block;
    if (!is_bottom(entry.freed)) [[likely]]
        block = take_freed(heap, entry);
    else if (entry.free != 0)
        block = take_from_word(entry);
    else
        return alloc_slowly(cache, size_class, size);
    leave(cache);
    return block;
}

void *alloc_cached_slowly(ty_heap *heap, size_t size) {
    thread_cache *cache = cache_at(heap->slot);
    if (cache == nullptr || !try_enter(cache, safepoint_magazines))
        return alloc_otherwise(heap, size, 0, false);
    if (size <= heap->small_max)
        return alloc_slowly(cache, heap->class_of[(size + 7) / 8], size);
    page_extent kept = take_kept_extent(cache, (size + page_bytes - 1) / page_bytes);
    leave(cache);
    return kept.count != 0 ? page_address(heap, kept.first) : alloc_otherwise(heap, size, 0, false);
}

void *heap_alloc_whole(ty_heap *heap, size_t size, size_t alignment, size_t *bytes) {
    if (alignment != 0 && !std::has_single_bit(alignment))
        return no_block(
            failure(TY_E_ARGUMENT, "allocate with an alignment of %zu", alignment).remedy("give a power of two"));
    if (!heap->writable)
        return no_block(not_writable("allocate", heap));
    if (checks_all(heap))
        return no_block(unsupported_by_checks("allocate a whole block", heap));
    uint32_t size_class = UINT32_MAX;
    if (alignment > 8)
        size_class = aligned_class(heap, size, alignment);
    else if (size <= heap->small_max)
        size_class = heap->class_of[(size + 7) / 8];
    operation work(heap);
    if (work.cache() == nullptr)
        return nullptr;
    if (size_class != UINT32_MAX) {
        *bytes = heap->classes[size_class].block_bytes;
        void *block = take_small(work.cache(), size_class);
        return block != nullptr ? memset(block, 0, *bytes) : nullptr;
    }
    if (size <= heap->small_max) // an extent must be larger than any small block, to be distinguishable from one
        size = heap->small_max + 1;
    void *block = alloc_extent_entered(heap, work.cache(), size, alignment, true);
    if (block != nullptr)
        *bytes = heap->descriptors[offset_in(heap, block) / page_bytes].length * page_bytes;
    return block;
}

ty_status heap_free(void *block) {
    __builtin_prefetch(block); // it is soon allocated again; a prefetch neither writes nor faults
    const thread_table *table = current_table;
    uint64_t offset = reinterpret_cast<uintptr_t>(block) - table->recent_base.load(std::memory_order_relaxed);
    if (offset >= table->recent_bytes.load(std::memory_order_relaxed)) [[unlikely]]
        return free_elsewhere(block);
    thread_cache *cache = table->recent.load(std::memory_order_relaxed);
    if (!try_enter(cache)) [[unlikely]]
        return free_otherwise(block);
    uint32_t number;
    local_free result = free_own(cache, block, offset, &number);
    if (result == local_free::noticed) [[unlikely]]
        return free_noticed(cache, number);
    leave(cache);
    return result == local_free::done ? TY_OK : free_otherwise(block);
}

ty_status alloc_at_paused(ty_heap *heap, void *address, size_t size) {
    uint64_t offset = offset_in(heap, address);
    uint64_t bytes = size == 0 ? 1 : size;
    bool inside = offset >= first_user_page * page_bytes && offset < heap->first_table_page * page_bytes &&
                  bytes <= heap->first_table_page * page_bytes - offset;
    if (!inside)
        return failure(TY_E_ARGUMENT, "allocate %zu byte%s at %p: not in the heap's blocks", size, plural(size),
                       address)
            .remedy("the heap's blocks lie from %p to %p", static_cast<void *>(page_address(heap, first_user_page)),
                    static_cast<void *>(page_address(heap, heap->first_table_page)));
    bool small = size <= heap->small_max;
    uint32_t size_class = small ? heap->class_of[(size + 7) / 8] : 0;
    bool possible = small ? small_block_at(heap, size_class, offset).exact : offset % page_bytes == 0;
    if (possible && small) {
        small_block place = small_block_at(heap, size_class, offset);
        possible = place.head >= first_user_page &&
                   place.head + uint64_t{heap->classes[size_class].pages} <= heap->first_table_page;
    }
    if (!possible)
        return failure(TY_E_ARGUMENT, "allocate at %p: no block of %zu byte%s can start there", address, size,
                       plural(size))
            .remedy("use an address that an allocation of this size has returned");
    if (small)
        return take_small_at(heap, size_class, offset);
    page_extent extent{static_cast<uint32_t>(offset / page_bytes),
                       static_cast<uint32_t>((bytes + page_bytes - 1) / page_bytes)};
    os::lock_guard guard(heap->pages_lock);
    ty_status status = take_pages_at(heap, extent);
    if (status == TY_OK)
        heap->descriptors[extent.first] = {page_extent_head, 0, 0, extent.count, 0, 0};
    return status;
}

ty_status heap_alloc_at(ty_heap *heap, void *address, size_t size) {
    if (!heap->writable)
        return not_writable("allocate", heap);
    if (checks_all(heap))
        return unsupported_by_checks("allocate at an address", heap);
    pause_guard paused(heap, pause_to::change); // owners change their spans without locks
    return alloc_at_paused(heap, address, size);
}

} // namespace taiyen
