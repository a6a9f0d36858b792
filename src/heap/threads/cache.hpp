// Thread caches: how a thread finds its cache of a heap, and the safepoint that stops all threads.
//
// A thread works on a heap between enter and leave, as `busy` says. A thread that requests the safepoint waits until no
// cache is busy. The fast path stores `busy` and then loads `safepoint`, in program order only; the process barrier of
// the requesting thread makes that the memory order, too: either the thread sees the request, or the requester sees it
// busy.
#pragma once

#include "../tables/tables.hpp"

namespace taiyen {

// A thread's caches by heap slot, and the heap of its last free. Lazily backed.
struct thread_table {
    // Compared first, so that no load depends on the address that is looked up. bytes 0: none. Written by the thread,
    // and cleared by the thread that detaches the heap.
    std::atomic<uintptr_t> recent_base;
    std::atomic<uint64_t> recent_bytes;
    std::atomic<thread_cache *> recent;
    thread_cache *first; // guarded by caches_lock, as are the members below
    thread_table *next_idle;
    thread_table *next_known;
    uint64_t process; // Y7: the process of the thread
    uint64_t thread;
    uintptr_t thread_pointer; // its os::thread_pointer()
    std::atomic<thread_cache *> caches[slot_count];
};

// This thread's table; at first one that stays empty. Never NULL.
extern constinit thread_local thread_table *current_table;

// This thread's cache of a heap, or NULL. Slot 0 has none.
inline thread_cache *cache_at(uint16_t slot) {
    return current_table->caches[slot].load(std::memory_order_relaxed);
}

// Makes this thread's cache of the heap at an address the recent one. False: it has no cache there.
bool find_cache(const void *address);

// This thread's cache of a heap, made if it has none; NULL with the error detail set when memory is short.
thread_cache *cache_of(ty_heap *heap);

// The same for callers that can do without one; this NULL leaves no detail. A thread that has released its caches gets
// no new one: it cannot detect a second end, and libc itself frees blocks of a thread after its last destructor.
thread_cache *cache_to_free(ty_heap *heap);

void enter_slowly(thread_cache *cache);

inline void leave(thread_cache *cache) {
    cache->busy.store(0, std::memory_order_release);
}

// False: the thread has not entered; the caller takes the slow path.
inline bool try_enter(thread_cache *cache, uint32_t safepoint = 0) {
    cache->busy.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (cache->safepoint.load(std::memory_order_acquire) == safepoint) [[likely]]
        return true;
    leave(cache);
    return false;
}

inline void enter(thread_cache *cache) {
    if (!try_enter(cache)) [[unlikely]]
        enter_slowly(cache);
}

// Work on a heap by a thread that may have no cache. Without one it holds the safepoint's lock meanwhile. Work that
// only reads is also possible in a pause in which the thread is being called back.
class [[nodiscard]] operation {
public:
    explicit operation(ty_heap *heap, pause_to what = pause_to::change) : operation(heap, cache_of, what) {}
    operation(ty_heap *heap, thread_cache *find(ty_heap *), pause_to what = pause_to::change);
    ~operation();
    operation(const operation &) = delete;
    operation &operator=(const operation &) = delete;
    thread_cache *cache() const { return cache_; }

private:
    ty_heap *heap_; // NULL: not entered
    thread_cache *cache_ = nullptr;
};

// heap_pause and heap_resume for a scope.
class [[nodiscard]] pause_guard {
public:
    explicit pause_guard(ty_heap *heap, pause_to what = pause_to::look) : heap_(heap) { heap_pause(heap, what); }
    ~pause_guard() { heap_resume(heap_); }
    pause_guard(const pause_guard &) = delete;
    pause_guard &operator=(const pause_guard &) = delete;

private:
    ty_heap *heap_;
};

// A pause in which the program is called back (Y5: it is not left by cancellation). A fork from within it learns of it.
class [[nodiscard]] callback_pause {
public:
    explicit callback_pause(ty_heap *heap);
    ~callback_pause();
    callback_pause(const callback_pause &) = delete;
    callback_pause &operator=(const callback_pause &) = delete;

private:
    friend uint32_t pauses_called_back_in(const ty_heap *heap);

    os::not_cancelable whole_;
    ty_heap *heap_;
    const callback_pause *outer_; // of the same thread
    pause_guard paused_;
};

// R5: with cached blocks, the cache of a thread that ends rests, for the next thread that starts: it keeps its spans
// and blocks, and a pause handles it like the others. A thread that is about to make a span first makes resting caches
// release what they hold of that class, one after the other, or, several times in a period of decay, everything.
inline constexpr uint32_t resting_max = 8;

// True: there may be a span without owner now. Also false where a pause is about to wait for the caller, who has
// entered.
bool share_resting(ty_heap *heap, uint32_t size_class);

// Y4 in safepoint.hpp: the caches of threads that ended during the pause rest or are retired. Under the safepoint's
// lock.
void take_ended_caches(ty_heap *heap);

// Removes the heap from all threads' tables and drops its caches; no thread uses the heap any more. Under caches_lock.
void drop_caches(ty_heap *heap);

// Y7: a thread that used a heap after its last destructor, so that its end is not noticed, has its caches released by
// others: each time that as many threads as there are have begun or ended, the tables are checked for threads that the
// kernel no longer has. Only for threads of this process: a child does not judge its parent's threads, nor the other
// way round.
inline constexpr uint32_t looks_apart_min = 8; // in threads that begin or end
// Checks for them at once. The caller holds no lock.
void give_up_ended_threads();

// Once per process: registers the hooks for the end of a thread and for a fork. Under caches_lock.
ty_status install_hooks();

} // namespace taiyen
