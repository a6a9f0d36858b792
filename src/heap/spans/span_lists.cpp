#include "span_lists.hpp"

namespace taiyen {
namespace {

// A span with fewer free blocks is nearly full: the last choice, since it would be full again at once, and changing
// spans costs as much as several allocations.
uint32_t room(const class_info &info) {
    return info.blocks < 32 ? 1u : info.blocks / 16u;
}

// The cache may no longer take the blocks of a span that it gives up.
void forget_freed(thread_cache *cache, uint32_t size_class, uint32_t number) {
    class_cache &entry = cache->classes[size_class];
    freed_block *kept = &cache->freed[size_class].bottom;
    for (const freed_block *freed = kept + 1; freed <= entry.freed; freed++) {
        if (freed->number != number)
            *++kept = *freed;
    }
    entry.freed = kept;
}

void set_page_stacks(const ty_heap *heap, const span_state &state, magazine *held) {
    if (heap->page_stacks == nullptr)
        return;
    for (uint32_t i = 0; i < heap->classes[state.size_class].pages; i++)
        heap->page_stacks[state.head + i].store(held, std::memory_order_relaxed);
}

constexpr uint8_t nearly_full_bin = partial_bins - 1;

// Bins: up to 1/4 free, up to 1/2, more; and nearly full.
uint8_t bin_for(const class_info &info, uint32_t used) {
    uint32_t free = info.blocks - used;
    if (free == 0)
        return no_bin;
    if (free < room(info))
        return nearly_full_bin;
    if (free * 4 <= info.blocks)
        return 0;
    return free * 2 <= info.blocks ? 1 : 2;
}

} // namespace

void unlink_span(const ty_heap *heap, span_bins &bins, uint32_t number) {
    span_state &state = heap->states[number];
    if (state.bin == no_bin)
        return;
    if (state.prev != 0)
        heap->states[state.prev].next = state.next;
    else
        bins.first[state.bin] = state.next;
    if (state.next != 0)
        heap->states[state.next].prev = state.prev;
    state.bin = no_bin;
}

void place_span(const ty_heap *heap, const class_info &info, span_bins &bins, uint32_t number) {
    span_state &state = heap->states[number];
    uint8_t bin = bin_for(info, state.used);
    state.notice = bin == no_bin ? info.blocks - 1u : bin == nearly_full_bin ? info.blocks - room(info) : 0;
    state.bin = bin;
    if (bin == no_bin)
        return;
    state.prev = 0;
    state.next = bins.first[bin];
    if (state.next != 0)
        heap->states[state.next].prev = number;
    bins.first[bin] = number;
}

uint32_t pick_span(const ty_heap *heap, const class_info &info, span_bins &bins) {
    for (uint8_t bin = 0; bin < partial_bins; bin++) {
        while (uint32_t number = bins.first[bin]) {
            if (bin_for(info, heap->states[number].used) == bin)
                return number;
            unlink_span(heap, bins, number);
            place_span(heap, info, bins, number);
            if (bin == nearly_full_bin)
                return number; // now in a bin that was empty
        }
    }
    return 0;
}

void claim_span(thread_cache *cache, uint32_t size_class, uint32_t number) {
    span_state *states = cache->heap->states;
    uint32_t &first = cache->classes[size_class].owned;
    states[number].owner.store(cache, std::memory_order_release); // a thread that frees remotely uses a new cache
    states[number].prev_owned = 0;
    states[number].next_owned = first;
    if (first != 0)
        states[first].prev_owned = number;
    first = number;
    set_page_stacks(cache->heap, states[number], &cache->cached[size_class]);
}

void disown_span(thread_cache *cache, uint32_t size_class, uint32_t number) {
    span_state *states = cache->heap->states;
    const span_state &state = states[number];
    if (state.prev_owned != 0)
        states[state.prev_owned].next_owned = state.next_owned;
    else
        cache->classes[size_class].owned = state.next_owned;
    if (state.next_owned != 0)
        states[state.next_owned].prev_owned = state.prev_owned;
    forget_freed(cache, size_class, number);
    if (cache->classes[size_class].empty == number)
        cache->classes[size_class].empty = 0;
    states[number].owner.store(nullptr, std::memory_order_seq_cst);
    set_page_stacks(cache->heap, state, nullptr);
}

} // namespace taiyen
