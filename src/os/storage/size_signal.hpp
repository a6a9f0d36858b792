// Makes writes beyond the limit of a file's size (ulimit -f) fail with EFBIG, instead of ending the process.
#pragma once

#include "../calls/calls.hpp"

namespace taiyen::os {

// Blocks this thread's SIGXFSZ while it exists, and then discards one that is pending from a call of the library.
class [[nodiscard]] size_signal_held {
public:
    size_signal_held() {
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGXFSZ);
        held_ = sys::signal_mask(SIG_BLOCK, &signal_, &before_) == 0;
        waited_ = held_ && sigismember(&before_, SIGXFSZ) == 1 && sys::signal_pending(SIGXFSZ);
    }
    ~size_signal_held() {
        if (!held_)
            return;
        int error = errno;
        if (error == EFBIG)
            take();
        if (sigismember(&before_, SIGXFSZ) != 1)
            ::pthread_sigmask(SIG_UNBLOCK, &signal_, nullptr);
        errno = error;
    }
    // The destructor does this too if errno says that a call met the limit.
    void take() {
        if (held_ && !waited_ && sys::signal_pending(SIGXFSZ))
            sys::take_signal(&signal_);
    }
    size_signal_held(const size_signal_held &) = delete;
    size_signal_held &operator=(const size_signal_held &) = delete;

private:
    sigset_t signal_;
    sigset_t before_;
    bool held_;
    bool waited_; // the program itself blocked it, and one was pending
};

} // namespace taiyen::os
