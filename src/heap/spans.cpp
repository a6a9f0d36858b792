#include "spans.hpp"

#include "span_lists.hpp"

namespace taiyen {
namespace {

// A sweep looks at so many areas when a thread needs another span.
constexpr uint32_t sweep_areas = 64;

os::mutex &lock_of(ty_heap *heap, uint32_t size_class) {
    return heap->spans[size_class].lock;
}

// Puts the free blocks of a word of the current span, the lowest that has any, into the cache.
bool next_word(const ty_heap *heap, const class_info &info, class_cache &entry) {
    std::atomic<uint64_t> *words = bitmap_of(heap, entry.current);
    for (uint32_t i = 0; i < info.words; i++) {
        uint64_t free = ~words[i].load(std::memory_order_relaxed) & word_mask(info, i);
        if (free == 0)
            continue;
        entry.free = free;
        entry.word = words + i;
        entry.blocks = page_address(heap, entry.current) + uint64_t{i} * 64 * info.block_bytes;
        heap->states[entry.current].used += count_bits(free);
        return true;
    }
    return false;
}

// The blocks in the cached word are free again for all.
void drop_word(const ty_heap *heap, class_cache &entry) {
    if (entry.free != 0)
        heap->states[entry.current].used -= count_bits(entry.free);
    entry.free = 0;
}

bool make_current(const ty_heap *heap, uint32_t size_class, class_cache &entry, uint32_t head) {
    entry.current = head;
    entry.block_bytes = heap->classes[size_class].block_bytes;
    heap->states[head].notice = notice_never;
    return next_word(heap, heap->classes[size_class], entry);
}

// The current span has no free block left. Its frees will be noticed.
void retire_current(const ty_heap *heap, const class_info &info, class_cache &entry) {
    uint32_t head = entry.current;
    if (head == 0)
        return;
    entry.current = 0;
    heap->states[head].used = info.blocks;
    place_span(heap, info, entry.bins, head);
}

bool is_span_of(ty_heap *heap, uint32_t size_class, uint32_t head) {
    const class_info &info = heap->classes[size_class];
    os::lock_guard guard(heap->pages_lock);
    if (head < first_user_page || head + uint64_t{info.pages} > top_of(heap) || !is_head(heap, head))
        return false;
    for (uint32_t i = 0; i < info.pages; i++) {
        const page_descriptor &page = heap->descriptors[head + i];
        if (page.kind != page_span || page.size_class != size_class)
            return false;
    }
    return true;
}

// Tells the frees which class the span's pages have; 0: not a known span.
void set_page_classes(ty_heap *heap, uint32_t head, uint32_t pages, uint32_t value) {
    for (uint32_t i = 0; i < pages; i++)
        heap->page_classes[head + i].store(static_cast<uint8_t>(value), std::memory_order_relaxed);
}

// The bitmap of a span that has no owner yet is checked and counted (H4, H5). Under the class's lock.
bool know_span(ty_heap *heap, uint32_t size_class, uint32_t head) {
    const class_info &info = heap->classes[size_class];
    if (!is_span_of(heap, size_class, head))
        return false;
    uint32_t used = 0;
    const std::atomic<uint64_t> *words = bitmap_of(heap, head);
    for (uint32_t i = 0; i < info.pages * bitmap_words_per_page; i++) {
        uint64_t word = words[i].load(std::memory_order_relaxed);
        if (i >= info.words ? word != 0 : (word & ~word_mask(info, i)) != 0)
            return false;
        used += count_bits(word);
    }
    span_state &state = heap->states[head];
    state.used = used;
    state.known = true;
    state.bin = no_bin;
    set_page_classes(heap, head, info.pages, size_class + 1);
    return true;
}

// Under the class's lock: the span's pages become free. Its descriptors are put back if the tables are damaged.
ty_status release_span(ty_heap *heap, uint32_t size_class, uint32_t head) {
    const class_info &info = heap->classes[size_class];
    os::lock_guard pages(heap->pages_lock);
    for (uint32_t i = 0; i < info.pages; i++)
        heap->descriptors[head + i] = {};
    ty_status status = release_pages(heap, {head, info.pages});
    if (status != TY_OK) {
        for (uint32_t i = 0; i < info.pages; i++)
            heap->descriptors[head + i] = {page_span, static_cast<uint8_t>(size_class), 0, 0, 0, 0};
        return status;
    }
    span_state &state = heap->states[head];
    if (thread_cache *owner = state.owner.load(std::memory_order_relaxed); owner != nullptr)
        disown_span(owner, size_class, head);
    state.known = false;
    set_page_classes(heap, head, info.pages, 0);
    return TY_OK;
}

// Under the class's lock: a span with no owner goes to the shared ones, or away when it is empty (H8).
ty_status place_shared(ty_heap *heap, uint32_t size_class, uint32_t head) {
    const class_info &info = heap->classes[size_class];
    if (heap->states[head].used == 0)
        return release_span(heap, size_class, head);
    place_span(heap, info, heap->spans[size_class].shared, head);
    return TY_OK;
}

// Under the class's lock, and the owner is the caller or stands still: the number of used blocks of a span has changed.
ty_status place_again(ty_heap *heap, thread_cache *owner, uint32_t size_class, uint32_t head) {
    if (owner == nullptr) {
        unlink_span(heap, heap->spans[size_class].shared, head);
        return place_shared(heap, size_class, head);
    }
    class_cache &entry = owner->classes[size_class];
    if (entry.current == head)
        return TY_OK;
    unlink_span(heap, entry.bins, head);
    if (heap->states[head].used == 0)
        return release_span(heap, size_class, head);
    place_span(heap, heap->classes[size_class], entry.bins, head);
    return TY_OK;
}

// Under the class's lock: new pages for a span, described, and known on the volatile side.
ty_status describe_span(ty_heap *heap, uint32_t size_class, uint32_t head) {
    const class_info &info = heap->classes[size_class];
    for (uint32_t i = 0; i < info.pages; i++)
        heap->descriptors[head + i] = {page_span, static_cast<uint8_t>(size_class), 0, 0, 0, 0};
    std::atomic<uint64_t> *words = bitmap_of(heap, head);
    for (uint32_t i = 0; i < info.pages * bitmap_words_per_page; i++) {
        if (words[i].load(std::memory_order_relaxed) != 0)
            return tables_damaged("free pages have allocated blocks", heap, head + i / bitmap_words_per_page);
    }
    span_state &state = heap->states[head];
    state.used = 0;
    state.known = true;
    state.queued.store(false, std::memory_order_relaxed);
    state.bin = no_bin;
    set_page_classes(heap, head, info.pages, size_class + 1);
    return TY_OK;
}

ty_status new_span(ty_heap *heap, uint32_t size_class, uint32_t *head) {
    uint32_t pages = heap->classes[size_class].pages;
    uint64_t fresh_from;
    os::lock_guard guard(heap->pages_lock);
    if (ty_status status = take_pages(heap, pages, pages, head, &fresh_from); status != TY_OK)
        return status;
    return describe_span(heap, size_class, *head);
}

// Moves what others freed in a cache's spans into the truth. Under the class's lock.
void settle_remote(thread_cache *cache, uint32_t size_class) {
    ty_heap *heap = cache->heap;
    const class_info &info = heap->classes[size_class];
    class_cache &entry = cache->classes[size_class];
    uint32_t head = cache->remote[size_class].load(std::memory_order_relaxed);
    cache->remote[size_class].store(0, std::memory_order_relaxed);
    while (head != 0) {
        span_state &state = heap->states[head];
        uint32_t next = state.remote_next;
        state.queued.store(false, std::memory_order_relaxed);
        uint64_t *remote = remote_of(heap, head);
        std::atomic<uint64_t> *words = bitmap_of(heap, head);
        for (uint32_t i = 0; i < info.words; i++) {
            uint64_t word = words[i].load(std::memory_order_relaxed);
            state.used -= count_bits(word & remote[i]);
            words[i].store(word & ~remote[i], std::memory_order_relaxed);
            remote[i] = 0;
        }
        if (head != entry.current) {
            unlink_span(heap, entry.bins, head);
            if (state.used != 0 || release_span(heap, size_class, head) != TY_OK)
                place_span(heap, info, entry.bins, head);
        }
        head = next;
    }
}

// A span that nobody knew yet, found by the sweep.
struct found_span {
    uint32_t head;
    uint32_t size_class;
};

// Goes on with the sweep, for a bounded number of areas; false: it was over already. No lock is held.
bool sweep_on(ty_heap *heap) {
    if (heap->swept.load(std::memory_order_relaxed))
        return false;
    found_span found[sweep_areas];
    uint32_t count = 0;
    {
        os::lock_guard guard(heap->pages_lock);
        uint64_t page = heap->sweep_next;
        for (uint32_t areas = 0; areas < sweep_areas && page < heap->sweep_end; areas++) {
            page = next_head(heap, page, heap->sweep_end); // areas may have merged since the last time
            page_run area;
            if (page >= heap->sweep_end || !area_at_head(heap, page, &area)) {
                page = page < heap->sweep_end ? page + 1 : page; // damaged: verify tells; here it only is no span
                continue;
            }
            if (heap->descriptors[page].kind == page_span)
                found[count++] = {area.first, heap->descriptors[page].size_class};
            page += area.count;
        }
        heap->sweep_next = page;
        if (page >= heap->sweep_end)
            heap->swept.store(true, std::memory_order_relaxed);
    }
    for (uint32_t i = 0; i < count; i++) {
        os::lock_guard guard(lock_of(heap, found[i].size_class));
        if (!heap->states[found[i].head].known && know_span(heap, found[i].size_class, found[i].head))
            place_shared(heap, found[i].size_class, found[i].head);
    }
    return true;
}

// A span without owner that has free blocks becomes the cache's current one. Under the class's lock.
bool adopt_shared(thread_cache *cache, uint32_t size_class) {
    ty_heap *heap = cache->heap;
    const class_info &info = heap->classes[size_class];
    span_bins &shared = heap->spans[size_class].shared;
    uint32_t head;
    while ((head = pick_span(heap, info, shared)) != 0) {
        unlink_span(heap, shared, head);
        own_span(cache, size_class, head);
        if (make_current(heap, size_class, cache->classes[size_class], head))
            return true;
        retire_current(heap, info, cache->classes[size_class]);
    }
    return false;
}

bool take_own(thread_cache *cache, uint32_t size_class) {
    ty_heap *heap = cache->heap;
    const class_info &info = heap->classes[size_class];
    class_cache &entry = cache->classes[size_class];
    uint32_t head;
    while ((head = pick_span(heap, info, entry.bins)) != 0) {
        unlink_span(heap, entry.bins, head);
        if (make_current(heap, size_class, entry, head))
            return true;
        retire_current(heap, info, entry);
    }
    return false;
}

} // namespace

bool refill(thread_cache *cache, uint32_t size_class) {
    ty_heap *heap = cache->heap;
    const class_info &info = heap->classes[size_class];
    class_cache &entry = cache->classes[size_class];
    if (entry.current != 0 && next_word(heap, info, entry))
        return true;
    if (cache->remote[size_class].load(std::memory_order_relaxed) != 0) {
        os::lock_guard guard(lock_of(heap, size_class));
        settle_remote(cache, size_class);
        if (entry.current != 0 && next_word(heap, info, entry))
            return true;
    }
    retire_current(heap, info, entry);
    if (take_own(cache, size_class))
        return true;
    {
        os::lock_guard guard(lock_of(heap, size_class));
        if (adopt_shared(cache, size_class))
            return true;
    }
    bool swept = sweep_on(heap); // only some of it: the rest comes when the next span is needed
    os::lock_guard guard(lock_of(heap, size_class));
    if (swept && adopt_shared(cache, size_class))
        return true;
    uint32_t head;
    if (new_span(heap, size_class, &head) != TY_OK)
        return false;
    own_span(cache, size_class, head);
    return make_current(heap, size_class, entry, head);
}

void after_free(thread_cache *cache, uint32_t size_class, uint32_t head) {
    ty_heap *heap = cache->heap;
    class_cache &entry = cache->classes[size_class];
    unlink_span(heap, entry.bins, head);
    if (heap->states[head].used == 0) {
        os::lock_guard guard(lock_of(heap, size_class));
        // While the span waits in the remote queue, somebody who frees twice may have put it there: settle first.
        if (heap->states[head].queued.load(std::memory_order_relaxed))
            settle_remote(cache, size_class);
        else if (release_span(heap, size_class, head) == TY_OK)
            return;
        if (!heap->states[head].known || heap->states[head].bin != no_bin)
            return;
    }
    place_span(heap, heap->classes[size_class], entry.bins, head);
}

small_block small_block_at(const ty_heap *heap, uint32_t size_class, uint64_t offset) {
    const class_info &info = heap->classes[size_class];
    uint32_t in_span = static_cast<uint32_t>(offset) & info.span_mask;
    uint32_t index = block_index(info, in_span);
    return {size_class, head_of_span(info, offset / page_bytes), index,
            index < info.blocks && index * info.block_bytes == in_span};
}

bool is_allocated(const ty_heap *heap, const small_block &block) {
    if (block.index >= heap->classes[block.size_class].blocks)
        return false;
    uint64_t word = bitmap_of(heap, block.head)[block.index / 64].load(std::memory_order_relaxed);
    return word >> block.index % 64 & 1;
}

ty_status free_unowned(ty_heap *heap, const thread_cache *cache, const small_block &block, bool *freed) {
    *freed = false;
    os::lock_guard guard(lock_of(heap, block.size_class));
    const page_descriptor &page = heap->descriptors[block.head];
    span_state &state = heap->states[block.head];
    if (page.kind != page_span || page.size_class != block.size_class)
        return TY_OK; // the span went away meanwhile: the block was freed twice
    if (!state.known && !know_span(heap, block.size_class, block.head))
        return tables_damaged("the span is wrong", heap, block.head);
    uint64_t bit = uint64_t{1} << block.index % 64;
    thread_cache *owner = state.owner.load(std::memory_order_relaxed);
    if (owner != nullptr && owner == cache && state.queued.load(std::memory_order_relaxed))
        settle_remote(owner, block.size_class); // the block may be freed already, by another thread
    if (!state.known || !is_allocated(heap, block))
        return TY_OK;
    if (owner != nullptr && owner != cache) {
        uint64_t &remote = remote_of(heap, block.head)[block.index / 64];
        if (remote & bit)
            return TY_OK;
        remote |= bit;
        if (!state.queued.load(std::memory_order_relaxed)) {
            state.queued.store(true, std::memory_order_relaxed);
            state.remote_next = owner->remote[block.size_class].load(std::memory_order_relaxed);
            owner->remote[block.size_class].store(block.head, std::memory_order_relaxed);
        }
        *freed = true;
        return TY_OK;
    }
    std::atomic<uint64_t> &word = bitmap_of(heap, block.head)[block.index / 64];
    word.store(word.load(std::memory_order_relaxed) & ~bit, std::memory_order_relaxed);
    state.used--;
    *freed = true;
    return place_again(heap, owner, block.size_class, block.head);
}

ty_status take_small_at(ty_heap *heap, uint32_t size_class, uint64_t offset) {
    small_block block = small_block_at(heap, size_class, offset);
    os::lock_guard guard(lock_of(heap, size_class));
    const page_descriptor *page = &heap->descriptors[block.head];
    span_state &state = heap->states[block.head];
    bool is_span = block.head < top_of(heap) && page->kind == page_span && page->size_class == size_class;
    if (!is_span) {
        os::lock_guard pages(heap->pages_lock);
        ty_status status = take_pages_at(heap, {block.head, heap->classes[size_class].pages});
        if (status == TY_OK)
            status = describe_span(heap, size_class, block.head);
        if (status != TY_OK)
            return status;
    } else if (!state.known && !know_span(heap, size_class, block.head)) {
        return tables_damaged("the span is wrong", heap, block.head);
    }
    if (is_allocated(heap, block))
        return failure(TY_E_EXISTS, "allocate at %p: the block is allocated already",
                       static_cast<void *>(heap->base + offset));
    std::atomic<uint64_t> &word = bitmap_of(heap, block.head)[block.index / 64];
    word.store(word.load(std::memory_order_relaxed) | uint64_t{1} << block.index % 64, std::memory_order_relaxed);
    state.used++;
    return place_again(heap, state.owner.load(std::memory_order_relaxed), size_class, block.head);
}

void settle_cache(thread_cache *cache, bool give_up) {
    ty_heap *heap = cache->heap;
    for (uint32_t size_class = 0; size_class < heap->class_count; size_class++) {
        class_cache &entry = cache->classes[size_class];
        bool queued = cache->remote[size_class].load(std::memory_order_relaxed) != 0;
        if (entry.current == 0 && !queued && (!give_up || entry.owned == 0))
            continue;
        os::lock_guard guard(lock_of(heap, size_class));
        drop_word(heap, entry);
        settle_remote(cache, size_class);
        uint32_t current = entry.current;
        if (current != 0 && (give_up || heap->states[current].used == 0)) {
            entry.current = 0;
            if (heap->states[current].used == 0)
                release_span(heap, size_class, current);
        }
        while (uint32_t head = give_up ? entry.owned : 0) {
            unlink_span(heap, entry.bins, head);
            disown_span(cache, size_class, head);
            place_shared(heap, size_class, head);
        }
    }
}

} // namespace taiyen
