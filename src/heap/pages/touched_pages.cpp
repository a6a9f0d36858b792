#include "touched_pages.hpp"

namespace taiyen {
namespace {

// Calls visit with each word that holds bits of [first, first + count), and a mask of them.
template <typename Visit>
void each_touched_word(const ty_heap *heap, uint64_t first, uint64_t count, Visit visit) {
    for (uint64_t end = first + count; first < end;) {
        uint64_t in_word = 64 - first % 64;
        uint64_t bits = end - first < in_word ? end - first : in_word;
        visit(heap->memory.touched[first / 64], (~uint64_t{0} >> (64 - bits)) << first % 64);
        first += bits;
    }
}

// Whether the heap advised this huge page as huge.
[[gnu::cold, gnu::noinline]] bool asked_for(const ty_heap *heap, uint64_t huge) {
    return heap->owner.huge && (huge >= 64 || (heap->huge_places.load(std::memory_order_relaxed) >> huge & 1) != 0);
}

} // namespace

uint64_t count_touched(const ty_heap *heap, uint64_t first, uint64_t count) {
    uint64_t touched = 0;
    each_touched_word(heap, first, count, [&](const std::atomic<uint64_t> &word, uint64_t mask) {
        touched += count_bits(word.load(std::memory_order_relaxed) & mask);
    });
    return touched;
}

void mark_touched(ty_heap *heap, uint64_t first, uint64_t count, bool touched) {
    each_touched_word(heap, first, count, [touched](std::atomic<uint64_t> &word, uint64_t mask) {
        uint64_t bits = word.load(std::memory_order_relaxed);
        uint64_t marked = touched ? bits | mask : bits & ~mask;
        if (marked != bits) // does not touch pages of the table that were never written
            word.store(marked, std::memory_order_relaxed);
    });
}

[[gnu::cold]] bool note_small_pages(ty_heap *heap, uint64_t first, uint64_t count) {
    bool news = false;
    for (uint64_t huge = first / huge_page_pages; huge * huge_page_pages < first + count; huge++) {
        uint64_t bit = uint64_t{1} << huge % 64;
        std::atomic<uint64_t> &word = heap->memory.small_pages[huge / 64];
        if ((word.load(std::memory_order_relaxed) & bit) == 0)
            news |= (word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
    }
    return news;
}

[[gnu::cold]] bool forget_small_pages(const ty_heap *heap, uint64_t first, uint64_t count) {
    bool known = false;
    for (uint64_t huge = first / huge_page_pages; huge * huge_page_pages < first + count; huge++) {
        if (!asked_for(heap, huge))
            continue;
        uint64_t bit = uint64_t{1} << huge % 64;
        known |= (heap->memory.small_pages[huge / 64].fetch_and(~bit, std::memory_order_relaxed) & bit) != 0;
    }
    return known;
}

[[gnu::cold]] bool is_vacant(const ty_heap *heap, uint64_t first, uint64_t count) {
    const page_memory &memory = heap->memory;
    if (!heap->owner.huge || memory.touched == nullptr || !memory.zeros.load(std::memory_order_relaxed))
        return false;
    uint64_t huge = (first + huge_page_pages - 1) / huge_page_pages;
    uint64_t end = (first + count) / huge_page_pages;
    if (huge < end &&
        next_with_touched(heap, huge * huge_page_pages, end * huge_page_pages, true) < end * huge_page_pages)
        return false;
    for (; huge < end; huge++) {
        if (!asked_for(heap, huge) ||
            (memory.small_pages[huge / 64].load(std::memory_order_relaxed) >> huge % 64 & 1) != 0)
            return false;
    }
    return true;
}

uint64_t next_with_touched(const ty_heap *heap, uint64_t from, uint64_t end, bool wanted) {
    while (from < end) {
        uint64_t word = heap->memory.touched[from / 64].load(std::memory_order_relaxed);
        word = (wanted ? word : ~word) >> from % 64;
        if (word != 0) {
            from += static_cast<unsigned>(__builtin_ctzll(word));
            return from < end ? from : end;
        }
        from = (from / 64 + 1) * 64;
    }
    return end;
}

} // namespace taiyen
