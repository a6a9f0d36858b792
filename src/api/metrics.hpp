// The metrics page of a heap that is open for writing: its metrics in memory that other processes can look at. A thread
// of the library writes them while somebody looks, and sleeps otherwise: no call of the program does anything for it.
//
//   sleeping --asked changes--> looking, each fifth of a second --not asked for three seconds--> sleeping
//
// BD1: what stands on it is what the calls say, of one look, whole.
// BD2: of what others may write to, one number is read, and any number is harmless; its size cannot change.
// BD3: while nobody looks, nothing is counted and nobody runs.
// BD4: a heap opens, works and closes without one; no file of it changes; a fork's child leaves it alone.
#pragma once

#include <taiyen/persist.h>

namespace taiyen {

// For a heap that has been opened with these options. Where there can be none, there is none.
void metrics_start(ty_heap *heap, const ty_open_options &options);
// Before the heap ends. What it was started with is left behind, for a heap whose end fails.
struct metrics_stopped {
    ty_heap *heap;
    bool was_there;
};
metrics_stopped metrics_stop(ty_heap *heap);
void metrics_start_again(const metrics_stopped &stopped);

} // namespace taiyen
