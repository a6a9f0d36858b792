#include "remote.hpp"

#include "span_lists.hpp"
#include "spans.hpp"

namespace taiyen {
namespace {

uint64_t span_bytes(const ty_heap *heap, uint32_t size_class) {
    return heap->classes[size_class].pages * page_bytes;
}

// Sequentially consistent, as are the counts and the reads of owners: R2 depends on their order. True: more waits than
// R9 allows.
bool queue_span(thread_cache *cache, uint32_t size_class, uint32_t number) {
    std::atomic<uint32_t> &first = cache->remote[size_class];
    uint64_t bytes = span_bytes(cache->heap, size_class);
    uint64_t before = cache->waiting_bytes.fetch_add(bytes, std::memory_order_relaxed);
    uint32_t next = first.load(std::memory_order_relaxed);
    do
        cache->heap->states[number].remote_next.store(next, std::memory_order_relaxed);
    while (!first.compare_exchange_weak(next, number, std::memory_order_seq_cst, std::memory_order_relaxed));
    return passes_share(cache, before, before + bytes);
}

enum class counted { no, one_of_several, first };

// R1: no release while blocks are pending. R7: a released span cannot be counted in. From then on the number stays the
// span's.
counted count_in(span_state &state, uint32_t blocks) {
    uint32_t before = state.pending.load(std::memory_order_relaxed);
    do {
        if (before == pending_gone)
            return counted::no;
    } while (!state.pending.compare_exchange_weak(before, before + blocks, std::memory_order_seq_cst,
                                                  std::memory_order_relaxed));
    return before == 0 || fault("span_queued_twice") ? counted::first : counted::one_of_several;
}

// Sets the bits of those that are live, and returns which (R6: of two frees one succeeds; R8: a late free sets no bit).
uint64_t set_remote_bits(const ty_heap *heap, const span_state &state, word_blocks blocks) {
    if (state.head != blocks.head && !fault("late_remote_free_in_another_span"))
        return 0; // another span has the number now
    uint64_t live = blocks.mask;
    if (!fault("late_remote_free_of_a_free_block"))
        live &= state.bits[blocks.word].load(std::memory_order_relaxed);
    return live & ~remote_of(heap, blocks.head)[blocks.word].fetch_or(live, std::memory_order_seq_cst);
}

} // namespace

free_result free_remotely(ty_heap *heap, thread_cache *owner, uint32_t number, word_blocks blocks) {
    span_state &state = heap->states[number];
    uint32_t count = count_bits(blocks.mask);
    counted how = count_in(state, count);
    if (how == counted::no)
        return {};
    thread_cache *overdue = nullptr;
    uint64_t freed = set_remote_bits(heap, state, blocks);
    if (freed != blocks.mask && !fault("refused_remote_free_stays_counted")) [[unlikely]]
        state.refused.fetch_add(count - count_bits(freed), std::memory_order_seq_cst);
    if (how == counted::first) { // the caller holds no lock
        uint32_t size_class = state.size_class;
        if (queue_span(owner, size_class, number)) [[unlikely]]
            overdue = owner;
        if (state.owner.load(std::memory_order_seq_cst) != owner) [[unlikely]] {
            os::lock_guard guard(heap->spans[size_class].lock);
            redirect_remote(owner, size_class);
        }
    }
    return {freed == blocks.mask || fault("remote_free_succeeds_twice"), overdue};
}

uint32_t take_pending(ty_heap *heap, uint32_t number) {
    span_state &state = heap->states[number];
    std::atomic<uint64_t> *remote = remote_of(heap, state.head);
    uint32_t taken = 0;
    if (state.refused.load(std::memory_order_relaxed) != 0) [[unlikely]]
        taken = state.refused.exchange(0, std::memory_order_seq_cst);
    for (uint32_t i = 0; i < heap->classes[state.size_class].words; i++) {
        uint64_t freed = remote[i].load(std::memory_order_acquire);
        if (freed == 0)
            continue;
        uint64_t word = state.bits[i].load(std::memory_order_relaxed);
        state.bits[i].store(word & ~freed, std::memory_order_relaxed);
        state.used -= count_bits(word & freed);
        remote[i].fetch_and(~freed, std::memory_order_seq_cst); // R8: only after the persistent metadata
        taken += count_bits(freed);
    }
    if (fault("uncounted_remote_frees_taken_out"))
        taken = state.pending.load(std::memory_order_relaxed);
    return state.pending.fetch_sub(taken, std::memory_order_seq_cst) - taken;
}

void flush_remote(thread_cache *cache, uint32_t size_class) {
    const span_state *states = cache->heap->states;
    uint32_t number = cache->remote[size_class].exchange(0, std::memory_order_seq_cst);
    while (number != 0) {
        uint32_t next = states[number].remote_next.load(std::memory_order_relaxed);
        cache->waiting_bytes.fetch_sub(span_bytes(cache->heap, size_class), std::memory_order_relaxed);
        if (take_pending(cache->heap, number) != 0)
            queue_span(cache, size_class, number); // the thread that is about to set a bit relies on it
        if (number != cache->classes[size_class].current)
            place_freed(cache, number);
        number = next;
    }
}

[[gnu::cold]] void redirect_remote(thread_cache *cache, uint32_t size_class) {
    ty_heap *heap = cache->heap;
    uint32_t number = cache->remote[size_class].exchange(0, std::memory_order_seq_cst);
    while (number != 0) {
        const span_state &state = heap->states[number];
        uint32_t next = state.remote_next.load(std::memory_order_relaxed);
        cache->waiting_bytes.fetch_sub(span_bytes(heap, size_class), std::memory_order_relaxed);
        thread_cache *owner = state.owner.load(std::memory_order_seq_cst);
        if (owner != nullptr) {
            queue_span(owner, size_class, number);
        } else {
            while (take_pending(heap, number) != 0)
                os::give_way(); // another thread is between its count and its bit, and will not queue the span
            static_cast<void>(place_again(heap, nullptr, number)); // on failure it stays among the shared ones
        }
        number = next;
    }
}

} // namespace taiyen
