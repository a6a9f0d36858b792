// Taiyen's own fault sites: named places at which a build of the tree with TAIYEN_FAULTS does something wrong on
// purpose, so that a test can be seen to notice it. In every other build nothing is left of them.
//
// A site stands where an invariant is kept, and its name says what goes wrong:
//
//   if (!fault("journal_flush_left_out"))
//       status = journal.flush();
//
// The environment variable TAIYEN_FAULT switches one on, for a process and what it starts. tests/faults/sites.txt names
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

inline std::atomic<const char *> active_fault = nullptr; // NULL: nobody has looked at the environment yet

inline bool fault(const char *name) {
    const char *active = active_fault.load(std::memory_order_relaxed);
    if (active == nullptr) {
        if (environ == nullptr) // before the C library has it a malloc is called already
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
