#include "child_process.hpp"
#include "heap_file.hpp"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace demo {
namespace {

std::atomic<pid_t> running_child{0};

void on_signal(int signal) {
    kill_child();
    _exit(128 + signal);
}

[[noreturn]] void become(const std::vector<std::string> &arguments, int pipe) {
    constexpr int child_pipe = 3;
    // dup2 onto itself would keep the close-on-exec flag.
    if (pipe == child_pipe ? fcntl(child_pipe, F_SETFD, 0) < 0 : dup2(pipe, child_pipe) < 0)
        _exit(127);
    std::vector<char *> pointers;
    for (const std::string &argument : arguments)
        pointers.push_back(const_cast<char *>(argument.c_str()));
    pointers.push_back(nullptr);
    execv("/proc/self/exe", pointers.data());
    _exit(127);
}

} // namespace

void fail_system(const char *what) {
    throw failure(std::string("cannot ") + what + ": " + std::strerror(errno));
}

child_process::child_process(const std::vector<std::string> &arguments) {
    std::vector<std::string> all{"taiyen-demo"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {"--pipe", "3"});
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail_system("make a pipe");
    pipe_ = ends[0];
    pid_ = fork();
    if (pid_ == 0)
        become(all, ends[1]);
    int error = errno;
    ::close(ends[1]);
    if (pid_ < 0) {
        ::close(pipe_);
        errno = error;
        fail_system("start a process");
    }
    running_child = pid_;
}

child_process::~child_process() {
    kill_child();
    ::close(pipe_);
}

child_process::reading child_process::read(void *messages, size_t bytes, size_t capacity, double wait_ms,
                                           size_t &count) {
    count = 0;
    pollfd what{pipe_, POLLIN, 0};
    int ready = poll(&what, 1, wait_ms <= 0 ? 0 : static_cast<int>(wait_ms) + 1);
    if (ready < 0 && errno != EINTR)
        fail_system("wait for a process");
    if (ready <= 0)
        return reading::none;
    ssize_t got = ::read(pipe_, messages, bytes * capacity);
    if (got < 0)
        fail_system("read from a process");
    if (got == 0)
        return reading::ended;
    auto whole = static_cast<size_t>(got);
    while (whole % bytes != 0) { // a message that was read only in part
        got = ::read(pipe_, static_cast<char *>(messages) + whole, bytes - whole % bytes);
        if (got <= 0)
            fail_system("read from a process");
        whole += static_cast<size_t>(got);
    }
    count = whole / bytes;
    return reading::some;
}

void kill_child() {
    pid_t pid = running_child.exchange(0);
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void kill_child_on_signals() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        sigaction(signal, &action, nullptr);
}

void be_child(const char *name) {
    prctl(PR_SET_NAME, name); // for ps; else it would be called exe
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void send_to_parent(int pipe, const void *message, size_t bytes) {
    if (write(pipe, message, bytes) != static_cast<ssize_t>(bytes))
        fail_system("write to the pipe");
}

} // namespace demo
