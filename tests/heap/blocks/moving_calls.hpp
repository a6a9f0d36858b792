#pragma once

#include "src/os/calls/syscalls.hpp"

#include <atomic>
#include <cerrno>

namespace taiyen::test {

// Counted by hooks: ioctl moves pages, madvise gives them back.
inline std::atomic<int> ioctl_calls{0}, madvise_calls{0};

// A kernel that refuses every third move.
inline int refuse_some_moves(os::sys::call which) {
    return which == os::sys::call::ioctl && ioctl_calls++ % 3 == 2 ? EBUSY : 0;
}

} // namespace taiyen::test
