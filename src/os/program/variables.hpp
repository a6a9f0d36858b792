// The variables of the program and of what is loaded, as words: static ones, the thread-local ones of its threads, and
// the thread-specific values of these (pthread_setspecific).
#pragma once

#include "../process/process.hpp"
#include <cstddef>
#include <cstdint>

namespace taiyen::os {

// A word of a variable.
struct variable_word {
    const void *address;
    uint64_t value;
    uintptr_t load;  // of the object that has the variable
    uint64_t offset; // from there; of a thread-local one from the begin of the object's thread-local data
    bool thread_local_data;
    bool thread_specific; // no variable's: of what libc keeps of a thread
};

// Of each object: what it has beyond that is passed over, but in debug builds, where all is looked at.
inline constexpr size_t variable_bytes_max = size_t{8} << 20;

// Calls for each word at a multiple of 8 whose value lies in [begin, end), in what each object may write to: its
// variables, and the thread-local ones that the calling thread and these threads have of it; and in what libc keeps of
// these threads. Others may write there meanwhile. Not what is read-only once the program runs (RELRO), nor objects of
// a namespace of their own (dlmopen). The visit is called with the dynamic linker's lock held: it must not load
// anything. False: something was passed over, or could not be read.
using variable_visit = void(void *context, const variable_word &word);
bool each_variable_word(uintptr_t begin, uintptr_t end, const uintptr_t *threads, size_t thread_count,
                        variable_visit *visit, void *context);

// Where a variable's word lies, for a person: the object's path, the variable as the linker names it ("" where its file
// has no name there), and how far into the variable, else into the object or its thread-local data.
struct variable_place {
    char object[1024];
    char name[192];
    uint64_t offset;
};
void find_variable(const variable_word &word, variable_place *place);

} // namespace taiyen::os
