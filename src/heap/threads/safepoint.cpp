#include "safepoint.hpp"

#include "../spans/spans.hpp"

namespace taiyen {

void lock_open_safepoint(ty_heap *heap) {
    heap->safepoint_lock.lock();
    while (heap->pauses != 0)
        heap->safepoint_changed.wait(heap->safepoint_lock);
}

void enter_slowly(thread_cache *cache) {
    for (;;) {
        cache->busy.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        uint32_t safepoint = cache->safepoint.load(std::memory_order_acquire);
        if (safepoint & safepoint_fence) {
            // Store before load in the total order: both sides use sequentially consistent operations here.
            cache->busy.exchange(1, std::memory_order_seq_cst);
            safepoint = cache->safepoint.load(std::memory_order_seq_cst);
        }
        if (!(safepoint & safepoint_requested))
            return;
        cache->busy.store(0, std::memory_order_release);
        lock_open_safepoint(cache->heap);
        cache->heap->safepoint_lock.unlock();
    }
}

// Y5: a callback does not wait for its own pause.
operation::operation(ty_heap *heap, thread_cache *find(ty_heap *), pause_to what) : heap_(nullptr) {
    if (!heap->writable ||
        (what == pause_to::look && pauses_called_back_in(heap) != 0 && !fault("callback_waits_for_its_own_walk")))
        return; // nothing changes it
    heap_ = heap;
    cache_ = find(heap);
    if (cache_ != nullptr)
        enter(cache_);
    else
        lock_open_safepoint(heap);
}

operation::~operation() {
    if (cache_ != nullptr)
        leave(cache_);
    else if (heap_ != nullptr)
        heap_->safepoint_lock.unlock();
}

constinit std::atomic<uint32_t> safepoints_changed{0};
constinit std::atomic<uint32_t> waiting_for_safepoints{0};

namespace {

thread_local const callback_pause *called_back_in = nullptr; // the innermost

// Where the process barrier stops working, threads use their own fences from then on. Under the safepoint's lock, with
// the safepoint requested in all caches that are checked next.
[[gnu::cold]] void process_barrier(ty_heap *heap) {
    if (!heap->barrier || os::process_barrier())
        return;
    heap->barrier = false;
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        cache->safepoint.fetch_or(safepoint_fence, std::memory_order_seq_cst);
    os::await_stores();
}

void flush_all(ty_heap *heap) {
    for (thread_cache *cache = heap->cached != nullptr ? heap->caches : nullptr; cache != nullptr;
         cache = cache->next_in_heap)
        heap->cached->deliver(cache); // before any is flushed
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        flush_cache(cache, give_up::nothing);
}

// Stops all threads, for the first pause. Under the safepoint's lock, which it releases while it waits for threads to
// finish their operations: caches made meanwhile see the request, and none is removed.
void stop_threads(ty_heap *heap) {
    thread_cache *first = heap->caches;
    for (thread_cache *cache = first; cache != nullptr; cache = cache->next_in_heap)
        cache->safepoint.fetch_or(safepoint_requested, std::memory_order_seq_cst);
    process_barrier(heap);
    heap->safepoint_lock.unlock();
    for (const thread_cache *cache = first; cache != nullptr; cache = cache->next_in_heap) {
        while (cache->busy.load(std::memory_order_seq_cst) != 0)
            os::give_way(); // it finishes one operation; a fast path that sees the request leaves at once
    }
    heap->safepoint_lock.lock();
    flush_all(heap);
    heap->stopped = true;
    heap->safepoint_changed.notify_all();
}

// Wakes threads that wait for any safepoint, to try again.
void announce_safepoints() {
    safepoints_changed.fetch_add(1, std::memory_order_seq_cst);
    if (waiting_for_safepoints.load(std::memory_order_seq_cst) != 0)
        os::wake_all(safepoints_changed);
}

} // namespace

// Y1: the caller holds no lock that another thread may need.
void wait_for_safepoints(uint32_t seen) {
    waiting_for_safepoints.fetch_add(1, std::memory_order_seq_cst); // pairs with heap_resume: one sees the other
    os::wait_on(safepoints_changed, seen);
    waiting_for_safepoints.fetch_sub(1, std::memory_order_relaxed);
}

// R9: what waits for owners that sleep is bounded.
[[gnu::cold]] void take_from_sleeper(thread_cache *owner) {
    ty_heap *heap = owner->heap;
    if (!heap->safepoint_lock.try_lock())
        return; // a pause may wait for the caller
    if (heap->pauses == 0) {
        owner->safepoint.fetch_or(safepoint_requested, std::memory_order_seq_cst);
        process_barrier(heap);
        if (owner->busy.load(std::memory_order_seq_cst) == 0) {
            give_up which = owner->asleep ? give_up::with_room : give_up::nothing;
            if (heap->cached != nullptr)
                heap->cached->rest(owner);
            flush_cache(owner, which);
            owner->asleep = true;
        }
        owner->safepoint.fetch_and(~safepoint_requested, std::memory_order_seq_cst);
    }
    heap->safepoint_lock.unlock();
}

// Y2: pauses that only read a heap are under way together.
void heap_pause(ty_heap *heap, pause_to what) {
    os::lock_guard guard(heap->safepoint_lock);
    while (what == pause_to::change || fault("look_waits_for_another_look") ? heap->pauses != 0 : heap->changing)
        heap->safepoint_changed.wait(heap->safepoint_lock);
    heap->changing = what == pause_to::change;
    if (heap->pauses++ == 0) {
        stop_threads(heap);
        announce_safepoints();
        return;
    }
    while (!heap->stopped)
        heap->safepoint_changed.wait(heap->safepoint_lock);
}

bool try_pause(ty_heap *heap) {
    os::lock_guard guard(heap->safepoint_lock);
    if (heap->changing || (heap->pauses != 0 && !heap->stopped))
        return false;
    if (heap->pauses++ == 0)
        stop_threads(heap);
    return true;
}

// Y4: caches of threads that ended meanwhile are left to the thread that ends the pause.
void heap_resume(ty_heap *heap) {
    {
        os::lock_guard guard(heap->safepoint_lock);
        if (--heap->pauses != 0)
            return;
        heap->changing = heap->stopped = false;
        if (!fault("caches_of_ended_threads_forgotten"))
            take_ended_caches(heap);
        for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
            cache->safepoint.fetch_and(~safepoint_requested, std::memory_order_seq_cst);
        heap->safepoint_changed.notify_all();
    }
    announce_safepoints();
}

callback_pause::callback_pause(ty_heap *heap) : heap_(heap), outer_(called_back_in), paused_(heap) {
    called_back_in = this;
}

callback_pause::~callback_pause() {
    called_back_in = outer_;
}

uint32_t pauses_called_back_in(const ty_heap *heap) {
    uint32_t count = 0;
    for (const callback_pause *each = called_back_in; each != nullptr; each = each->outer_)
        count += each->heap_ == heap;
    return count;
}

} // namespace taiyen
