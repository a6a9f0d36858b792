#include "current_malloc.hpp"

#include <cstdlib>
#include <dlfcn.h>

extern "C" [[gnu::weak]] const taiyen::os::drop_in_calls *TAIYEN_SET_CURRENT_MALLOC(taiyen::os::current_malloc *scope,
                                                                                    unsigned version);

namespace taiyen::os {

constinit thread_local current_malloc thread_malloc{};
constinit std::atomic<const drop_in_calls *> drop_in{nullptr};

namespace {

struct pause {
    pause() { thread_malloc.pauses = thread_malloc.pauses + 1; }
    ~pause() { thread_malloc.pauses = thread_malloc.pauses - 1; }
    pause(const pause &) = delete;
    pause &operator=(const pause &) = delete;
};

} // namespace

// A program with the static library may have been linked without the drop-in that is preloaded: then the weak reference
// stays null.
set_current_malloc *find_set_current_malloc() {
    if (TAIYEN_SET_CURRENT_MALLOC != nullptr)
        return TAIYEN_SET_CURRENT_MALLOC;
    return reinterpret_cast<set_current_malloc *>(dlsym(RTLD_DEFAULT, "taiyen_set_current_malloc"));
}

// M6: what the library allocates for itself is not the scope's (docs/design/malloc.md).
void *internal_malloc(size_t bytes) {
    pause paused;
    return malloc(bytes);
}

void *internal_calloc(size_t count, size_t bytes) {
    pause paused;
    return calloc(count, bytes);
}

void *internal_realloc(void *block, size_t bytes) {
    pause paused;
    return realloc(block, bytes);
}

void *internal_aligned_alloc(size_t alignment, size_t bytes) {
    pause paused;
    return aligned_alloc(alignment, bytes);
}

} // namespace taiyen::os
