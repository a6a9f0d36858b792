// Uses a heap with arbitrary content, in every way that the API offers. Any status is fine; a crash is a finding.
#pragma once

#include "tests/simulated_disk/storage_sim.hpp"
#include <taiyen/taiyen.h>

namespace fuzz {

// Reads everything in a heap: verification, iteration, statistics, roots.
void look(ty_heap *heap);

// Allocates, writes to what was allocated, resizes and frees; aborts the program if a block is not the heap's.
void churn(ty_heap *heap, uint64_t seed);

// Reads information, scrubs, opens for reading, salvages, then opens for writing with churn, a snapshot, checkpoint and
// close.
void open_every_way(taiyen::os::sim_disk *disk, uint8_t flags, uint64_t seed);

} // namespace fuzz
