// A demo's check that a heap is sound.
#pragma once

#include <cstdint>
#include <string>
#include <taiyen/taiyen.h>

namespace demo {

// Verifies all of the heap's own structures; returns the first thing that is wrong; empty: nothing.
std::string problem_of(ty_heap *heap);

uint64_t live_blocks_of(ty_heap *heap);

} // namespace demo
