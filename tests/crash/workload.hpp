// The seeded workload: a heap is created (some as archive heaps that a journal is attached to), changed, snapshotted in
// all ways, applied, closed, discarded, reopened and raised. On two of three heaps all of that is recorded for an undo,
// undone and redone in between. The same seed gives the same events.
#pragma once

#include "session.hpp"

namespace crash {

// Starts a trace on an empty disk.
trace start_trace();

// Decides about undo on a new disk.
undo_choice choose_undo(dice &random);
// So little in half of the cases that snapshots give private copies back, and opens apply first.
uint64_t choose_memory(dice &random);

// Runs the workload on the trace; the finding is sound unless the library failed without any power cut.
finding run_workload(uint64_t seed, trace &on);

// Opens again, some times with a raised limit.
void reopen(session &on, dice &random, open_choice &choice, phase what);

// One random step on an open snapshot heap: changes and one call.
void random_step(session &on, dice &random, open_choice &choice);

} // namespace crash
