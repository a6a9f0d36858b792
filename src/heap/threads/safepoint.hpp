// The heap's safepoint: cache.hpp says how it and the fast path order their accesses.
//
// Y1: no thread waits for a safepoint, nor for something that only happens when a pause ends, with a lock held that
//      another thread may need to get there. Under a lock of a higher layer a thread waits at most for a pause that
//      changes the heap: those run no code of the program. Two of a transactional heap's own locks are an exception
//      (heap-threads.md, "Locks").
// Y2: pauses that only read a heap are under way together, so no thread that calls back in one keeps another from
//      reading, taking a snapshot or forking.
// Y3: a fork holds caches_lock only once it has paused all heaps; if one is being changed, it resumes all and waits.
// Y4: a thread that ends waits for no safepoint: it leaves its cache to the thread that ends the pause.
// Y5: a pause that calls back is not left by cancellation.
#pragma once

#include "cache.hpp"

namespace taiyen {

// For threads without a cache: takes safepoint_lock once no pause is under way.
void lock_open_safepoint(ty_heap *heap);

// Pauses without waiting for another pause. False: the heap is being changed, or its threads are not stopped yet.
bool try_pause(ty_heap *heap);

// R9 in remote.hpp. Does nothing while that thread works in its cache, or another holds the safepoint's lock or a
// pause. The caller has entered, and holds no lock.
void take_from_sleeper(thread_cache *owner);

// A futex that changes when try_pause may succeed where it failed, for threads that wait and hold no lock and no heap.
extern std::atomic<uint32_t> safepoints_changed;
extern std::atomic<uint32_t> waiting_for_safepoints; // number of threads
void wait_for_safepoints(uint32_t seen);

// The number of pauses of a heap in which this thread is being called back.
uint32_t pauses_called_back_in(const ty_heap *heap);

// After a fork, in the child: the paused heap loses the caches of all other threads.
void keep_only_cache(ty_heap *heap, const thread_table *table);

} // namespace taiyen
