// Threads' caches of heaps: how a thread finds its own, and the safepoint that makes all of them stand still.
//
// A thread works on a heap between enter and leave, as `busy` says. Who shuts the safepoint then waits until no cache
// is busy. The fast path stores `busy` and loads `safepoint`, in this order in the program; the process barrier of the
// one who shuts makes that the order in memory, so that either the thread sees the safepoint shut or the shutter sees
// it busy.
#pragma once

#include "../tables/tables.hpp"

namespace taiyen {

// A thread's caches by heap slot, and the heap that its last free was in. Lazily backed.
struct thread_table {
    // Compared first: no load here depends on the address that is looked up. bytes 0: none. Written by the thread, and
    // cleared by who detaches the heap.
    std::atomic<uintptr_t> recent_base;
    std::atomic<uint64_t> recent_bytes;
    std::atomic<thread_cache *> recent;
    thread_cache *first; // guarded by caches_lock, as is the rest
    thread_table *next_idle;
    thread_table *next_known;
    uint64_t process; // Y7: whose it is
    uint64_t thread;
    uintptr_t thread_pointer; // os::thread_pointer() of it
    std::atomic<thread_cache *> caches[slot_count];
};

// This thread's table; one that stays empty at first. Never NULL.
extern constinit thread_local thread_table *own_table;

// This thread's cache of a heap, if it has one. Slot 0 has none.
inline thread_cache *cache_at(uint16_t slot) {
    return own_table->caches[slot].load(std::memory_order_relaxed);
}

// Makes this thread's cache of the heap that an address lies in the recent one; false: there is none.
bool find_cache(const void *address);

// Makes this thread's cache of a heap, unless it has one; NULL with the error detail set for want of memory.
thread_cache *cache_of(ty_heap *heap);

// The same for what can do without, but that NULL leaves no detail: a thread that has given up its caches gets no new
// one. Nobody may tell it a second time that it ends: libc itself frees blocks of a thread after the last destructor.
thread_cache *cache_to_free(ty_heap *heap);

void enter_slowly(thread_cache *cache);

inline void leave(thread_cache *cache) {
    cache->busy.store(0, std::memory_order_release);
}

// False: the thread has not entered; that needs more.
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

// Work on a heap by a thread that may have no cache. Without one it holds the safepoint's lock meanwhile. What only
// looks may do so in a pause in which its thread is called back, too.
class [[nodiscard]] operation {
public:
    explicit operation(ty_heap *heap, pause_to what = pause_to::change) : operation(heap, cache_of, what) {}
    operation(ty_heap *heap, thread_cache *find(ty_heap *), pause_to what = pause_to::change);
    ~operation();
    operation(const operation &) = delete;
    operation &operator=(const operation &) = delete;
    thread_cache *cache() const { return cache_; }

private:
    ty_heap *heap_; // NULL: nothing is entered
    thread_cache *cache_ = nullptr;
};

// heap_pause and heap_resume for the time of a scope.
class [[nodiscard]] pause_guard {
public:
    explicit pause_guard(ty_heap *heap, pause_to what = pause_to::look) : heap_(heap) { heap_pause(heap, what); }
    ~pause_guard() { heap_resume(heap_); }
    pause_guard(const pause_guard &) = delete;
    pause_guard &operator=(const pause_guard &) = delete;

private:
    ty_heap *heap_;
};

// A pause in which the program is called back (Y5). A fork from within is told of it.
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

// R5: where threads hold blocks, the cache of a thread that ends rests, for the next thread that starts: it keeps its
//     spans and blocks, and a pause finds it among the others. Who is about to make a span first has those that rest
//     give up what they have of that class, one after the other, or, some times in a period of decay, all.
inline constexpr uint32_t resting_max = 8;

// True: there may be a span without owner now. False too where a pause is about to wait for the caller, who has
// entered.
bool share_resting(ty_heap *heap, uint32_t size_class);

// Y4 in safepoint.hpp: the caches of threads that ended while the heap stood still rest or are given up. Under the
// safepoint's lock.
void take_ended_caches(ty_heap *heap);

// Takes the heap out of all threads' tables and drops its caches; no thread uses the heap any more. Under caches_lock.
void drop_caches(ty_heap *heap);

// Y7: a thread that used a heap after its last destructor, where nobody tells it that it ends, is given up by others:
//     each time that as many threads as there are have begun or ended, those are looked for that the kernel has not got
//     any more. Of this process alone: threads of a parent's are not the child's to judge, nor the other way round.
inline constexpr uint32_t looks_apart_min = 8; // in threads that begin or end
// Looks for them at once. The caller holds no lock.
void give_up_ended_threads();

// Once a process: what must happen when a thread ends and when the process forks. Under caches_lock.
ty_status install_hooks();

} // namespace taiyen
