// The variables of the program and of loaded objects, as words: static ones, the thread-local ones of its threads, and
// their thread-specific values (pthread_setspecific).
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
    uint64_t offset; // from load; of a thread-local one from the start of the object's thread-local data
    bool thread_local_data;
    bool thread_specific; // in libc's thread control block, not in a variable
};

// Per object: what it has beyond that is skipped, except in debug builds.
inline constexpr size_t variable_bytes_max = size_t{8} << 20;

// Calls visit for each word at a multiple of 8 whose value lies in [begin, end), in the writable parts of each object:
// its variables, and the thread-local ones of the calling thread and of these threads; and in libc's control blocks of
// these threads. Other threads may write there meanwhile. Not in parts that are read-only once the program runs
// (RELRO), nor in objects in other namespaces (dlmopen). visit is called with the dynamic linker's lock held: it must
// not load anything. False: something was skipped, or could not be read.
using variable_visit = void(void *context, const variable_word &word);
bool each_variable_word(uintptr_t begin, uintptr_t end, const uintptr_t *threads, size_t thread_count,
                        variable_visit *visit, void *context);

// The place of a variable's word, for a person: the object's path, the variable as the linker names it ("" if its file
// has no name there), and the offset in the variable, otherwise in the object or its thread-local data.
struct variable_place {
    char object[1024];
    char name[192];
    uint64_t offset;
};
void find_variable(const variable_word &word, variable_place *place);

} // namespace taiyen::os
