#include "process.hpp"
#include "harness.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {

namespace {

enum class outcome : char { ready, figures, failed, unavailable };

void write_all(int to, const void *data, size_t bytes) {
    const char *from = static_cast<const char *>(data);
    while (bytes > 0) {
        ssize_t written = write(to, from, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            std::_Exit(3); // the parent has ended
        from += written;
        bytes -= static_cast<size_t>(written);
    }
}

// At most so many bytes, fewer at the end.
std::string read_some(int from, size_t bytes) {
    std::string part(bytes, '\0');
    ssize_t got;
    do
        got = read(from, part.data(), bytes);
    while (got < 0 && errno == EINTR);
    part.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return part;
}

std::string read_all(int from) {
    std::string text, part;
    do
        text += part = read_some(from, 4096);
    while (!part.empty());
    return text;
}

// Forks a child that dies with its parent, so that nothing of a killed program lives on.
pid_t fork_bound() {
    std::fflush(nullptr);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        fail_system("cannot fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            std::_Exit(3);
    }
    return child;
}

[[noreturn]] void report_and_exit(int to, const std::function<std::vector<double>()> &work) {
    outcome how = outcome::failed;
    std::string text;
    try {
        std::vector<double> figures = work();
        how = outcome::figures;
        if (!figures.empty())
            text.assign(reinterpret_cast<const char *>(figures.data()), figures.size() * sizeof(double));
    } catch (const unavailable &reason) {
        how = outcome::unavailable;
        text = reason.what();
    } catch (const std::exception &reason) {
        text = reason.what();
    }
    write_all(to, &how, sizeof how);
    write_all(to, text.data(), text.size());
    std::_Exit(0);
}

int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            fail_system("cannot wait for a child process");
    return status;
}

std::vector<double> figures_of(const std::string &answer, int status) {
    if (answer.empty())
        throw std::runtime_error("a child process died (wait status " + std::to_string(status) + ")");
    std::string text = answer.substr(1);
    switch (static_cast<outcome>(answer[0])) {
    case outcome::unavailable:
        throw unavailable(text);
    case outcome::failed:
        throw std::runtime_error(text);
    case outcome::ready:
    case outcome::figures:
        break;
    }
    std::vector<double> figures(text.size() / sizeof(double));
    if (!figures.empty()) // a child may have nothing to report
        std::memcpy(figures.data(), text.data(), figures.size() * sizeof(double));
    return figures;
}

volatile sig_atomic_t caught = 0;
volatile pid_t supervised = 0;

void end_supervised(int signal) {
    caught = signal;
    if (supervised > 0)
        kill(supervised, SIGKILL);
}

void on_end_signals(void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        sigaction(signal, &action, nullptr);
}

double field_of(const char *file, const char *format) {
    FILE *from = std::fopen(file, "r");
    if (!from)
        throw unavailable(std::string(file) + " cannot be read");
    char line[256];
    unsigned long long value = 0;
    bool found = false;
    while (!found && std::fgets(line, sizeof line, from))
        found = std::sscanf(line, format, &value) == 1;
    std::fclose(from);
    if (!found)
        throw unavailable(std::string(file) + " has no such field");
    return static_cast<double>(value);
}

// A worker that was killed may have left children that would not end by themselves: stopped ones.
void end_children() {
    std::ifstream list("/proc/self/task/" + std::to_string(getpid()) + "/children");
    for (pid_t child = 0; list >> child;)
        kill(child, SIGKILL);
}

} // namespace

std::vector<double> in_child(const std::function<std::vector<double>()> &work) {
    return in_children(1, [&](size_t, const std::function<void()> &) { return work(); }).at(0);
}

