// Taiyen's own fault sites: named places at which a build of the tree with TAIYEN_FAULTS does something wrong on
// purpose, to prove that a test detects it. Other builds contain nothing of them.
//
// A site is where an invariant is kept, and its name says what goes wrong:
//
//   if (!fault("journal_flush_left_out"))
//       status = journal.flush();
//
// The environment variable TAIYEN_FAULT switches one on, for a process and its children. tests/faults/sites.txt names
// the invariant of each and the test that must fail; `make faults` runs them all.
#ifndef TAIYEN_FAULT_HPP
#define TAIYEN_FAULT_HPP

#ifdef TAIYEN_FAULTS
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#endif

namespace taiyen {
inline namespace v0 {
namespace detail {

#ifdef TAIYEN_FAULTS

inline std::atomic<const char *> active_fault = nullptr; // NULL: the environment was not read yet

inline bool fault(const char *name) {
    const char *active = active_fault.load(std::memory_order_relaxed);
    if (active == nullptr) {
        if (environ == nullptr) // malloc is called before the C library has set it
            return false;
        active = std::getenv("TAIYEN_FAULT");
        active = active == nullptr ? "" : active;
        active_fault.store(active, std::memory_order_relaxed);
    }
    return std::strcmp(active, name) == 0;
}

#else

constexpr bool fault(const char *) {
    return false;
}

#endif

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif
