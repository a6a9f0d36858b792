#include "cache.hpp"

#include "../pages/pages.hpp"
#include "../spans/spans.hpp"
#include "safepoint.hpp"
#include <new>

namespace taiyen {

namespace {

constinit thread_table no_caches{};            // of threads without caches: all empty, never written
constinit thread_table *idle_tables = nullptr; // of ended threads, empty; guarded by caches_lock, as is known_tables
constinit thread_table *known_tables = nullptr;
constinit uint32_t look_due = looks_apart_min; // Y7: how many threads begin or end before the next check
thread_local bool gave_up;                     // this thread released its caches when it ended
bool hooks_installed;                          // guarded by caches_lock, as is the key
pthread_key_t thread_ends;

thread_cache *map_cache(const ty_heap *heap) {
    if (heap->cached != nullptr)
        return heap->cached->map(heap);
    void *memory;
    if (os::map_memory(sizeof(thread_cache), os::memory_hint::none, &memory) != TY_OK)
        return nullptr;
    return new (memory) thread_cache; // without {}: that would touch all of it
}

[[gnu::cold]] void unmap_cache(thread_cache *cache) {
    if (cache->heap->cached != nullptr)
        cache->heap->cached->unmap(cache);
    else
        os::unmap_memory(cache, sizeof(thread_cache));
}

// R9: what waits for owners is bounded: 32 MiB for all threads together, and at least 256 KiB for each. Under the
// safepoint's lock.
void count_cache(ty_heap *heap, uint32_t change) {
    heap->cache_count += change;
    int halvings = 32 - __builtin_clz(heap->cache_count | 1);
    heap->waiting_share.store((uint64_t{32} << 20) >> (halvings < 7 ? halvings : 7), std::memory_order_relaxed);
}

[[gnu::cold]] void unlink_from_heap(thread_cache *cache) {
    thread_cache **link = &cache->heap->caches;
    while (*link != cache)
        link = &(*link)->next_in_heap;
    *link = cache->next_in_heap;
    count_cache(cache->heap, UINT32_MAX); // adds -1
}

[[gnu::cold]] void unlink_from_thread(thread_cache *cache) {
    if (cache->table == nullptr)
        return; // it rests
    thread_cache **link = &cache->table->first;
    while (*link != cache)
        link = &(*link)->next_in_thread;
    *link = cache->next_in_thread;
    if (cache->heap->cached != nullptr)
        cache->heap->cached->end(cache);
    cache->table->caches[cache->heap->slot].store(nullptr, std::memory_order_relaxed);
    if (cache->table->recent.load(std::memory_order_relaxed) == cache)
        cache->table->recent_bytes.store(0, std::memory_order_relaxed);
    cache->table = nullptr;
}

// Retires the cache of a thread that has ended: its spans lose their owner. The cache is kept for a later thread, as
// making one is the largest part of a thread's start; and another thread may be about to queue a span in it (R2: a
// queue that lost its owner is still drained). Under the safepoint's lock, or in a fork's child.
[[gnu::cold]] void retire_cache(thread_cache *cache) {
    ty_heap *heap = cache->heap;
    if (heap->cached != nullptr)
        heap->cached->shut(cache);
    flush_cache(cache, give_up::all);
    unlink_from_heap(cache);
    unlink_from_thread(cache);
    cache->next_in_heap = heap->idle_caches;
    heap->idle_caches = cache;
}

// R5: the cache of a thread that ended keeps its spans and blocks for the next thread. Under the safepoint's lock.
[[gnu::cold]] void rest_cache(thread_cache *cache) {
    ty_heap *heap = cache->heap;
    heap->cached->rest(cache);
    free_kept_extents(cache);
    unlink_from_thread(cache);
    cache->next_resting = heap->resting_caches;
    heap->resting_caches = cache;
    heap->resting_count.fetch_add(1, std::memory_order_relaxed);
}

// NULL: none rests. Under the safepoint's lock.
[[gnu::cold]] thread_cache *take_resting(ty_heap *heap) {
    thread_cache *cache = heap->resting_caches;
    if (cache != nullptr) {
        heap->resting_caches = cache->next_resting;
        heap->resting_count.fetch_sub(1, std::memory_order_relaxed);
    }
    return cache;
}

// For the cache of a thread that has ended. Under the safepoint's lock, with no pause, or at the end of one.
void end_cache(thread_cache *cache) {
    const ty_heap *heap = cache->heap;
    if (heap->cached != nullptr && heap->resting_count.load(std::memory_order_relaxed) < resting_max)
        rest_cache(cache);
    else
        retire_cache(cache);
}

// While a heap is paused its caches must not change: they are left to the thread that ends the pause (Y1, Y4: a thread
// that ends waits for no safepoint). Under caches_lock.
[[gnu::cold]] void end_table(thread_table *table) {
    while (thread_cache *cache = table->first) {
        ty_heap *heap = cache->heap;
        os::lock_guard safepoint(heap->safepoint_lock);
        unlink_from_thread(cache);
        while (fault("end_of_a_thread_waits_for_a_safepoint") && heap->pauses != 0)
            heap->safepoint_changed.wait(heap->safepoint_lock);
        if (heap->pauses == 0) {
            end_cache(cache);
        } else {
            cache->next_resting = heap->ended_caches;
            heap->ended_caches = cache;
        }
    }
    table->process = 0;
    table->next_idle = idle_tables;
    idle_tables = table;
}

// Y7: releases caches of threads that used a heap after their last destructor. A thread that the kernel no longer has
// works in no cache, and an acquire load of `busy` sees what it wrote. One that the kernel still has, or whose id was
// reused, is found later. Under caches_lock.
[[gnu::cold]] void look_for_ended() {
    const uint64_t process = os::process_id();
    look_due = looks_apart_min;
    for (thread_table *table = known_tables; table != nullptr; table = table->next_known) {
        if (table->process != process && !fault("caches_of_the_parents_threads_taken"))
            continue;
        bool ended = os::thread_has_ended(table->thread);
        for (thread_cache *cache = table->first; cache != nullptr && ended; cache = cache->next_in_thread)
            ended = cache->busy.load(std::memory_order_acquire) == 0;
        if (ended)
            end_table(table);
        else
            look_due++;
    }
}

// Called when a thread begins or ends. Under caches_lock.
void count_thread() {
    if (--look_due != 0) [[likely]]
        return;
    if (fault("ended_threads_not_looked_for"))
        look_due = looks_apart_min;
    else
        look_for_ended();
}

// Thread exit. Runs again if a later destructor of the thread uses a heap.
void end_thread(void *argument) {
    os::lock_guard guard(caches_lock);
    end_table(static_cast<thread_table *>(argument));
    current_table = &no_caches;
    gave_up = true;
    count_thread();
}

[[gnu::cold]] void name_owner(thread_table *table) {
    table->process = os::process_id();
    table->thread = os::thread_id();
    table->thread_pointer = os::thread_pointer();
}

// The heaps that concern a fork: not one that a thread is just restoring, which no other thread uses.
template <class Function>
void each_heap(size_t end, Function function) {
    for (size_t slot = 1; slot < end; slot++) {
        ty_heap *heap = heap_slots[slot].load(std::memory_order_relaxed);
        if (heap != nullptr && !heap->own)
            function(heap);
    }
}

// Pauses all heaps, or none. Under caches_lock.
bool try_pause_all() {
    bool all = true;
    each_heap(slots_end, [&](ty_heap *heap) { heap->fork_paused = all = all && try_pause(heap); });
    if (!all)
        each_heap(slots_end, [](ty_heap *heap) {
            if (heap->fork_paused)
                heap_resume(heap);
        });
    return all;
}

// While all heaps are paused no thread works on one; so a lock that is held all the same can be reset in the child. A
// heap in whose pause this thread, or another one, is calling back is paused already; the fork's pause is one more (Y2,
// Y3).
void before_fork() {
    for (;;) {
        uint32_t seen = safepoints_changed.load(std::memory_order_seq_cst);
        caches_lock.lock();
        if (try_pause_all())
            return;
        if (!fault("fork_waits_with_the_lock_of_the_caches"))
            caches_lock.unlock();
        wait_for_safepoints(seen);
        if (fault("fork_waits_with_the_lock_of_the_caches"))
            caches_lock.unlock();
    }
}

void after_fork(bool in_child) {
    each_heap(slots_end, [=](ty_heap *heap) {
        if (in_child)
            keep_only_cache(heap, current_table);
        if (in_child && heap->owner.forked != nullptr)
            heap->owner.forked(heap->owner.context);
        heap_resume(heap);
    });
    caches_lock.unlock();
}

void after_fork_in_parent() {
    after_fork(false);
}

void after_fork_in_child() {
    os::note_fork();
    if (current_table != &no_caches)
        name_owner(current_table);
    after_fork(true);
}

// Under caches_lock.
ty_status make_table() {
    if (current_table != &no_caches)
        return TY_OK;
    count_thread();
    if (idle_tables == nullptr) {
        void *memory;
        if (ty_status status = os::map_memory(sizeof(thread_table), os::memory_hint::none, &memory); status != TY_OK)
            return status;
        idle_tables = static_cast<thread_table *>(memory);
        idle_tables->next_known = known_tables;
        known_tables = idle_tables;
    }
    if (int error = pthread_setspecific(thread_ends, idle_tables); error != 0)
        return failure(TY_E_MEMORY, "set up a thread's caches").cause(error);
    current_table = idle_tables;
    idle_tables = current_table->next_idle;
    current_table->next_idle = nullptr;
    name_owner(current_table);
    gave_up = false;
    return TY_OK;
}

} // namespace

constinit thread_local thread_table *current_table = &no_caches;

bool find_cache(const void *address) {
    thread_cache *cache = cache_at(slot_of(address));
    if (cache == nullptr)
        return false;
    uintptr_t base = reinterpret_cast<uintptr_t>(cache->heap->base);
    current_table->recent_bytes.store(0, std::memory_order_relaxed);
    current_table->recent.store(cache, std::memory_order_relaxed);
    current_table->recent_base.store(base, std::memory_order_relaxed);
    uint64_t bytes = described_bytes(cache->heap);
    current_table->recent_bytes.store(bytes, std::memory_order_relaxed);
    return reinterpret_cast<uintptr_t>(address) - base < bytes;
}

static void link_to_heap(thread_cache *cache) {
    cache->next_in_heap = cache->heap->caches;
    cache->heap->caches = cache;
    count_cache(cache->heap, 1);
}

// A cache in the heap's list. Under the safepoint's lock.
[[gnu::cold, gnu::noinline]] static thread_cache *idle_or_new_cache(ty_heap *heap) {
    if (thread_cache *resting = take_resting(heap))
        return resting;
    if (thread_cache *idle = heap->idle_caches) {
        heap->idle_caches = idle->next_in_heap;
        link_to_heap(idle);
        return idle;
    }
    thread_cache *cache = map_cache(heap);
    if (cache == nullptr)
        return nullptr;
    cache->heap = heap;
    for (uint32_t c = 0; c < heap->class_count; c++)
        cache->classes[c].freed = &cache->freed[c].bottom;
    if (heap->cached != nullptr)
        heap->cached->make(cache);
    link_to_heap(cache);
    return cache;
}

thread_cache *cache_of(ty_heap *heap) {
    if (thread_cache *cache = cache_at(heap->slot))
        return cache;
    os::lock_guard guard(caches_lock);
    if (make_table() != TY_OK)
        return nullptr;
    os::lock_guard safepoint(heap->safepoint_lock);
    thread_cache *cache = idle_or_new_cache(heap);
    if (cache == nullptr)
        return nullptr;
    cache->table = current_table;
    cache->thread = os::thread_id();
    cache->next_in_thread = current_table->first;
    current_table->first = cache;
    current_table->caches[heap->slot].store(cache, std::memory_order_relaxed);
    uint32_t always = (heap->barrier ? 0 : safepoint_fence) | (heap_checked(heap) ? safepoint_checked : 0) |
                      (heap->cached != nullptr ? safepoint_magazines : 0);
    cache->safepoint.store((heap->pauses != 0 ? safepoint_requested : 0) | always, std::memory_order_relaxed);
    if (heap->cached != nullptr)
        heap->cached->start(cache);
    return cache;
}

void give_up_ended_threads() {
    os::lock_guard guard(caches_lock);
    look_for_ended();
}

thread_cache *cache_to_free(ty_heap *heap) {
    return gave_up ? cache_at(heap->slot) : cache_of(heap);
}

// Makes all resting caches release what they hold of all classes, unless they did so recently: the next threads should
// find their blocks again. Under the safepoint's lock.
[[gnu::cold]] static void share_all_resting(ty_heap *heap) {
    uint64_t now = os::now_ns();
    if (now - heap->all_resting_shared < heap->memory.period_ns / sharings_a_period)
        return;
    heap->all_resting_shared = now;
    for (thread_cache *cache = heap->resting_caches; cache != nullptr; cache = cache->next_resting) {
        heap->cached->rest(cache);
        flush_cache(cache, give_up::with_room);
    }
}

[[gnu::cold]] bool share_resting(ty_heap *heap, uint32_t size_class) {
    if (heap->resting_count.load(std::memory_order_relaxed) == 0 || !heap->safepoint_lock.try_lock())
        return false; // a pause may wait for the caller
    auto any = [=] {
        os::lock_guard guard(lock_of(heap, size_class));
        return any_shared(heap, size_class);
    };
    share_all_resting(heap);
    bool found = any();
    for (thread_cache *cache = heap->resting_caches; cache != nullptr && !found; cache = cache->next_resting) {
        heap->cached->rest(cache);
        flush_class(cache, size_class, give_up::with_room);
        found = any();
    }
    heap->safepoint_lock.unlock();
    return found;
}

void take_ended_caches(ty_heap *heap) {
    while (thread_cache *cache = heap->ended_caches) {
        heap->ended_caches = cache->next_resting;
        end_cache(cache);
    }
}

void drop_caches(ty_heap *heap) {
    while (thread_cache *cache = heap->caches) {
        unlink_from_heap(cache);
        unlink_from_thread(cache);
        unmap_cache(cache);
    }
    while (thread_cache *cache = heap->idle_caches) {
        heap->idle_caches = cache->next_in_heap;
        unmap_cache(cache);
    }
}

// In a forked child only the forking thread is left: the caches of the others release what they own.
[[gnu::cold]] void keep_only_cache(ty_heap *heap, const thread_table *table) {
    new (&heap->safepoint_lock)
        os::mutex(os::lock_rank::safepoint); // a thread that does not exist here may have held it
    new (&heap->safepoint_changed) os::condition;
    heap->pauses = pauses_called_back_in(heap) + 1; // pauses of threads that do not exist here are over; 1: the fork's
    heap->ended_caches = nullptr;
    while (take_resting(heap) != nullptr) // they are retired below, like the others
        ;
    thread_cache *next;
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = next) {
        next = cache->next_in_heap;
        if (cache->table == table) {
            cache->thread = os::thread_id();
            continue;
        }
        retire_cache(cache);
    }
}

size_t heap_thread_pointers(uintptr_t *pointers, size_t most) {
    const uint64_t process = os::process_id();
    size_t count = 0;
    os::lock_guard guard(caches_lock);
    for (const thread_table *table = known_tables; table != nullptr; table = table->next_known)
        if (table->process == process && count++ < most)
            pointers[count - 1] = table->thread_pointer;
    return count;
}

void heap_leave(ty_heap *heap) {
    heap->writable = false;
    heap->left = true;
    for (thread_cache *cache = heap->caches; cache != nullptr; cache = cache->next_in_heap)
        unlink_from_thread(cache); // with what it holds: no memory is returned to a heap of another process
}

[[gnu::cold]] ty_status install_hooks() {
    if (hooks_installed)
        return TY_OK;
    int error = pthread_key_create(&thread_ends, end_thread);
    if (error == 0)
        error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    if (error != 0)
        return failure(TY_E_MEMORY, "register for ends of threads and forks").cause(error);
    hooks_installed = true;
    return TY_OK;
}

} // namespace taiyen
