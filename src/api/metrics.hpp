// The metrics page of a heap that is open for writing: its metrics in memory that other processes can read. A thread of
// the library writes them while a reader asks, and sleeps otherwise: no call of the program does anything for it.
//
//   sleeping --asked changes--> sampling, each fifth of a second --not asked for three seconds--> sleeping
//
// BD1: the page shows what the calls return, of one sample, complete.
// BD2: of what others may write to, one number is read, and any number is harmless; the memory's size cannot change.
// BD3: while there is no reader, nothing is counted and no thread runs.
// BD4: a heap opens, works and closes without one; no file of it changes; a fork's child leaves it alone.
#pragma once

#include <taiyen/persist.h>

namespace taiyen {

// For a heap that has been opened with these options. If it cannot have a page, it gets none.
void metrics_start(ty_heap *heap, const ty_open_options &options);
// Called before the heap ends. What it was started with is returned, for a heap whose end fails.
struct metrics_stopped {
    ty_heap *heap;
    bool was_there;
};
metrics_stopped metrics_stop(ty_heap *heap);
void metrics_start_again(const metrics_stopped &stopped);

} // namespace taiyen
