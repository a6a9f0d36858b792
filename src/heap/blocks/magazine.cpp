#include "magazine.hpp"

#include "../tables/tables.hpp"
#include "pointer.hpp"
#include "remote_batches.hpp"

#include <bit>
#include <cstring>
#include <new>

namespace taiyen {
namespace {

// A stack holds up to so many bytes of blocks, within bounds of their number. It is enlarged when its thread takes
// again what the stack has let go.
struct stack_bounds {
    uint32_t bytes, blocks;
};
constexpr stack_bounds bounds_first{65536, 2048};
constexpr stack_bounds bounds_more{1048576, 65536};
constexpr uint32_t more_for_blocks_of = 1024; // or less: larger blocks' memory is worth more than the time
constexpr uint32_t cached_blocks_min = 4;
constexpr uint32_t enlarged_max = 8; // per thread; enlarged_in_heap_max: of all threads together
constexpr uint32_t enlarged_in_heap_max = 32;

constinit thread_cache holds_nothing{};
constinit std::atomic<ty_heap *> holding_heap{nullptr};
constinit thread_local thread_cache *hidden_cache = nullptr; // NULL: not hidden

uint32_t cached_max(uint32_t block_bytes, stack_bounds bounds) {
    uint32_t blocks = bounds.bytes / block_bytes;
    return blocks < cached_blocks_min ? cached_blocks_min : blocks < bounds.blocks ? blocks : bounds.blocks;
}

size_t count_of(const magazine &cached) {
    return static_cast<size_t>(cached.top - cached.bottom) - 1;
}

// Makes blocks of a class free in the persistent metadata, one after the other. Neighbours in the stack often share a
// word of a bitmap: it is written back only when a block of another word comes.
class metadata_writer {
public:
    metadata_writer(thread_cache *cache, uint32_t size_class) : cache_(cache), size_class_(size_class) {}
    ~metadata_writer() { leave_span(); }
    metadata_writer(const metadata_writer &) = delete;
    metadata_writer &operator=(const metadata_writer &) = delete;

    // False: the block is not allocated.
    bool free(const magazine &cached, uint64_t offset) {
        if ((offset & ~uint64_t{cached.span_mask}) != span_ || state_ == nullptr)
            if (!enter_span(cached, offset))
                return false;
        uint32_t index = find_place(cached.reciprocal, offset & cached.span_mask).index;
        std::atomic<uint64_t> *word = &state_->bits[index / 64];
        if (word != word_)
            enter_word(word);
        uint64_t bit = uint64_t{1} << index % 64;
        bool allocated = bits_ & bit;
        bits_ &= ~bit;
        freed_ += allocated;
        return allocated;
    }

private:
    void enter_word(std::atomic<uint64_t> *word) {
        if (word_ != nullptr)
            word_->store(bits_, std::memory_order_relaxed);
        word_ = word;
        bits_ = word->load(std::memory_order_relaxed);
    }
    // False where the span is gone: a block may have been freed twice.
    bool enter_span(const magazine &cached, uint64_t offset) {
        leave_span();
        number_ = number_of(cache_->heap, offset / page_bytes);
        span_state &state = cache_->heap->states[number_];
        if (state.owner.load(std::memory_order_relaxed) != cache_ || state.size_class != size_class_)
            return false;
        state_ = &state;
        span_ = offset & ~uint64_t{cached.span_mask};
        return true;
    }
    void leave_span() {
        if (state_ == nullptr)
            return;
        word_->store(bits_, std::memory_order_relaxed);
        uint32_t used = state_->used;
        state_->used = used - freed_;
        bool noticed = used > state_->notice && used - freed_ <= state_->notice;
        state_ = nullptr;
        word_ = nullptr;
        freed_ = 0;
        if (noticed)
            after_free(cache_, number_);
    }

