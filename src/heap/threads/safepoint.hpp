// The heap's safepoint: see cache.hpp for how it and the fast path order their accesses.
//
// Y1: nobody waits for a safepoint, nor for something that only happens when a safepoint opens, with a lock held that
// another
//     thread may need to get there. Under a lock of a higher layer one waits at most for a pause that changes the heap:
//     these run nothing of the program's. Two of a transactional heap's own locks are an exception (heap-threads.md,
//     "Locks").
// Y2: pauses that only look at a heap are under way together, so no thread that calls back in one keeps another from
//     looking, taking a snapshot or forking.
// Y3: a fork holds the caches' lock only once it has all safepoints; where one changes just now, it lets go of all and
//     waits.
// Y4: a thread that ends waits for no safepoint: it leaves its cache to who opens the safepoint.
// Y5: a pause that calls back is not left by cancellation.
#pragma once

#include "cache.hpp"

namespace taiyen {

// For threads without a cache: takes safepoint_lock once the safepoint is open.
void lock_open_safepoint(ty_heap *heap);

// Without a wait for another pause. False: the heap is being changed, or does not stand still yet.
bool try_pause(ty_heap *heap);

// R9 in remote.hpp. Does nothing where that thread is at work in its cache, or somebody has the safepoint's lock or a
// pause. The caller has entered, and holds no lock.
void take_from_sleeper(thread_cache *owner);

// A word that changes when try_pause may be true where it was false, for who waits and holds nothing, no heap either.
extern std::atomic<uint32_t> safepoints_changed;
extern std::atomic<uint32_t> waiting_for_safepoints; // threads
void wait_for_safepoints(uint32_t seen);

// How many pauses of a heap this thread is calling back in.
uint32_t pauses_called_back_in(const ty_heap *heap);

// After a fork, in the child: the heap, paused, loses the caches of all other threads.
void keep_only_cache(ty_heap *heap, const thread_table *table);

} // namespace taiyen
