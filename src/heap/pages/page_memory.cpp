#include "page_memory.hpp"

#include "touched_pages.hpp"

#include <cstring>

namespace taiyen {
namespace {

// What free pages may hold beyond the recent peak of pages in use: a share of that, and a constant so that small heaps
// never call the kernel; or room for three of the longest extents taken recently, which may be wanted again, within
// another share. A trim stops halfway, so that the next free does not start another.
constexpr uint64_t slack_shift = 4;
constexpr uint64_t slack_min = 2048;
constexpr uint64_t long_extents_kept = 3;
constexpr uint64_t long_extents_shift = 2;

// After a round over the free extents found nothing to trim, the next one waits until so many more pages are held.
constexpr uint64_t barren_growth = 512;

// A call of decay examines so many free extents, and withdraws so many at once.
constexpr uint32_t decay_looks = 256;
constexpr uint32_t decay_extents = 32;

bool watched(const ty_heap *heap) {
    return heap->memory.touched != nullptr;
}

bool is_touched(const ty_heap *heap, uint64_t page) {
    return heap->memory.touched[page / 64].load(std::memory_order_relaxed) >> page % 64 & 1;
}

// Clears the bits of a free extent.
void forget_touched(ty_heap *heap, page_extent extent) {
    heap->memory.idle -= count_touched(heap, extent.first, extent.count);
    mark_touched(heap, extent.first, extent.count, false);
}

// The pages are withdrawn, so no other thread takes them. If one of them does not read as zeros, `zeros` is cleared for
// all: the kernel refuses where memory is locked, and that seldom changes.
void give_back(ty_heap *heap, page_extent extent) {
    split_at_ends(heap, extent);
    if (!heap->owner.give_back(heap->owner.context, page_address(heap, extent.first), extent.count * page_bytes))
        heap->memory.zeros.store(fault("pages_that_stay_count_as_zeros"), std::memory_order_relaxed);
}

uint64_t larger(uint64_t one, uint64_t other) {
    return one > other ? one : other;
}

[[gnu::noinline]] uint64_t slack(const page_memory &memory, uint64_t pages) {
    uint64_t long_extents = long_extents_kept * larger(memory.longest, memory.longest_before);
    uint64_t share = pages >> long_extents_shift;
    return (pages >> slack_shift) + larger(slack_min, long_extents < share ? long_extents : share);
}

// Bounds on held pages: decay starts beyond `most` and stops at `enough`. Short extents may hold a share more: their
// pages cost most to trim, in calls and in later faults.
struct bounds {
    uint64_t enough, most, enough_in_short, most_in_short;
};

[[gnu::noinline]] bounds bounds_of(const page_memory &memory) {
    uint64_t peak = larger(memory.peak, memory.peak_before);
    uint64_t more = slack(memory, peak), short_more = peak >> slack_shift;
    return {peak + more / 2, peak + more, peak + more + short_more / 2, peak + more + short_more};
}

uint64_t cached_pages(const page_memory &memory) {
    return memory.used + memory.idle;
}

bool gives_short_extents(page_memory &memory, const bounds &bounds) {
    uint64_t held = cached_pages(memory);
    return memory.gives_short = held > (memory.gives_short ? bounds.enough_in_short : bounds.most_in_short);
}

bool is_due(const page_memory &memory, const bounds &bounds, uint64_t bound) {
    uint64_t held = cached_pages(memory);
    return held > bound && (held > memory.barren + barren_growth || held > bounds.most_in_short);
}

[[gnu::cold, gnu::noinline]] void start_period_if_over(page_memory &memory) {
    uint64_t now = os::now_ns();
    if (now - memory.period_start < memory.period_ns)
        return;
    memory.period_start = now;
    memory.barren = 0;
    memory.peak_before = memory.peak;
    memory.peak = memory.used;
    memory.longest_before = memory.longest;
    memory.longest = 0;
}

// Starts the next round. False: the last one found nothing.
bool start_round(page_memory &memory) {
    bool found = memory.found;
    memory.next_length = page_memory::long_run_pages;
    memory.next = 0;
    memory.found = false;
    memory.barren = found ? 0 : cached_pages(memory);
    return found;
}

// The next free extent of a round, which visits the long ones in the order of their lengths, and then, if those are
// trimmed, the short ones. none: no more, or the tree is damaged (verify reports it).
[[gnu::cold]] uint32_t next_free_run(ty_heap *heap, const bounds &bounds) {
    page_memory &memory = heap->memory;
    extent_tree tree = tree_of(heap);
    bool in_short = memory.next_length < page_memory::long_run_pages;
    for (;;) {
        if (in_short && !gives_short_extents(memory, bounds))
            return extent_tree::none;
        uint32_t page = tree.lower_bound(memory.next_length, memory.next);
        if (page != extent_tree::none && page != extent_tree::damaged) {
            uint32_t length = heap->descriptors[page].length;
            if (!in_short || length < page_memory::long_run_pages) {
                memory.next_length = length;
                memory.next = page + 1;
                return page;
            }
        }
        if (in_short)
            return extent_tree::none;
        in_short = true;
        memory.next_length = 1;
        memory.next = 0;
    }
}

// Withdraws free extents with memory, so that no other thread takes them meanwhile. Under pages_lock.
[[gnu::cold]] uint32_t withdraw_some(ty_heap *heap, page_extent *extents) {
    page_memory &memory = heap->memory;
    bounds bounds = bounds_of(memory);
    uint32_t count = 0;
    for (uint32_t looks = 0; looks < decay_looks && count < decay_extents && cached_pages(memory) > bounds.enough;
         looks++) {
        uint32_t page = next_free_run(heap, bounds);
        if (page == extent_tree::none) {
            if (!start_round(memory))
                break;
            continue;
        }
        page_extent extent;
        if (!extent_at_head(heap, page, &extent) || count_touched(heap, extent.first, extent.count) == 0 ||
            !withdraw_free(heap, extent))
            continue; // without memory, or damaged: verify reports it
        forget_touched(heap, extent);
        memory.found = true;
        extents[count++] = extent;
    }
    memory.due.store(is_due(memory, bounds, bounds.enough), std::memory_order_relaxed);
    return count;
}

} // namespace

// P1: `idle` counts the free pages whose bit is set.
void note_taken(ty_heap *heap, uint64_t first, uint64_t count) {
    if (!watched(heap))
        return;
    page_memory &memory = heap->memory;
    memory.idle -= count_touched(heap, first, count);
    memory.used += count;
    memory.peak = larger(memory.peak, memory.used);
    memory.longest = larger(memory.longest, count);
}

void note_freed(ty_heap *heap, page_extent extent, page_extent emptied) {
    if (!watched(heap))
        return;
    page_memory &memory = heap->memory;
    mark_touched(heap, extent.first, extent.count - (extent.count > 1 && fault("freed_page_counts_as_zeros")), true);
    mark_touched(heap, emptied.first, emptied.count, false);
    memory.idle += extent.count - emptied.count;
    memory.used -= extent.count;
    if (memory.idle <= slack(memory, memory.used)) // nothing is due, whatever the peak was: saves a read of the clock
        return;
    start_period_if_over(memory);
    if (bounds bounds = bounds_of(memory); is_due(memory, bounds, bounds.most))
        memory.due.store(true, std::memory_order_relaxed);
}

[[gnu::cold]] bool may_hold_more(const ty_heap *heap) {
    return cached_pages(heap->memory) <= bounds_of(heap->memory).enough;
}

void zero_pages(const ty_heap *heap, page_extent extent, uint64_t fresh_from) {
    uint64_t end = uint64_t{extent.first} + extent.count;
    bool known = watched(heap) && heap->memory.zeros.load(std::memory_order_relaxed);
    auto may_be_dirty = [&](uint64_t page) {
        return page < fresh_from ? !known || is_touched(heap, page) : watched(heap) && is_touched(heap, page);
    };
    for (uint64_t page = extent.first; page < end;) {
        uint64_t stop = page;
        while (stop < end && may_be_dirty(stop))
            stop++;
        memset(page_address(heap, page), 0, (stop - page) * page_bytes);
        page = stop + 1;
    }
}

void split_at_ends(ty_heap *heap, page_extent extent) {
    bool advise = heap->memory.parts_move.load(std::memory_order_relaxed);
    uint64_t end = uint64_t{extent.first} + extent.count;
    for (uint64_t page : {uint64_t{extent.first}, end - 1}) {
        uint64_t start = page & ~(huge_page_pages - 1);
        bool whole = extent.first <= start && start + huge_page_pages <= end;
        if (!whole && note_small_pages(heap, page, 1) && advise)
            os::split_huge_page(page_address(heap, page));
    }
}

[[gnu::cold]] void decay(ty_heap *heap) {
    page_extent extents[decay_extents];
    heap->pages_lock.lock();
    uint32_t count = withdraw_some(heap, extents);
    heap->pages_lock.unlock();
    for (uint32_t i = 0; i < count; i++)
        give_back(heap, extents[i]);
    os::lock_guard guard(heap->pages_lock);
    for (uint32_t i = 0; i < count; i++)
        return_withdrawn(heap, extents[i]);
}

size_t purge_extent(ty_heap *heap, page_extent extent) {
    forget_touched(heap, extent);
    char *start = page_address(heap, extent.first);
    size_t before = os::resident_bytes(start, extent.count * page_bytes);
    if (before == 0)
        return 0;
    give_back(heap, extent);
    size_t after = os::resident_bytes(start, extent.count * page_bytes);
    return before > after ? before - after : 0;
}

} // namespace taiyen
