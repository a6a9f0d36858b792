// A demo's check that a heap is sound.
#pragma once

#include <cstdint>
#include <string>
#include <taiyen/taiyen.h>

namespace demo {

// Verifies all of the heap's own structures; returns the first thing that is wrong; empty: nothing.
std::string problem_of(ty_heap *heap);

// The program's blocks, and the library's among those of the heap (ty_each_internal_block): a process that was killed
// while a snapshot ran can leave some until the next close.
uint64_t live_blocks_of(ty_heap *heap);
uint64_t library_blocks_of(ty_heap *heap);

} // namespace demo
