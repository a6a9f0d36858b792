// Stack traces, and lookup of code addresses.
#pragma once

#include <cstddef>

namespace taiyen::os {

// The C library loads its unwinder with the first stack trace, which allocates. This loads it: call it where no lock is
// held that an allocation needs. Before, and within the unwinder's own allocations, stacks are empty. Later calls do
// nothing.
void prepare_stacks();

// From now on prepare_stacks does nothing, for a process that is not yet started and so cannot load anything. The first
// take_stack after the start does it instead: no such lock may be held there either.
void postpone_stacks();

// The return addresses of the calling thread, innermost first, from `caller` on, or all of them if it is not among
// them. Returns their number.
size_t take_stack(const void *caller, void **frames, size_t frames_max);

// The object that contains a code address, and the function, if it has a name.
struct code_place {
    const char *path;     // of the object; of the program, however it was started
    const char *function; // NULL: none, as for hidden functions
    bool program;         // the object is the program itself
};
bool find_code(const void *address, code_place *place); // false: in no object

// Whether the object that contains the address stays loaded until the process ends, despite dlclose.
bool stays_loaded(const void *address);

// "0x55.. function+0x1b (program+0x2345)", as far as known: hidden functions have no name.
void describe_code(const void *address, char *text, size_t text_bytes);

} // namespace taiyen::os
