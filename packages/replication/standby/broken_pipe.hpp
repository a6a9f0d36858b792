// Keeps SIGPIPE from the program: a write to a connection that the peer has closed raises it in the writing thread.
// (libnats suppresses it for its own writes, but cannot for those of TLS.)
#pragma once

#include <csignal>

namespace taiyen::standby {

// Blocks SIGPIPE in this thread while the guard lives; threads created meanwhile inherit the mask, for ever. A SIGPIPE
// that was raised in this thread meanwhile is discarded.
class pipe_guard {
public:
    pipe_guard();
    ~pipe_guard();
    pipe_guard(const pipe_guard &) = delete;
    pipe_guard &operator=(const pipe_guard &) = delete;

private:
    sigset_t before_;
    bool pending_; // before the guard: it belongs to somebody else
};

// Restores the program's disposition of SIGPIPE when it ends, if it was set to "ignored" meanwhile.
class pipe_disposition {
public:
    pipe_disposition() { sigaction(SIGPIPE, nullptr, &before_); }
    ~pipe_disposition();
    pipe_disposition(const pipe_disposition &) = delete;
    pipe_disposition &operator=(const pipe_disposition &) = delete;

private:
    struct sigaction before_ {};
};

} // namespace taiyen::standby
