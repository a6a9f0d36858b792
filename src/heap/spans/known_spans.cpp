#include "known_spans.hpp"

#include "span_lists.hpp"

namespace taiyen {

uint32_t count_bits(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<uint32_t>(word * 0x0101010101010101 >> 56);
}

namespace {

void set_numbers(ty_heap *heap, uint32_t head, uint32_t pages, uint32_t number) {
    for (uint32_t i = 0; i < pages; i++)
        heap->span_numbers[head + i].store(number, std::memory_order_relaxed);
}

// Under pages_lock, as is drop_number. There are as many numbers as pages: enough.
uint32_t make_number(ty_heap *heap, uint32_t size_class, uint32_t head, uint32_t used) {
    const class_info &info = heap->classes[size_class];
    uint32_t number = heap->unused_number;
    if (number != 0)
        heap->unused_number = heap->states[number].next;
    else
        number = ++heap->numbers_used;
    span_state &state = heap->states[number];
    state.used = used;
    state.head = head;
    state.bits = bitmap_of(heap, head);
    state.reciprocal = info.reciprocal;
    state.span_mask = static_cast<uint16_t>(info.span_mask);
    state.size_class = static_cast<uint8_t>(size_class);
    state.bin = no_bin;
    state.refused.store(0, std::memory_order_relaxed);
    state.pending.store(0, std::memory_order_release); // release: publishes the fields above (R7)
    set_numbers(heap, head, info.pages, number);
    return number;
}

void drop_number(ty_heap *heap, uint32_t number, uint32_t pages) {
    span_state &state = heap->states[number];
    set_numbers(heap, state.head, pages, 0);
    state.head = 0;
    state.next = heap->unused_number;
    heap->unused_number = number;
}

void describe_pages(ty_heap *heap, uint32_t size_class, uint32_t head) {
    for (uint32_t i = 0; i < heap->classes[size_class].pages; i++)
        heap->descriptors[head + i] = {
            page_span, static_cast<uint8_t>(i == 0 || !fault("span_class_on_its_first_page_alone") ? size_class : 0),
            0,         0,
            0,         0};
}

bool is_span_of(const ty_heap *heap, uint32_t size_class, uint32_t head) {
    const class_info &info = heap->classes[size_class];
    if (head < first_user_page || head + uint64_t{info.pages} > top_of(heap) || !is_head(heap, head))
        return false;
    for (uint32_t i = 0; i < info.pages; i++) {
        const page_descriptor &page = heap->descriptors[head + i];
        if (page.kind != page_span || page.size_class != size_class)
            return false;
    }
    return true;
}

// Makes new pages a span. Under pages_lock.
ty_status make_span(ty_heap *heap, uint32_t size_class, uint32_t head, uint32_t *number) {
    const class_info &info = heap->classes[size_class];
    describe_pages(heap, size_class, head);
    std::atomic<uint64_t> *words = bitmap_of(heap, head);
    // The first access is a write: a read would map the kernel's zero page, and replacing that at the write that
    // follows costs a TLB shootdown of other threads' processors.
    words[0].store(words[0].exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
    for (uint32_t i = 0; i < info.pages * bitmap_words_per_page; i++) {
        if (words[i].load(std::memory_order_relaxed) != 0)
            return tables_damaged("free pages have allocated blocks", heap, head + i / bitmap_words_per_page);
    }
    *number = make_number(heap, size_class, head, 0);
    return TY_OK;
}

} // namespace

uint32_t know_span(ty_heap *heap, uint32_t size_class, uint32_t head) {
    const class_info &info = heap->classes[size_class];
    os::lock_guard guard(heap->pages_lock);
    if (!is_span_of(heap, size_class, head))
        return 0;
    uint32_t used = 0;
    const std::atomic<uint64_t> *words = bitmap_of(heap, head);
    for (uint32_t i = 0; i < info.pages * bitmap_words_per_page; i++) {
        uint64_t word = words[i].load(std::memory_order_relaxed);
        if (i >= info.words ? word != 0 : (word & ~word_mask(info, i)) != 0)
            return 0;
        used += count_bits(word);
    }
    return make_number(heap, size_class, head, used);
}

// H4: a span's head is known from any of its pages: it starts at a multiple of its size.
ty_status new_span(ty_heap *heap, uint32_t size_class, uint32_t *number) {
    uint32_t pages = heap->classes[size_class].pages;
    uint32_t head;
    uint64_t fresh_from;
    os::lock_guard guard(heap->pages_lock);
    if (ty_status status = take_pages(heap, pages, pages, &head, &fresh_from); status != TY_OK)
        return status;
    return make_span(heap, size_class, head, number);
}

ty_status new_span_at(ty_heap *heap, uint32_t size_class, uint32_t head, uint32_t *number) {
    os::lock_guard guard(heap->pages_lock);
    if (ty_status status = take_pages_at(heap, {head, heap->classes[size_class].pages}); status != TY_OK)
        return status;
    return make_span(heap, size_class, head, number);
}

ty_status release_span(ty_heap *heap, uint32_t number) {
    span_state &state = heap->states[number];
    uint32_t size_class = state.size_class;
    uint32_t pages = heap->classes[size_class].pages;
    os::lock_guard guard(heap->pages_lock);
    for (uint32_t i = 0; i < pages; i++)
        heap->descriptors[state.head + i] = {};
    if (ty_status status = release_pages(heap, {state.head, pages}); status != TY_OK) {
        describe_pages(heap, size_class, state.head);
        state.pending.store(0, std::memory_order_release);
        return status;
    }
    if (thread_cache *owner = state.owner.load(std::memory_order_relaxed); owner != nullptr)
        disown_span(owner, size_class, number);
    drop_number(heap, number, pages);
    if (fault("given_back_span_can_be_counted_in"))
        state.pending.store(0, std::memory_order_release);
    return TY_OK;
}

void forget_span(ty_heap *heap, uint32_t number) {
    span_state &state = heap->states[number];
    const uint32_t size_class = state.size_class;
    os::lock_guard guard(lock_of(heap, size_class));
    if (thread_cache *owner = state.owner.load(std::memory_order_relaxed); owner != nullptr) {
        class_cache &entry = owner->classes[size_class];
        if (entry.current == number)
            entry.current = 0;
        unlink_span(heap, entry.bins, number);
        disown_span(owner, size_class, number);
    } else {
        unlink_span(heap, heap->spans[size_class].shared, number);
    }
    os::lock_guard pages_guard(heap->pages_lock);
    drop_number(heap, number, heap->classes[size_class].pages);
}

ty_status place_shared(ty_heap *heap, uint32_t number) {
    span_state &state = heap->states[number];
    if (claim_empty(state))
        return release_span(heap, number);
    place_span(heap, heap->classes[state.size_class], heap->spans[state.size_class].shared, number);
    return TY_OK;
}

[[gnu::cold]] bool any_shared(const ty_heap *heap, uint32_t size_class) {
    for (uint32_t first : heap->spans[size_class].shared.first)
        if (first != 0)
            return true;
    return false;
}

ty_status place_again(ty_heap *heap, thread_cache *owner, uint32_t number) {
    span_state &state = heap->states[number];
    uint32_t size_class = state.size_class;
    if (owner == nullptr) {
        unlink_span(heap, heap->spans[size_class].shared, number);
        return place_shared(heap, number);
    }
    class_cache &entry = owner->classes[size_class];
    if (entry.current == number)
        return TY_OK;
    unlink_span(heap, entry.bins, number);
    if (claim_empty(state))
        return release_span(heap, number);
    place_span(heap, heap->classes[size_class], entry.bins, number);
    return TY_OK;
}

} // namespace taiyen
