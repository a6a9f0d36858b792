#include "spans.hpp"

#include "../pages/pages.hpp"
#include "span_lists.hpp"

namespace taiyen {
namespace {

// A sweep step examines so many extents when a thread needs another span.
constexpr uint32_t sweep_extents = 64;

// Loads the free blocks of a word of the current span into the cache: the next word that has any, cyclically. H5: bits
// past the last block stand for no block.
bool next_word(const ty_heap *heap, const class_info &info, class_cache &entry) {
    span_state &state = heap->states[entry.current];
    std::atomic<uint64_t> *words = state.bits;
    auto last = static_cast<size_t>(entry.word - words); // of another span: out of bounds, and the search starts at 0
    uint32_t from = last < info.words ? static_cast<uint32_t>(last) + 1 : 0;
    for (uint32_t n = 0; n < info.words; n++) {
        uint32_t i = from + n < info.words ? from + n : from + n - info.words;
        uint64_t free = ~words[i].load(std::memory_order_relaxed) &
                        (fault("bits_after_the_last_block_allocated") ? ~uint64_t{0} : word_mask(info, i));
        if (free == 0)
            continue;
        entry.free = free;
        entry.word = words + i;
        entry.blocks = page_address(heap, state.head) + uint64_t{i} * 64 * info.block_bytes;
        state.used += count_bits(free);
        return true;
    }
    return false;
}

// Frees the blocks of the cached word that were not taken.
void drop_word(const ty_heap *heap, class_cache &entry) {
    if (entry.free != 0)
        heap->states[entry.current].used -= count_bits(entry.free);
    entry.free = 0;
}

[[gnu::noinline]] bool make_current(const ty_heap *heap, uint32_t size_class, class_cache &entry, uint32_t number) {
    if (entry.empty == number)
        entry.empty = 0;
    entry.current = number;
    entry.block_bytes = heap->classes[size_class].block_bytes;
    heap->states[number].notice = notice_never;
    return next_word(heap, heap->classes[size_class], entry);
}

// The current span has no free block left. after_free will handle frees in it.
void retire_current(const ty_heap *heap, const class_info &info, class_cache &entry) {
    uint32_t number = entry.current;
    if (number == 0)
        return;
    entry.current = 0;
    heap->states[number].used = info.blocks;
    place_span(heap, info, entry.bins, number);
}

// A span that was not known yet, found by the sweep.
struct found_span {
    uint32_t head;
    uint32_t size_class;
};

// Continues the sweep, for a bounded number of extents. False: it was complete already. The caller holds no lock.
bool sweep_on(ty_heap *heap) {
    if (heap->swept.load(std::memory_order_relaxed))
        return false;
    found_span found[sweep_extents];
    uint32_t count = 0;
    {
        os::lock_guard guard(heap->pages_lock);
        uint64_t page = heap->sweep_next;
        for (uint32_t extents = 0; extents < sweep_extents && page < heap->sweep_end; extents++) {
            page = next_head(heap, page, heap->sweep_end); // extents may have merged since the last step
            page_extent extent;
            if (page >= heap->sweep_end || !extent_at_head(heap, page, &extent)) {
                page = page < heap->sweep_end ? page + 1 : page; // damaged: verify reports it; here it is just no span
                continue;
            }
            if (kind_of(heap->descriptors[page]) == page_span)
                found[count++] = {extent.first, heap->descriptors[page].size_class};
            page += extent.count;
        }
        heap->sweep_next = page;
        if (page >= heap->sweep_end)
            heap->swept.store(true, std::memory_order_relaxed);
    }
    for (uint32_t i = 0; i < count; i++) {
        os::lock_guard guard(lock_of(heap, found[i].size_class));
        if (number_of(heap, found[i].head) != 0)
            continue;
        if (uint32_t number = know_span(heap, found[i].size_class, found[i].head); number != 0)
            place_shared(heap, number);
    }
    return true;
}

// Makes a span with free blocks from these bins the current one: of the cache's own, or without owner. Under the
// class's lock for the latter.
bool take_span(thread_cache *cache, uint32_t size_class, span_bins &bins) {
    ty_heap *heap = cache->heap;
    const class_info &info = heap->classes[size_class];
    class_cache &entry = cache->classes[size_class];
    uint32_t number;
    while ((number = pick_span(heap, info, bins)) != 0) {
        unlink_span(heap, bins, number);
        if (&bins != &entry.bins)
            claim_span(cache, size_class, number);
        if (make_current(heap, size_class, entry, number))
            return true;
        retire_current(heap, info, entry);
    }
    return false;
}

// Under the class's lock.
bool adopt_shared(thread_cache *cache, uint32_t size_class) {
    return take_span(cache, size_class, cache->heap->spans[size_class].shared);
}

} // namespace

// The work of refill, under the locks that it takes.
static bool find_free(thread_cache *cache, uint32_t size_class) {
    ty_heap *heap = cache->heap;
    const class_info &info = heap->classes[size_class];
    class_cache &entry = cache->classes[size_class];
    if (entry.current != 0 && next_word(heap, info, entry))
        return true;
    if (cache->remote[size_class].load(std::memory_order_relaxed) != 0) {
        flush_remote(cache, size_class);
        if (entry.current != 0 && next_word(heap, info, entry))
            return true;
    }
    retire_current(heap, info, entry);
    if (take_span(cache, size_class, entry.bins))
        return true;
    {
        os::lock_guard guard(lock_of(heap, size_class));
        if (adopt_shared(cache, size_class))
            return true;
    }
    bool more = heap->cached != nullptr && heap->cached->trim(cache, size_class);
    more = sweep_on(heap) || more; // only a step of it: the rest comes when the next span is needed
    os::lock_guard guard(lock_of(heap, size_class));
    if (more && adopt_shared(cache, size_class))
        return true;
    uint32_t number;
    if (new_span(heap, size_class, &number) != TY_OK)
        return false;
    claim_span(cache, size_class, number);
    return make_current(heap, size_class, entry, number);
}

// H8: no span stays empty, except one per class and cache.
void place_freed(thread_cache *cache, uint32_t number) {
    ty_heap *heap = cache->heap;
    uint32_t size_class = heap->states[number].size_class;
    class_cache &entry = cache->classes[size_class];
    unlink_span(heap, entry.bins, number);
    if (is_empty(heap->states[number])) {
        if (entry.empty == 0)
            entry.empty = number;
        if (entry.empty != number && claim_empty(heap->states[number])) {
            os::lock_guard guard(lock_of(heap, size_class));
            if (release_span(heap, number) == TY_OK)
                return;
        }
    }
    place_span(heap, heap->classes[size_class], entry.bins, number);
}

bool refill(thread_cache *cache, uint32_t size_class) {
    cache->asleep = false;
    bool found = find_free(cache, size_class);
    decay_if_due(cache->heap); // what other threads freed may just have emptied spans
    return found;
}

void after_free(thread_cache *cache, uint32_t number) {
    place_freed(cache, number);
    decay_if_due(cache->heap);
}

small_block small_block_at(const ty_heap *heap, uint32_t size_class, uint64_t offset) {
    const class_info &info = heap->classes[size_class];
    place_in_span place = find_place(info.reciprocal, offset & info.span_mask);
    return {size_class, head_of_span(info, offset / page_bytes), place.index, place.index < info.blocks && place.exact};
}

bool is_allocated(const ty_heap *heap, const small_block &block) {
    if (block.index >= heap->classes[block.size_class].blocks)
        return false;
    uint64_t word = bitmap_of(heap, block.head)[block.index / 64].load(std::memory_order_relaxed);
    return word >> block.index % 64 & 1;
}

bool is_live(const ty_heap *heap, const small_block &block) {
    return is_allocated(heap, block) &&
           !(heap->writable &&
             remote_of(heap, block.head)[block.index / 64].load(std::memory_order_relaxed) >> block.index % 64 & 1);
}

// For a span without owner, or owned by the calling thread with pending blocks. *elsewhere: another thread has become
// its owner, and nothing was done.
[[gnu::noinline]] static ty_status free_directly(ty_heap *heap, const thread_cache *cache, const small_block &block,
                                                 bool *elsewhere, bool *freed) {
    os::lock_guard guard(lock_of(heap, block.size_class));
    const page_descriptor &page = heap->descriptors[block.head];
    if (page.kind != page_span || page.size_class != block.size_class)
        return TY_OK; // the span is gone: the block was freed twice
    uint32_t number = number_of(heap, block.head);
    if (number == 0)
        number = know_span(heap, block.size_class, block.head);
    if (number == 0)
        return tables_damaged("the span is wrong", heap, block.head);
    if (!is_live(heap, block))
        return TY_OK;
    thread_cache *owner = heap->states[number].owner.load(std::memory_order_relaxed);
    if (owner != nullptr && owner != cache) {
        *elsewhere = true;
        return TY_OK;
    }
    uint32_t word = block.index / 64;
    uint64_t bit = uint64_t{1} << block.index % 64;
    // R6: a thread that frees the block at this instant, as if the span still had its former owner, sets this bit, too:
    // one of the two succeeds.
    std::atomic<uint64_t> &remote = remote_of(heap, block.head)[word];
    if (remote.fetch_or(bit, std::memory_order_seq_cst) & bit)
        return TY_OK;
    std::atomic<uint64_t> &bits = bitmap_of(heap, block.head)[word];
    bits.store(bits.load(std::memory_order_relaxed) & ~bit, std::memory_order_relaxed);
    remote.fetch_and(~bit, std::memory_order_seq_cst);
    heap->states[number].used--;
    *freed = true;
    return place_again(heap, owner, number);
}

ty_status free_unowned(ty_heap *heap, thread_cache *cache, const small_block &block, free_result *result) {
    *result = {};
    for (;;) {
        uint32_t number = number_of(heap, block.head);
        thread_cache *owner = heap->states[number].owner.load(std::memory_order_seq_cst); // number 0 has none
        if (owner != nullptr && owner != cache) {
            word_blocks one{block.head, block.index / 64, uint64_t{1} << block.index % 64};
            if (is_live(heap, block))
                *result = free_remotely(heap, owner, number, one);
            return TY_OK;
        }
        if (owner != nullptr)
            flush_remote(cache, block.size_class); // another thread may have freed the block already
        bool elsewhere = false;
        ty_status status = free_directly(heap, cache, block, &elsewhere, &result->freed);
        if (!elsewhere)
            return status;
    }
}

ty_status take_small_at(ty_heap *heap, uint32_t size_class, uint64_t offset) {
    small_block block = small_block_at(heap, size_class, offset);
    os::lock_guard guard(lock_of(heap, size_class));
    const page_descriptor *page = &heap->descriptors[block.head];
    uint32_t number = 0;
    if (block.head < top_of(heap) && page->kind == page_span && page->size_class == size_class) {
        number = number_of(heap, block.head);
        if (number == 0)
            number = know_span(heap, size_class, block.head);
        if (number == 0)
            return tables_damaged("the span is wrong", heap, block.head);
    } else if (ty_status status = new_span_at(heap, size_class, block.head, &number); status != TY_OK) {
        return status;
    }
    if (is_allocated(heap, block))
        return failure(TY_E_EXISTS, "allocate at %p: the block is allocated already",
                       static_cast<void *>(heap->base + offset));
    std::atomic<uint64_t> &word = bitmap_of(heap, block.head)[block.index / 64];
    word.store(word.load(std::memory_order_relaxed) | uint64_t{1} << block.index % 64, std::memory_order_relaxed);
    heap->states[number].used++;
    return place_again(heap, heap->states[number].owner.load(std::memory_order_relaxed), number);
}

ty_status make_span_at(ty_heap *heap, uint32_t size_class, uint32_t head, const uint64_t *live) {
    os::lock_guard guard(lock_of(heap, size_class));
    uint32_t number;
    if (ty_status status = new_span_at(heap, size_class, head, &number); status != TY_OK)
        return status;
    std::atomic<uint64_t> *words = bitmap_of(heap, head);
    uint32_t used = 0;
    for (uint32_t i = 0; i < heap->classes[size_class].words; i++) {
        words[i].store(live[i], std::memory_order_relaxed);
        used += count_bits(live[i]);
    }
    heap->states[number].used = used;
    return place_shared(heap, number);
}

// Under the class's lock; no other thread works with the cache.
static void release_empty(thread_cache *cache, uint32_t size_class) {
    ty_heap *heap = cache->heap;
    class_cache &entry = cache->classes[size_class];
    uint32_t number = entry.empty;
    entry.empty = 0;
    if (number == 0 || !claim_empty(heap->states[number]))
        return;
    unlink_span(heap, entry.bins, number);
    if (release_span(heap, number) != TY_OK)
        place_span(heap, heap->classes[size_class], entry.bins, number);
}

// Under the class's lock. R2: then drains the queue that lost its owner.
static void disown_spans(thread_cache *cache, uint32_t size_class, give_up which) {
    ty_heap *heap = cache->heap;
    const class_info &info = heap->classes[size_class];
    class_cache &entry = cache->classes[size_class];
    for (uint32_t number = entry.owned, next; number != 0; number = next) {
        next = heap->states[number].next_owned;
        unlink_span(heap, entry.bins, number);
        if (which == give_up::with_room && heap->states[number].used == info.blocks) {
            place_span(heap, info, entry.bins, number);
            continue;
        }
        disown_span(cache, size_class, number);
        place_shared(heap, number);
    }
    if (!fault("queue_not_looked_at_after_a_give_up"))
        redirect_remote(cache, size_class);
}

[[gnu::cold]] void flush_class(thread_cache *cache, uint32_t size_class, give_up which) {
    ty_heap *heap = cache->heap;
    class_cache &entry = cache->classes[size_class];
    entry.freed = &cache->freed[size_class].bottom;
    if (heap->cached != nullptr)
        heap->cached->let_go(cache, size_class);
    flush_remote(cache, size_class);
    if (entry.current == 0 && entry.empty == 0 && (which == give_up::nothing || entry.owned == 0))
        return;
    os::lock_guard guard(lock_of(heap, size_class));
    drop_word(heap, entry);
    uint32_t current = entry.current;
    bool emptied = current != 0 && claim_empty(heap->states[current]);
    if (emptied || which != give_up::nothing)
        entry.current = 0;
    if (emptied)
        release_span(heap, current);
    if (which != give_up::nothing || !fault("empty_span_kept_in_a_pause"))
        release_empty(cache, size_class);
    if (which != give_up::nothing)
        disown_spans(cache, size_class, which);
}

// K2: a paused heap and an ended thread have no kept extents.
[[gnu::cold]] void flush_cache(thread_cache *cache, give_up which) {
    const bool kept =
        which == give_up::nothing ? fault("paused_heap_has_kept_extents") : fault("ended_thread_keeps_its_extents");
    if (!kept)
        free_kept_extents(cache);
    for (uint32_t size_class = 0; size_class < cache->heap->class_count; size_class++)
        flush_class(cache, size_class, which);
}

} // namespace taiyen
