#include "remote_batches.hpp"

#include "../pages/pages.hpp"
#include "../spans/spans.hpp"
#include "../threads/threads.hpp"
#include "pointer.hpp"

namespace taiyen {
namespace {

// Bounds what waits to be sent, since no thread can use it meanwhile.
constexpr uint32_t outgoing_bytes_max = 65536;

// The value of a closed remote-free queue.
remote_batch *shut_mark() {
    return reinterpret_cast<remote_batch *>(uintptr_t{1});
}

thread_cache *owner_of(const ty_heap *heap, const char *block) {
    const magazine *cached = stack_for(heap, offset_in(heap, block));
    return cached != nullptr ? cache_with(heap, cached) : nullptr;
}

// Frees blocks in the persistent metadata: those of spans that no thread owns, or whose owner cannot be reached. Blocks
// of one bitmap word are freed together.
class metadata_freer {
public:
    explicit metadata_freer(thread_cache *cache) : cache_(cache) {}
    ~metadata_freer() { free_word(); }
    metadata_freer(const metadata_freer &) = delete;
    metadata_freer &operator=(const metadata_freer &) = delete;

    void add(const char *block) {
        ty_heap *heap = cache_->heap;
        uint64_t offset = offset_in(heap, block);
        const page_descriptor &page = heap->descriptors[offset / page_bytes];
        small_block place = small_block_at(heap, page.size_class, offset);
        uint64_t bit = uint64_t{1} << place.index % 64;
        bool same = mask_ != 0 && place.head == place_.head && place.index / 64 == place_.index / 64;
        if (page.kind != page_span || !place.exact || !is_live(heap, place) || (same && mask_ & bit)) [[unlikely]]
            return report_wrong_free(heap, block);
        if (!same) {
            free_word();
            place_ = place;
        }
        mask_ |= bit;
    }

private:
    void free_word() {
        if (mask_ == 0)
            return;
        ty_heap *heap = cache_->heap;
        uint64_t mask = mask_;
        mask_ = 0;
        uint32_t number = number_of(heap, place_.head);
        thread_cache *owner = heap->states[number].owner.load(std::memory_order_seq_cst);
        if (owner != nullptr && owner != cache_) {
            free_result result = free_remotely(heap, owner, number, {place_.head, place_.index / 64, mask});
            if (result.overdue != nullptr) [[unlikely]]
                take_from_sleeper(result.overdue);
            if (!result.freed)
                report_wrong_free(heap, address_of(place_)); // or a neighbour: freed by two threads at once
            return;
        }
        for (; mask != 0; mask &= mask - 1) {
            small_block block = place_;
            block.index = place_.index / 64 * 64 + static_cast<uint32_t>(__builtin_ctzll(mask));
            free_result result;
            if (free_unowned(heap, cache_, block, &result) != TY_OK || !result.freed)
                report_wrong_free(heap, address_of(block));
        }
    }
    const char *address_of(const small_block &block) const {
        const ty_heap *heap = cache_->heap;
        return page_address(heap, block.head) + size_t{block.index} * heap->classes[block.size_class].block_bytes;
    }

