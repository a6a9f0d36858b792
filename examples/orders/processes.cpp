#include "processes.hpp"
#include "child_process.hpp"
#include "stopwatch.hpp"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace orders {
namespace {

constexpr role all_roles[] = {role::taker, role::worker, role::depot};

int index_of(role who) {
    return static_cast<int>(who);
}

[[noreturn]] void become(const std::vector<std::string> &arguments, const std::vector<int> &kept) {
    for (int descriptor : kept)
        if (descriptor >= 0 && fcntl(descriptor, F_SETFD, 0) < 0)
            _exit(127);
    std::vector<char *> pointers;
    for (const std::string &argument : arguments)
        pointers.push_back(const_cast<char *>(argument.c_str()));
    pointers.push_back(nullptr);
    execv("/proc/self/exe", pointers.data());
    _exit(127);
}

int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            demo::fail_system("wait for a process");
    return status;
}

} // namespace

processes::processes(role_plan plan) : plan_(std::move(plan)), worker_(make_listener()), depot_(make_listener()) {
    if (pipe2(pipe_, O_CLOEXEC) != 0)
        demo::fail_system("make a pipe");
}

processes::~processes() {
    for (pid_t &each : running_)
        if (each > 0) {
            ::kill(each, SIGKILL);
            wait_for(each);
        }
    for (int descriptor : {pipe_[0], pipe_[1], worker_.descriptor, depot_.descriptor})
        ::close(descriptor);
}

pid_t processes::run(role who, bool is_final) {
    const int listening = who == role::worker ? worker_.descriptor : who == role::depot ? depot_.descriptor : -1;
    std::vector<std::string> arguments = {"orders-demo",
                                          "--role",
                                          role_names[index_of(who)],
                                          "--folder",
                                          plan_.paths.folder,
                                          "--database",
                                          plan_.database,
                                          "--where",
                                          plan_.where,
                                          "--seed",
                                          std::to_string(plan_.seed * 1000003 + ++starts_),
                                          "--pipe",
                                          std::to_string(pipe_[1]),
                                          "--listening",
                                          std::to_string(listening),
                                          "--to",
                                          who == role::taker ? worker_.name : depot_.name,
                                          "--acknowledged",
                                          std::to_string(acknowledged)};
    if (is_quiet)
        arguments.push_back("--quiet");
    if (plan_.is_apart)
        arguments.push_back("--apart");
    if (is_final)
        arguments.push_back("--final");
    const pid_t child = fork();
    if (child == 0)
        become(arguments, {pipe_[1], listening});
    if (child < 0)
        demo::fail_system("start a process");
    return child;
}

void processes::start(role who) {
    is_started[index_of(who)] = is_opened[index_of(who)] = false;
    running_[index_of(who)] = run(who, false);
}

void processes::kill(role who) {
    pid_t &child = running_[index_of(who)];
    if (child <= 0)
        return;
    ::kill(child, SIGKILL);
    const int status = wait_for(child);
    child = -1;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        throw demo::failure(std::string("the ") + role_names[index_of(who)] + " ended by itself; see above");
    listen(0, [] { return true; }); // what it has reported before
}

void processes::kill_all() {
    for (role each : all_roles)
        kill(each);
}

void processes::note(const message &words) {
    switch (words.what) {
    case message::kind::started:
        is_started[index_of(words.who)] = true;
        break;
    case message::kind::opened:
        is_opened[index_of(words.who)] = true;
        break;
    case message::kind::resolved:
        ++resolved;
        break;
    case message::kind::taken:
        acknowledged = std::max(acknowledged, words.number);
        break;
    case message::kind::done:
        done = std::max(done, words.number);
        break;
    case message::kind::received:
        received = std::max(received, words.number);
        break;
    }
}

void processes::refuse_ended() {
    for (role each : all_roles) {
        pid_t &child = running_[index_of(each)];
        int status = 0;
        if (child <= 0 || waitpid(child, &status, WNOHANG) != child)
            continue;
        child = -1;
        throw demo::failure(std::string("the ") + role_names[index_of(each)] + " ended by itself; see above");
    }
}

void processes::listen(double ms, const std::function<bool()> &is_heard) {
    constexpr double timeout_ms = 60000;
    demo::stopwatch clock, silence;
    for (;;) {
        const bool is_over = clock.ms() >= ms && is_heard();
        pollfd what{pipe_[0], POLLIN, 0};
        const int wait_ms = is_over ? 0 : clock.ms() < ms ? static_cast<int>(ms - clock.ms()) + 1 : 100;
        const int ready = poll(&what, 1, wait_ms);
        if (ready < 0 && errno != EINTR)
            demo::fail_system("wait for the processes");
        if (ready <= 0) {
            if (is_over)
                return;
            refuse_ended();
            if (silence.ms() > timeout_ms)
                throw demo::failure("the processes do nothing for a minute");
            continue;
        }
        message words[128];
        const ssize_t got = ::read(pipe_[0], words, sizeof words);
        if (got < 0 || static_cast<size_t>(got) % sizeof *words != 0)
            demo::fail_system("hear the processes");
        for (size_t n = 0; n < static_cast<size_t>(got) / sizeof *words; ++n)
            note(words[n]);
        silence = demo::stopwatch();
        if (is_over && clock.ms() > ms + 50) // the others do not stop reporting
            return;
    }
}

bool processes::prove(bool is_final) {
    const int status = wait_for(run(role::prover, is_final));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace orders
