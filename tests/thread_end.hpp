// How test threads reach the point where a cancellation ends them.
#pragma once

#include <pthread.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace taiyen::test {

// pthread_testcancel. AddressSanitizer does not see that the thread's end leaves frames behind, and would report its
// own use of that stack; so it gets it.
inline void end_if_cancelled() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_handle_no_return();
#endif
    pthread_testcancel();
}

} // namespace taiyen::test
