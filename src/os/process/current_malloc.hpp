// The heap that a thread's malloc uses: the interface between the library and the drop-in malloc. They may be two
// copies of the library in a process, each with its own heaps (docs/design/malloc.md, "Scopes").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taiyen::os {

// The drop-in's access to the heaps of a copy of the library. A change needs a new current_malloc_version.
struct current_malloc_calls {
    void *(*alloc)(void *heap, size_t size, size_t alignment, bool zeroed, const void *caller); // NULL: no memory
    void *(*resize)(void *block, size_t size, const void *caller);
    bool (*free)(void *block);
    size_t (*usable_size)(const void *block);
    bool (*owns)(const void *block); // whether it lies in one of its heaps
    const char *(*error_text)();
};
inline constexpr unsigned current_malloc_version = 3;

// A thread's current scope; lives as long as the thread.
struct current_malloc {
    const current_malloc_calls *calls;
    void *heap;
    // Not 0: the library allocates for itself. volatile: compilers assume that malloc reads no variable.
    volatile unsigned pauses;
};

// A word of a live block of the process's own malloc.
struct malloc_word {
    const void *address;
    uint64_t value;
    const void *block;
    size_t block_bytes;
};
// A search for words at multiples of 8. Allocations and frees of all threads wait meanwhile, so the functions must do
// neither, nor wait for a thread that may.
struct malloc_word_search {
    uintptr_t begin, end; // range of the values
    bool (*wants)(void *context, uint64_t value);
    void (*visit)(void *context, const malloc_word &word);
    void *context;
};

// What the drop-in does for a copy of the library. The drop-in is never unloaded.
struct drop_in_calls {
    // The copy is being unloaded: its calls must not be used any more.
    void (*forget)(const current_malloc_calls *calls);
    // Calls visit for such words in live blocks of the process's own malloc. Reads at most *left bytes, the lowest
    // addresses first, and subtracts them. False: some were not read.
    bool (*each_word)(const malloc_word_search &wanted, size_t *left);
    // The thread pointers of threads that have used the process's own malloc. Returns their number; writes at most
    // `most`.
    size_t (*thread_pointers)(uintptr_t *pointers, size_t most);
};

// The drop-in's function, found by name. scope: for the calling thread; NULL: malloc is the process's again. Returns
// NULL if the drop-in has another version, or knows too many copies of the library.
using set_current_malloc = const drop_in_calls *(current_malloc *scope, unsigned version);
#define TAIYEN_SET_CURRENT_MALLOC taiyen_set_current_malloc

// The drop-in's, if one is in this process, or NULL.
set_current_malloc *find_set_current_malloc();

extern constinit std::atomic<const drop_in_calls *> drop_in; // NULL: no thread has been in a scope yet

extern constinit thread_local current_malloc thread_malloc;

// malloc and related functions for the library itself, also while its thread is in a scope (M6: not the scope's).
void *internal_malloc(size_t bytes);
void *internal_calloc(size_t count, size_t bytes);
void *internal_realloc(void *block, size_t bytes);
void *internal_aligned_alloc(size_t alignment, size_t bytes);

} // namespace taiyen::os
