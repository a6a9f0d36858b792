// The heap's gate: see cache.hpp for how it and the fast path order their accesses.
#pragma once

#include "cache.hpp"

namespace taiyen {

// For threads without a cache: takes gate_lock once the gate is open.
void lock_open_gate(ty_heap *heap);

// After a fork, in the child: the heap, paused, loses the caches of all other threads.
void keep_only_cache(ty_heap *heap, const thread_table *table);

} // namespace taiyen
