// Files that are lost between a power cut, or a death, and the next open: removed, emptied, cut short, or replaced by
// an older copy or by another heap's. An open must then give the right content, or an error that names the file and
// changes nothing; never older content.
#pragma once

#include "trace.hpp"

namespace crash {

// Does something to a file of the heap on the recovery's disk, or (mostly) nothing, as the seed has it, and notes what
// in recovery.lost. Nothing where no heap must be there.
void lose_files(const trace &from, uint64_t event, uint64_t seed, trace &recovery);

// The canary: all files become what they were when the heap was closed earlier, which nobody can detect; so what was
// acknowledged since is lost, and must be found to be.
void put_older_files_back(const trace &from, uint64_t event, uint64_t seed, trace &recovery);

} // namespace crash
