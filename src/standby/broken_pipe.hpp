// SIGPIPE, kept from the program: writing to a connection that the other side has closed raises it in the thread that
// writes (libnats' own writes say that they want none; those of TLS cannot).
#pragma once

#include <csignal>

namespace taiyen::standby {

// As long as it is there, the thread has SIGPIPE blocked, and so have threads that it begins, for ever; one that was
// raised in it meanwhile is taken away.
class pipe_guard {
public:
    pipe_guard();
    ~pipe_guard();
    pipe_guard(const pipe_guard &) = delete;
    pipe_guard &operator=(const pipe_guard &) = delete;

private:
    sigset_t before_;
    bool pending_; // before: it is somebody else's
};

// What the program has set for SIGPIPE is set again at its end, if it was made "ignored" meanwhile.
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
