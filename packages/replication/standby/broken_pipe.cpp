#include "broken_pipe.hpp"

#include <cerrno>
#include <ctime>

namespace taiyen::standby {

namespace {

sigset_t only_pipe() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

bool is_pending() {
    sigset_t set;
    return sigpending(&set) == 0 && sigismember(&set, SIGPIPE) == 1;
}

} // namespace

pipe_guard::pipe_guard() : pending_(is_pending()) {
    const sigset_t pipe = only_pipe();
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

pipe_guard::~pipe_guard() {
    const int error = errno;
    const sigset_t pipe = only_pipe();
    const timespec at_once{};
    if (!pending_ && is_pending())
        while (sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
}

pipe_disposition::~pipe_disposition() {
    struct sigaction now {};
    if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_IGN && before_.sa_handler != SIG_IGN)
        sigaction(SIGPIPE, &before_, nullptr);
}

} // namespace taiyen::standby