    thread_cache *cache_;
    small_block place_{}; // one of the blocks in mask_
    uint64_t mask_ = 0;
};

// False: the queue is closed (R3: nothing sent to a thread that ended is lost).
bool post(thread_cache *owner, remote_batch *sent) {
    remote_batch *first = owner->remote_queue.load(std::memory_order_relaxed);
    do {
        const bool shut = first == shut_mark();
        if (shut && !fault("remote_batch_put_into_a_closed_queue"))
            return false;
        sent->next = shut ? nullptr : first;
    } while (
        !owner->remote_queue.compare_exchange_weak(first, sent, std::memory_order_release, std::memory_order_relaxed));
    return true; // pairs with the acquire in receive_remote_batches
}

// R9: what waits for sleeping owners is bounded. Senders may overwrite each other's counts: an approximate count is
// enough here, and a locked instruction for each batch is not worth it.
void count_waiting(thread_cache *owner, uint64_t bytes) {
    uint64_t before = owner->waiting_bytes.load(std::memory_order_relaxed);
    owner->waiting_bytes.store(before + bytes, std::memory_order_relaxed);
    if (passes_share(owner, before, before + bytes)) [[unlikely]]
        take_from_sleeper(owner);
}

// Blocks that cannot be sent in a batch are freed in the persistent metadata. bytes: their size, approximately.
void send_remote_batch(thread_cache *cache, thread_cache *owner, char *const *blocks, uint32_t count, uint64_t bytes) {
    const ty_heap *heap = cache->heap;
    char *memory = take_without_remote_batches(cache, heap->class_of[sizeof(remote_batch) / 8]);
    if (memory != nullptr) {
        remote_batch *sent = reinterpret_cast<remote_batch *>(memory);
        sent->count = count;
        for (uint32_t i = 0; i < count; i++)
            sent->blocks[i] = blocks[i];
        if (post(owner, sent))
            return count_waiting(owner, bytes + sizeof(remote_batch));
        put_on_stacks(cache, &memory, 1);
    }
    metadata_freer metadata(cache);
    for (uint32_t i = 0; i < count; i++)
        metadata.add(blocks[i]);
}

// Sends all blocks that have the same owner as the first. Returns how many are left.
uint32_t send_to_one(thread_cache *cache, char **blocks, uint32_t count, uint64_t block_bytes) {
    thread_cache *owner = owner_of(cache->heap, blocks[0]);
    char *own[outgoing_max];
    uint32_t sent = 0, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (owner_of(cache->heap, blocks[i]) == owner)
            own[sent++] = blocks[i];
        else
            blocks[kept++] = blocks[i];
    }
    if (sent == 0)
        return kept; // the owner has just changed: the next round sees the new one
    if (owner != nullptr && owner != cache) {
        send_remote_batch(cache, owner, own, sent, sent * block_bytes);
        return kept;
    }
    metadata_freer metadata(cache);
    for (uint32_t i = 0; i < sent; i++)
        metadata.add(own[i]);
    return kept;
}

[[gnu::noinline]] void send_outgoing(thread_cache *cache) {
    uint32_t left = cache->outgoing_count, bytes = cache->outgoing_bytes;
    if (left == 0)
        return;
    cache->outgoing_count = 0;
    cache->outgoing_bytes = 0;
    if (cache->outgoing_to != nullptr)
        return send_remote_batch(cache, cache->outgoing_to, cache->outgoing, left, bytes);
    for (uint32_t average = bytes / left; left != 0;)
        left = send_to_one(cache, cache->outgoing, left, average);
}

void unpack(thread_cache *cache, remote_batch *each) {
    while (each != nullptr) {
        remote_batch *next = each->next;
        auto *own = reinterpret_cast<char *>(each);
        put_on_stacks(cache, each->blocks, each->count);
        put_on_stacks(cache, &own, 1);
        each = next;
    }
}

// All threads are stopped, so a block can be put on its owner's stack.
void deliver_block(thread_cache *cache, char *block) {
    if (thread_cache *owner = owner_of(cache->heap, block))
        return put_on_stacks(owner, &block, 1);
    metadata_freer metadata(cache);
    metadata.add(block);
}

enum class gathered { cached, full, wrong };

// full: the caller must call send_outgoing.
[[gnu::always_inline]] inline gathered gather(thread_cache *cache, const void *block, thread_cache *owner,
                                              uint32_t size_class) {
    const ty_heap *heap = cache->heap;
    const class_info &info = heap->classes[size_class];
    place_in_span place = find_place(info.reciprocal, offset_in(heap, block) & info.span_mask);
    if (!place.exact || place.index >= info.blocks) [[unlikely]]
        return gathered::wrong;
    uint32_t count = cache->outgoing_count;
    uint32_t bytes = cache->outgoing_bytes + info.block_bytes;
    if (cache->outgoing_to != owner)
        cache->outgoing_to = count == 0 ? owner : nullptr;
    cache->outgoing[count] = static_cast<char *>(const_cast<void *>(block));
    cache->outgoing_count = ++count;
    cache->outgoing_bytes = bytes;
    return count < outgoing_max && bytes < outgoing_bytes_max ? gathered::cached : gathered::full;
}

// The stack's address determines owner and class; the stack's content, like the span's, is in the owner's processor
// cache.
[[gnu::always_inline]] inline gathered gather_owned(thread_cache *cache, const void *block, const magazine *stack) {
    thread_cache *owner = cache_with(cache->heap, stack);
    return gather(cache, block, owner, static_cast<uint32_t>(stack - owner->cached));
}

[[gnu::noinline]] ty_status end_free(thread_cache *cache, void *block, cached_free result) {
    if (cache->outgoing_count == 0 && has_remote_batches(cache))
        receive_remote_batches(cache); // it has just sent batches: so it gets the blocks of its own ones back
    leave(cache);
    return result == cached_free::cached ? TY_OK : heap_free(block);
}

// An extent, a block in a span without owner, or no block.
[[gnu::noinline]] ty_status free_unstacked(thread_cache *cache, void *block) {
    const ty_heap *heap = cache->heap;
    uint64_t page = offset_in(heap, block) / page_bytes;
    bool kept = page < top_of(heap) && page_address(heap, page) == block && keep_extent(cache, page);
    return end_free(cache, block, kept ? cached_free::cached : send_later(cache, block, nullptr));
}

[[gnu::noinline]] ty_status free_full(thread_cache *cache, void *block) {
    send_outgoing(cache);
    return end_free(cache, block, cached_free::cached);
}

} // namespace

