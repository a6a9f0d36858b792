// The seeded workload: a heap is created (some as archive heaps that a journal is attached to), changed, snapshotted in
// all ways, applied, closed, discarded, reopened and raised. The same seed gives the same events.
#pragma once

#include "session.hpp"

namespace crash {

// Starts a trace on an empty disk.
trace start_trace();

// Runs the workload on the trace; the finding is sound unless the library failed without any power cut.
finding run_workload(uint64_t seed, trace &on);

// Opens again, some times with a raised limit.
void reopen(session &on, dice &random, open_choice &choice, phase what);

// One random step on an open snapshot heap: changes and one call.
void random_step(session &on, dice &random, open_choice &choice);

} // namespace crash