std::vector<std::vector<double>>
in_children(size_t count,
            const std::function<std::vector<double>(size_t index, const std::function<void()> &start)> &work) {
    int start[2]; // its end is the start
    if (pipe(start) != 0)
        fail_system("cannot make a pipe");
    std::vector<pid_t> children;
    std::vector<pollfd> answers;
    for (size_t index = 0; index < count; index++) {
        int ends[2];
        if (pipe(ends) != 0)
            fail_system("cannot make a pipe");
        children.push_back(fork_bound());
        if (children.back() == 0) {
            close(ends[0]);
            close(start[1]);
            report_and_exit(ends[1], [&] {
                return work(index, [&] {
                    outcome ready = outcome::ready;
                    write_all(ends[1], &ready, sizeof ready);
                    read_some(start[0], 1);
                });
            });
        }
        close(ends[1]);
        answers.push_back({ends[0], POLLIN, 0});
    }
    close(start[0]);
    std::vector<std::string> texts(count);
    for (size_t index = 0; index < count; index++) {
        texts[index] = read_some(answers[index].fd, 1);
        if (texts[index] == std::string(1, static_cast<char>(outcome::ready)))
            texts[index].clear();
    }
    close(start[1]);
    size_t failed = count; // the first; the others may wait for it
    for (size_t left = count; left > 0;) {
        if (poll(answers.data(), answers.size(), -1) < 0 && errno != EINTR)
            fail_system("cannot wait for child processes");
        for (size_t index = 0; index < count; index++) {
            if (answers[index].revents == 0)
                continue;
            texts[index] += read_all(answers[index].fd);
            close(answers[index].fd);
            answers[index] = {-1, 0, 0}; // poll skips it
            left--;
            if (failed == count && texts[index].substr(0, 1) != std::string(1, static_cast<char>(outcome::figures))) {
                failed = index;
                for (pid_t each : children)
                    kill(each, SIGKILL);
            }
        }
    }
    std::vector<int> statuses;
    for (pid_t each : children)
        statuses.push_back(wait_for(each));
    if (failed < count)
        figures_of(texts[failed], statuses[failed]);
    std::vector<std::vector<double>> figures;
    for (size_t index = 0; index < count; index++)
        figures.push_back(figures_of(texts[index], statuses[index]));
    return figures;
}

void in_killed_child(const std::function<void()> &work) {
    int ends[2];
    if (pipe(ends) != 0)
        fail_system("cannot make a pipe");
    pid_t child = fork_bound();
    if (child == 0) {
        close(ends[0]);
        report_and_exit(ends[1], [&] {
            work();
            raise(SIGKILL);
            return std::vector<double>();
        });
    }
    close(ends[1]);
    std::string answer = read_all(ends[0]);
    close(ends[0]);
    int status = wait_for(child);
    if (!answer.empty())
        figures_of(answer, status);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        throw std::runtime_error("a child process that was to be killed ended by itself");
}

program_end run_program(const std::vector<std::string> &arguments, const std::string &preload) {
    std::vector<char *> list;
    for (const std::string &each : arguments)
        list.push_back(const_cast<char *>(each.c_str())); // execv promises not to change them
    list.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0)
        fail_system("cannot make a pipe");
    pid_t child = fork_bound();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (preload.empty())
            unsetenv("LD_PRELOAD");
        else
            setenv("LD_PRELOAD", preload.c_str(), 1);
        execv(list[0], list.data());
        std::_Exit(127);
    }
    close(ends[1]);
    program_end end;
    end.output = read_all(ends[0]);
    close(ends[0]);
    int status = wait_for(child);
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return end;
}

int supervise(const std::string &folder, const std::function<int()> &work) {
    // Children that outlive the worker are reparented to this process, so that it notices when the last one has ended.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t ends, before;
    sigemptyset(&ends);
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        sigaddset(&ends, signal);
    sigprocmask(SIG_BLOCK, &ends, &before);
    pid_t worker = fork_bound();
    if (worker == 0) {
        sigprocmask(SIG_SETMASK, &before, nullptr);
        std::exit(work());
    }
    supervised = worker;
    on_end_signals(end_supervised);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    int status = wait_for(worker);
    supervised = 0;
    do
        end_children();
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR);
    std::error_code ignored; // nothing more can be done about it
    std::filesystem::remove_all(folder, ignored);
    if (caught != 0)
        return 128 + caught;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    // On a terminal the signal reaches the worker as well, and may do so first.
    return 128 + WTERMSIG(status);
}

double peak_resident_bytes() {
    return field_of("/proc/self/status", "VmHWM: %llu kB") * 1024;
}

double resident_bytes() {
    return field_of("/proc/self/status", "VmRSS: %llu kB") * 1024;
}

double private_bytes() {
    return field_of("/proc/self/status", "RssAnon: %llu kB") * 1024;
}

double written_bytes() {
    return field_of("/proc/self/io", "write_bytes: %llu");
}

} // namespace bench