cached_free send_later(thread_cache *cache, const void *block, const magazine *stack) {
    gathered result;
    if (stack != nullptr) {
        result = gather_owned(cache, block, stack);
    } else {
        const ty_heap *heap = cache->heap;
        uint64_t page = offset_in(heap, block) / page_bytes;
        if (page >= top_of(heap) || kind_of(heap->descriptors[page]) != page_span)
            return cached_free::elsewhere;
        result = gather(cache, block, nullptr, heap->descriptors[page].size_class);
    }
    if (result == gathered::full)
        send_outgoing(cache);
    return result == gathered::wrong ? cached_free::wrong : cached_free::cached;
}

// Makes only tail calls, so that it needs no stack frame.
ty_status free_cached_elsewhere(void *block, const magazine *stack) {
    thread_cache *cache = magazine_cache;
    if (stack == nullptr) [[unlikely]]
        return free_unstacked(cache, block);
    gathered result = gather_owned(cache, block, stack);
    if (result == gathered::full) [[unlikely]]
        return free_full(cache, block);
    if (result == gathered::wrong) [[unlikely]]
        return end_free(cache, block, cached_free::wrong);
    leave(cache);
    return TY_OK;
}

bool has_remote_batches(const thread_cache *cache) {
    return cache->remote_queue.load(std::memory_order_relaxed) > shut_mark();
}

void receive_remote_batches(thread_cache *cache) {
    cache->waiting_bytes.store(0, std::memory_order_relaxed);
    cache->asleep = false;
    unpack(cache, cache->remote_queue.exchange(nullptr, std::memory_order_acquire));
}

void open_remote_queue(thread_cache *cache) {
    remote_batch *expected = shut_mark();
    cache->remote_queue.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed);
}

void close_remote_queue(thread_cache *cache) {
    remote_batch *first = cache->remote_queue.exchange(shut_mark(), std::memory_order_acquire);
    if (first != shut_mark() && !fault("ended_thread_loses_its_remote_queue"))
        unpack(cache, first);
    send_outgoing(cache);
}

void send_all(thread_cache *cache) {
    if (has_remote_batches(cache))
        receive_remote_batches(cache);
    send_outgoing(cache);
}

// R4: a paused heap has no remote-free batches under way.
void deliver(thread_cache *cache) {
    uint32_t count = cache->outgoing_count;
    cache->outgoing_count = 0;
    cache->outgoing_bytes = 0;
    for (uint32_t i = fault("pause_leaves_gathered_frees"); i < count; i++)
        deliver_block(cache, cache->outgoing[i]);
    const bool opens = has_remote_batches(cache) && !fault("pause_leaves_unreceived_remote_batches");
    remote_batch *each = opens ? cache->remote_queue.exchange(nullptr, std::memory_order_acquire) : nullptr;
    while (each != nullptr) {
        remote_batch *next = each->next;
        for (uint64_t i = 0; i < each->count; i++)
            deliver_block(cache, each->blocks[i]);
        deliver_block(cache, reinterpret_cast<char *>(each));
        each = next;
    }
}

} // namespace taiyen
