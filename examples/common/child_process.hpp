// A second process of the same program, which reports through a pipe what it does and is killed in the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace demo {

// At most one at a time; kill_child must be able to find it from a signal handler.
class child_process {
public:
    // Starts this program's own file with the arguments, and with "--pipe N": where it writes its messages.
    explicit child_process(const std::vector<std::string> &arguments);
    ~child_process(); // kills it
    child_process(const child_process &) = delete;
    child_process &operator=(const child_process &) = delete;

    enum class reading { some, none, ended };
    // Reads whole messages of `bytes` each, as many as have arrived and as `capacity` allows, waiting for the first one
    // up to wait_ms. ended: the other end of the pipe is closed, and nothing is left in it.
    reading read(void *messages, size_t bytes, size_t capacity, double wait_ms, size_t &count);

private:
    pid_t pid_ = -1;
    int pipe_ = -1;
};

// Kills and reaps the running process, if there is one. Safe in a signal handler.
void kill_child();

// Also kills it when a signal ends this process.
void kill_child_on_signals();

// For the child: from now on it dies with its parent; `name` is what ps shows.
void be_child(const char *name);

// For the child: writes one message, of far less than PIPE_BUF bytes, so that it arrives whole or not at all.
void send_to_parent(int pipe, const void *message, size_t bytes);

[[noreturn]] void fail_system(const char *what);

} // namespace demo