    thread_cache *cache_;
    uint32_t size_class_;
    uint32_t number_ = 0;
    uint64_t span_ = 0; // its offset in the heap
    span_state *state_ = nullptr;
    std::atomic<uint64_t> *word_ = nullptr;
    uint64_t bits_ = 0; // the new value of *word_
    uint32_t freed_ = 0;
};

// Makes the oldest blocks of a stack free in the persistent metadata.
void let_go(thread_cache *cache, uint32_t size_class, size_t count) {
    magazine &cached = cache->cached[size_class];
    char **blocks = cached.bottom + 1;
    {
        metadata_writer metadata(cache, size_class);
        for (size_t i = 0; i < count; i++)
            if (!metadata.free(cached, offset_in(cache->heap, blocks[i]))) [[unlikely]]
                report_wrong_free(cache->heap, blocks[i]);
    }
    cached.top -= count;
    memmove(blocks, blocks + count, static_cast<size_t>(cached.top - blocks) * sizeof *blocks);
}

// The number of slots in the stacks of the first classes.
size_t places_for(const ty_heap *heap, uint32_t classes, stack_bounds bounds) {
    size_t places = 0;
    for (uint32_t c = 0; c < classes; c++)
        places += cached_max(heap->classes[c].block_bytes, bounds) + 1;
    return places;
}

// The size of a thread_cache with its stacks, and with the enlarged ones.
struct cached_bytes {
    size_t first, most;
};
cached_bytes magazine_bytes(const ty_heap *heap) {
    size_t first = places_for(heap, heap->class_count, bounds_first) + 1;
    size_t most = first + places_for(heap, heap->class_count, bounds_more);
    return {sizeof(thread_cache) + first * sizeof(char *), sizeof(thread_cache) + most * sizeof(char *)};
}

void move_stack(magazine &cached, char **place, size_t most) {
    size_t count = count_of(cached);
    memcpy(place + 1, cached.bottom + 1, count * sizeof *place);
    cached.bottom = place;
    cached.top = place + 1 + count;
    cached.end = place + 1 + most;
}

bool one_more_enlarged(thread_cache *cache) {
    std::atomic<uint32_t> &all = cache->heap->enlarged;
    if (all.fetch_add(1, std::memory_order_relaxed) >= enlarged_in_heap_max) {
        all.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    cache->enlarged++;
    return true;
}

// Moves the stack to where there is room for more blocks. False: it is enlarged already, or too many others are. Only
// this touches that memory: most threads never need it.
bool enlarge(thread_cache *cache, uint32_t size_class) {
    const ty_heap *heap = cache->heap;
    magazine &cached = cache->cached[size_class];
    uint32_t block_bytes = heap->classes[size_class].block_bytes;
    uint32_t most = cached_max(block_bytes, bounds_more);
    if (block_bytes > more_for_blocks_of || cached.end - cached.bottom > most || cache->enlarged == enlarged_max ||
        cache->memory.provide(magazine_bytes(heap).most) != TY_OK || !one_more_enlarged(cache))
        return false;
    char **place = reinterpret_cast<char **>(cache + 1) + places_for(heap, heap->class_count, bounds_first) + 1;
    move_stack(cached, place + places_for(heap, size_class, bounds_more), most);
    return true;
}

// Shrinks the enlarged stacks to their first size and frees the blocks that no longer fit: what a thread cached for
// earlier work may be more than it needs now. Done seldom, since stacks that are still needed fill once more before
// they grow.
void trim_stacks(thread_cache *cache) {
    const ty_heap *heap = cache->heap;
    if (cache->enlarged == 0)
        return;
    uint64_t now = os::now_ns();
    if (now - cache->trimmed < heap->memory.period_ns / sharings_a_period)
        return;
    cache->trimmed = now;
    cache->heap->enlarged.fetch_sub(cache->enlarged, std::memory_order_relaxed);
    cache->enlarged = 0;
    char **place = reinterpret_cast<char **>(cache + 1);
    for (uint32_t c = 0; c < heap->class_count; c++) {
        magazine &cached = cache->cached[c];
        size_t most = cached_max(heap->classes[c].block_bytes, bounds_first);
        if (cached.bottom != place) {
            if (size_t count = count_of(cached); count > most)
                let_go(cache, c, count - most);
            move_stack(cached, place, most);
        }
        place += most + 1;
    }
}

bool trim(thread_cache *cache, uint32_t size_class) {
    trim_stacks(cache);
    return share_resting(cache->heap, size_class);
}

// Makes room in a full stack. One that has taken as much from the persistent metadata as it let go the last time is too
// small for its thread, so it is enlarged.
void make_room(thread_cache *cache, magazine *cached) {
    auto size_class = static_cast<uint32_t>(cached - cache->cached);
    auto half = static_cast<size_t>(cached->end - cached->bottom) / 2;
    uint32_t &filled = cache->magazine_filled[size_class];
    if (filled <= half || !enlarge(cache, size_class))
        let_go(cache, size_class, half);
    filled = 1;
}

// Fills an empty stack with the free blocks of a bitmap word, the lowest address on top.
bool fill_magazine(thread_cache *cache, uint32_t size_class) {
    class_cache &entry = cache->classes[size_class];
    if (entry.free == 0 && !refill(cache, size_class))
        return false;
    magazine &cached = cache->cached[size_class];
    uint64_t free = entry.free;
    ptrdiff_t half = (cached.end - cached.bottom) / 2;
    ptrdiff_t count = count_bits(free);
    if (count > half)
        count = half;
    uint64_t left = free;
    for (char **place = cached.top + count; place-- != cached.top; left &= left - 1)
        *place = entry.blocks + static_cast<unsigned>(__builtin_ctzll(left)) * entry.block_bytes;
    cached.top += count;
    entry.word->store(entry.word->load(std::memory_order_relaxed) | (free ^ left), std::memory_order_relaxed);
    entry.free = left;
    if (uint32_t &filled = cache->magazine_filled[size_class]; filled != 0)
        filled += static_cast<uint32_t>(count);
    return true;
}

magazine *stack_of(const thread_cache *cache, const void *block) {
    if (cache->page_stacks == nullptr)
        return nullptr;
    magazine *cached = stack_for(cache->heap, offset_in(cache->heap, block));
    return is_part_of(cache, cached) ? cached : nullptr;
}

[[gnu::always_inline]] inline cached_free hold(thread_cache *cache, const void *block, uint64_t offset,
                                               magazine *cached) {
    if (!is_part_of(cache, cached))
        return send_later(cache, block, cached);
    bool exact = find_place(cached->reciprocal, offset & cached->span_mask).exact;
    if (!exact || cached->top[-1] == block)
        return cached_free::wrong;
    if (cached->top == cached->end)
        make_room(cache, cached);
    *cached->top++ = static_cast<char *>(const_cast<void *>(block));
    return cached_free::cached;
}

void *take(thread_cache *cache, uint32_t size_class) {
    const magazine &cached = cache->cached[size_class];
    if (cached.top[-1] == nullptr && has_remote_batches(cache))
        receive_remote_batches(cache);
    return take_without_remote_batches(cache, size_class);
}

// A free by the cache's thread. A thread that only frees opens its remote-free batches too: it gets the blocks of the
// batches that it sent back.
cached_free hold_freed(thread_cache *cache, const void *block) {
    if (cache->page_stacks == nullptr)
        return cached_free::elsewhere;
    uint64_t offset = offset_in(cache->heap, block);
    cached_free result = hold(cache, block, offset, stack_for(cache->heap, offset));
    if (cache->outgoing_count == 0 && has_remote_batches(cache))
        receive_remote_batches(cache); // it has just sent batches, or sends none
    return result;
}

bool is_last(const thread_cache *cache, const void *block) {
    const magazine *cached = cache != nullptr ? stack_of(cache, block) : nullptr;
    return cached != nullptr && cached->top[-1] == block;
}

void let_go_all(thread_cache *cache, uint32_t size_class) {
    let_go(cache, size_class, count_of(cache->cached[size_class]));
}

// The memory of enlarged stacks is only reserved here; enlarge() commits it.
thread_cache *map_cache(const ty_heap *heap) {
    os::space memory{};
    ty_status status = memory.create_claimed(magazine_bytes(heap).most, heap->cache_alignment);
    if (status == TY_OK)
        status = memory.provide(magazine_bytes(heap).first);
    if (status != TY_OK) {
        memory.destroy();
        return nullptr;
    }
    thread_cache *cache = new (memory.as<void>()) thread_cache; // without {}: that would touch all of it
    cache->memory = memory;
    return cache;
}

void unmap_cache(thread_cache *cache) {
    os::space memory = cache->memory;
    memory.destroy();
}

void make_stacks(thread_cache *cache) {
    const ty_heap *heap = cache->heap;
    char **place = reinterpret_cast<char **>(cache + 1);
    for (uint32_t c = 0; c < heap->class_count; c++) {
        const class_info &info = heap->classes[c];
        char **end = place + 1 + cached_max(info.block_bytes, bounds_first);
        cache->cached[c] = {place + 1, end, info.reciprocal, info.span_mask, place};
        place = end;
    }
    cache->cached[size_class_count_max] = {place + 1, place + 1, 0, 0, place};
    cache->base = reinterpret_cast<uintptr_t>(heap->base);
    cache->bytes = described_bytes(heap);
    cache->page_stacks = heap->page_stacks;
}

// The remote-free queue of a cache that rested is open, and may have batches.
void start(thread_cache *cache) {
    open_remote_queue(cache);
    (hidden_cache != nullptr ? hidden_cache : magazine_cache) = cache;
}

void end(const thread_cache *cache) {
    if (magazine_cache == cache)
        magazine_cache = &holds_nothing;
    if (hidden_cache == cache)
        hidden_cache = &holds_nothing;
}

void stop(ty_heap *heap) {
    holding_heap.store(nullptr);
    heap->page_stacks = nullptr; // the heap destroys it with the other tables
}

constexpr cached_calls calls = {map_cache, unmap_cache, make_stacks, start,   send_all, close_remote_queue,
                                end,       take,        hold_freed,  is_last, deliver,  let_go_all,
                                trim,      stop};

} // namespace

char *take_without_remote_batches(thread_cache *cache, uint32_t size_class) {
    magazine &cached = cache->cached[size_class];
    if (cached.top[-1] == nullptr && !fill_magazine(cache, size_class))
        return nullptr;
    return *--cached.top;
}

void put_on_stacks(thread_cache *cache, char *const *blocks, uint64_t count) {
    uintptr_t base = cache->base;
    std::atomic<magazine *> *stacks = cache->page_stacks;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset = reinterpret_cast<uintptr_t>(blocks[i]) - base;
        magazine *cached = stacks[offset / page_bytes].load(std::memory_order_relaxed);
        os::prefetch_to_write(blocks[i]);
        if (hold(cache, blocks[i], offset, cached) != cached_free::cached) [[unlikely]]
            report_wrong_free(cache->heap, blocks[i]);
    }
}

// Whether the tables describe the address. They may have grown since the cache copied their extent.
static bool look_up(thread_cache *cache, const void *block) {
    uint64_t offset = reinterpret_cast<uintptr_t>(block) - cache->base;
    if (offset < cache->bytes) [[likely]]
        return true;
    if (cache->heap == nullptr)
        return false; // holds_nothing, which has no heap
    cache->bytes = described_bytes(cache->heap);
    return offset < cache->bytes;
}

ty_status free_cached_slowly(void *block) {
    thread_cache *cache = magazine_cache;
    if (look_up(cache, block) && try_enter(cache, safepoint_magazines)) {
        bool cached = hold_freed(cache, block) == cached_free::cached;
        leave(cache);
        if (cached)
            return TY_OK;
    }
    return heap_free(block); // reports what is wrong, if anything is
}

static size_t usable_size(const thread_cache *cache, const void *block) {
    const ty_heap *heap = cache->heap;
    uint64_t offset = offset_in(heap, block), page = offset / page_bytes;
    if (const magazine *cached = stack_for(heap, offset)) {
        const thread_cache *owner = cache_with(heap, cached);
        const class_info &info = heap->classes[cached - owner->cached];
        place_in_span place = find_place(info.reciprocal, offset & info.span_mask);
        bool freed = owner == cache && cached->top[-1] == block;
        return place.exact && place.index < info.blocks && !freed ? info.block_bytes : 0;
    }
    // A block with a guard page does not start its extent (checks/checks.cpp).
    bool extent = page < top_of(heap) && kind_of(heap->descriptors[page]) == page_extent_head;
    return extent && offset % page_bytes == 0 ? heap->descriptors[page].length * page_bytes : 0;
}

size_t cached_usable_size(const void *block) {
    thread_cache *cache = magazine_cache;
    if (!look_up(cache, block) || !try_enter(cache, safepoint_magazines)) [[unlikely]]
        return 0;
    size_t bytes = usable_size(cache, block);
    leave(cache);
    return bytes;
}

void *try_alloc_cached_aligned(size_t size, size_t alignment) {
    thread_cache *cache = magazine_cache;
    size_t whole = (size + alignment - 1) & ~(alignment - 1);
    if (size > small_bytes_max || whole > small_bytes_max || !try_enter(cache, safepoint_magazines)) [[unlikely]]
        return nullptr;
    uint32_t size_class = cache->heap->class_of[(whole + 7) / 8];
    magazine &cached = cache->cached[size_class];
    char *block = nullptr;
    if ((cache->heap->classes[size_class].block_bytes & (alignment - 1)) == 0) // spans are aligned to their size
        block = cached.top[-1];
    if (block != nullptr)
        cached.top--;
    leave(cache);
    return block;
}

[[gnu::cold]] void report_wrong_free(const ty_heap *heap, const void *block) {
    static_cast<void>(not_a_block("free", heap, block)); // sets the error detail
    heap->wrong_free(block);
}

constinit thread_local thread_cache *magazine_cache = &holds_nothing;

// M5: a thread in no scope pays nothing; in a scope the inline calls find no thread cache (docs/design/malloc.md).
void hide_magazines() {
    if (hidden_cache != nullptr)
        return;
    hidden_cache = magazine_cache;
    magazine_cache = &holds_nothing;
}

void show_magazines() {
    if (hidden_cache == nullptr)
        return;
    magazine_cache = hidden_cache;
    hidden_cache = nullptr;
}

uint8_t cached_class_of[small_bytes_max / 8 + 1];

// M3: blocks of 9 bytes and more start at multiples of 16: class_of skips the odd classes.
ty_status use_magazines(ty_heap *heap, void (*wrong_free)(const void *block)) {
    os::space stacks{};
    if (ty_status status = stacks.create_claimed(volatile_table_bytes(table_stacks, heap->limit_bytes / page_bytes));
        status != TY_OK)
        return status;
    ty_status status =
        stacks.provide(volatile_table_bytes(table_stacks, heap->described.load(std::memory_order_relaxed)));
    ty_heap *other = nullptr;
    if (status == TY_OK && !holding_heap.compare_exchange_strong(other, heap))
        status = failure(TY_E_BUSY, "hold blocks of the heap at %p: another heap's are held",
                         static_cast<void *>(heap->base))
                     .remedy("one heap in a process can be the one of malloc");
    if (status != TY_OK) {
        stacks.destroy();
        return status;
    }
    heap->tables.spaces[table_stacks] = stacks;
    heap->page_stacks = stacks.as<std::atomic<magazine *>>();
    heap->wrong_free = wrong_free;
    heap->cache_alignment = std::bit_ceil(magazine_bytes(heap).most);
    heap->cached = &calls;
    uint32_t words = 3;
    for (; words < heap->small_max / 8; words += 2)
        heap->class_of[words] = heap->class_of[words + 1];
    for (words = heap->small_max / 8 + 1; words <= small_bytes_max / 8; words++)
        heap->class_of[words] = size_class_count_max;
    memcpy(cached_class_of, heap->class_of, sizeof cached_class_of);
    return TY_OK;
}

} // namespace taiyen
