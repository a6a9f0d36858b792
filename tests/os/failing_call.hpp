#pragma once

#include "src/os/calls/syscalls.hpp"

#include <atomic>

namespace taiyen::test {

// While it lives, the n-th system call of a kind, from 0 on, fails with an error. One at a time in a process.
class failing_call {
public:
    failing_call(os::sys::call kind, int n, int error) {
        kind_ = kind;
        calls_before_ = n;
        error_ = error;
        failed_ = false;
        os::sys::hook = [](os::sys::call which) {
            if (which != kind_ || calls_before_-- != 0)
                return 0;
            failed_ = true;
            return error_.load();
        };
    }
    failing_call(const failing_call &) = delete;
    failing_call &operator=(const failing_call &) = delete;
    ~failing_call() { os::sys::hook = nullptr; }

    // Whether it had been made at all; also afterwards.
    static bool was_made() { return failed_; }

private:
    static inline std::atomic<os::sys::call> kind_{};
    static inline std::atomic<int> calls_before_{0}, error_{0};
    static inline std::atomic<bool> failed_{false};
};

} // namespace taiyen::test
