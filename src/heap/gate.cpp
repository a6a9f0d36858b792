#include "gate.hpp"

#include "spans.hpp"

namespace taiyen {

void lock_open_gate(ty_heap *heap) {
    heap->gate_lock.lock();
    while (heap->shut)
        heap->gate_opened.wait(heap->gate_lock);
}

void enter_slowly(thread_cache *cache) {
    for (;;) {
        cache->busy.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        uint32_t gate = cache->gate.load(std::memory_order_acquire);
        if (gate & gate_fence) {
            // Store and load in one order for all: both sides use sequentially consistent operations here.
            cache->busy.exchange(1, std::memory_order_seq_cst);
            gate = cache->gate.load(std::memory_order_seq_cst);
        }
        if (!(gate & gate_shut))
            return;
        cache->busy.store(0, std::memory_order_release);
        lock_open_gate(cache->heap);
        cache->heap->gate_lock.unlock();
    }
}

operation::operation(ty_heap *heap, thread_cache *find(ty_heap *)) : heap_(heap), cache_(nullptr) {
    if (!heap->writable)
        return; // nobody changes it
    cache_ = find(heap);
    if (cache_ != nullptr)
        enter(cache_);
    else
        lock_open_gate(heap);
}

operation::~operation() {
    if (cache_ != nullptr)
        leave(cache_);
    else if (heap_->writable)
        heap_->gate_lock.unlock();
}

void heap_pause(ty_heap *heap) {
    lock_open_gate(heap);
    heap->shut = true;
    heap->pauser = pthread_self();
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        cache->gate.fetch_or(gate_shut, std::memory_order_seq_cst);
    if (heap->barrier)
        os::process_barrier();
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap) {
        while (cache->busy.load(std::memory_order_seq_cst) != 0)
            os::yield(); // it finishes one operation; a fast path that meets the shut gate goes back at once
    }
    for (thread_cache *cache = heap->held != nullptr ? heap->caches : nullptr; cache != nullptr;
         cache = cache->next_in_heap)
        heap->held->deliver(cache); // before any settles
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        settle_cache(cache, give_up::nothing);
    heap->gate_lock.unlock();
}

[[gnu::cold]] void heap_resume(ty_heap *heap) {
    heap->gate_lock.lock();
    heap->shut = false;
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        cache->gate.fetch_and(~gate_shut, std::memory_order_seq_cst);
    heap->gate_opened.notify_all();
    heap->gate_lock.unlock();
}

} // namespace taiyen
