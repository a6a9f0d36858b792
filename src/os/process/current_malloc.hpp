// Which heap malloc is of, for a thread: what the library and the drop-in malloc say to each other. They may be two
// copies of the library in a process, each with its own heaps (docs/design/malloc.md, "Scopes").
#pragma once

#include <cstddef>

namespace taiyen::os {

// How the drop-in reaches the heaps of a copy of the library. Changes make another current_malloc_version.
struct current_malloc_calls {
    void *(*alloc)(void *heap, size_t size, size_t alignment, bool zeroed, const void *caller); // NULL: not to be had
    void *(*resize)(void *block, size_t size, const void *caller);
    bool (*free)(void *block);
    size_t (*usable_size)(const void *block);
    bool (*owns)(const void *block); // whether it lies in one of its heaps
    const char *(*error_text)();
};
inline constexpr unsigned current_malloc_version = 2;

// A thread's; lives as long as the thread.
struct current_malloc {
    const current_malloc_calls *calls;
    void *heap;
    volatile unsigned pauses; // not 0: the library allocates for itself; volatile, as compilers think that malloc reads
                              // no variable
};

// The drop-in's function, by its name. scope: of the calling thread; NULL: malloc is the process's again. False: it is
// of another version, or knows too many copies of the library.
using set_current_malloc = bool(current_malloc *scope, unsigned version);
#define TAIYEN_SET_CURRENT_MALLOC taiyen_set_current_malloc

// The drop-in's, if there is one in this process. NULL: none.
set_current_malloc *find_set_current_malloc();

// Another one: a copy of the library is unloaded, and its calls are not to be used any more.
using forget_malloc = void(const current_malloc_calls *calls);
#define TAIYEN_FORGET_MALLOC taiyen_forget_malloc

forget_malloc *find_forget_malloc(); // as above

extern constinit thread_local current_malloc thread_malloc;

// malloc and its like for the library itself, also while its thread is in a scope (M6).
void *own_malloc(size_t bytes);
void *own_calloc(size_t count, size_t bytes);
void *own_realloc(void *block, size_t bytes);
void *own_aligned_alloc(size_t alignment, size_t bytes);

} // namespace taiyen::os
