// The calls that led somewhere, and what is known of an address in code.
#pragma once

#include <cstddef>

namespace taiyen::os {

// The C library loads its unwinder with the first stack that it takes, which allocates. This does it, for stacks to be
// had: where nothing is locked that an allocation needs. Before, and within the unwinder's own allocations, stacks are
// empty. Later calls do nothing.
void prepare_stacks();

// prepare_stacks does nothing from now on, as a process that is not yet started cannot load anything. The first
// take_stack that finds it started does it: nothing may be locked there either.
void postpone_stacks();

// The return addresses of the calling thread, the innermost first, from `caller` on, or all of them where it is not
// among them. Returns how many.
size_t take_stack(const void *caller, void **frames, size_t frames_max);

// The object that an address of code lies in, and the function, where that has a name.
struct code_place {
    const char *path;     // of the object; of the program whatever it was started by
    const char *function; // NULL: hidden functions have none
    bool program;         // the object is the program itself
};
bool find_code(const void *address, code_place *place); // false: it lies in none

// Whether the object that the address lies in stays until the process ends, whoever closes it.
bool stays_loaded(const void *address);

// "0x55.. function+0x1b (program+0x2345)", as far as it is known: hidden functions have no name.
void describe_code(const void *address, char *text, size_t text_bytes);

} // namespace taiyen::os
