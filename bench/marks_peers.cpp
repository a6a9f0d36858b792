#include "marks_peers.hpp"
#include "heap_file.hpp"
#include "kernel_probe.hpp"
#include "process.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {

namespace {

constexpr uint64_t marked = 1, changed = 2; // what the pages hold

// Memory that processes share.
template <class T>
class shared {
public:
    shared() : at_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        if (at_ == MAP_FAILED)
            fail_system("cannot map memory");
        ::new (at_) T{};
    }
    shared(const shared &) = delete;
    ~shared() { munmap(at_, sizeof(T)); }
    T *operator->() const { return static_cast<T *>(at_); }

private:
    void *at_;
};

// Until no process has the other end any more.
void wait_for_end(int of) {
    char byte;
    ssize_t got;
    while ((got = read(of, &byte, 1)) < 0 && errno == EINTR) {
    }
    if (got != 0)
        fail_system("cannot wait for a process to end");
}

// ---- CRIU.

// In a file that the program maps, so that what is written there is not taken back.
struct dump_control {
    bool restored;
    bool wrong; // the pages are not those of the mark
    double change_ms;
};

// Ends what is left of the program when a measurement fails.
class ending {
public:
    explicit ending(pid_t process) : process_(process) {}
    ending(const ending &) = delete;
    ~ending() { end(); }
    void end() {
        if (process_ <= 0)
            return;
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        process_ = 0;
    }

private:
    pid_t process_;
};

// A dump must not lead to the processes around it.
void leave_parent() {
    prctl(PR_SET_PDEATHSIG, SIGCONT); // it does not stay stopped if this program is killed
    setsid();
    close_range(0, ~0u, 0);
    for (int file = 0; file < 3; file++)
        if (open("/dev/null", O_RDWR) != file)
            std::_Exit(3);
}

[[noreturn]] void be_dumped(dump_control &control, size_t bytes, const std::vector<uint32_t> &pages) {
    leave_parent();
    mapping data = mapping::touched_memory(bytes, false);
    write_pages(data.data(), pages, marked);
    raise(SIGSTOP); // dumped here, and later restored here
    if (control.restored) {
        try {
            expect_pages(data.data(), pages, marked);
        } catch (const std::exception &) {
            control.wrong = true;
        }
        std::_Exit(0);
    }
    stopwatch watch;
    write_pages(data.data(), pages, changed);
    control.change_ms = watch.ms();
    raise(SIGSTOP);
    std::_Exit(0);
}

void wait_until_stopped(pid_t process) {
    int status = 0;
    while (waitpid(process, &status, WUNTRACED) < 0)
        if (errno != EINTR)
            fail_system("cannot wait for a process");
    if (!WIFSTOPPED(status))
        throw std::runtime_error("the program that criu should dump has ended");
}

void criu(const std::string &arguments) {
    program_end end = run_program({"/bin/sh", "-c", "exec criu " + arguments + " 2>&1"}, "");
    if (end.exit_code == 0)
        return;
    size_t error = end.output.find("Error");
    std::string text = end.output.substr(error == std::string::npos ? 0 : error);
    throw unavailable("criu " + arguments.substr(0, arguments.find(' ')) + ": " + text.substr(0, text.find('\n')));
}

// Of a process that may be no child.
void wait_for_exit(pid_t process) {
    int handle = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (handle < 0 && errno == ESRCH)
        return;
    if (handle < 0)
        fail_system("cannot watch a process");
    pollfd wanted = {handle, POLLIN, 0};
    while (poll(&wanted, 1, -1) < 0 && errno == EINTR) {
    }
    close(handle);
}

} // namespace

void expect_pages(const char *data, const std::vector<uint32_t> &pages, uint64_t value) {
    for (uint32_t page : pages)
        if (*reinterpret_cast<const uint64_t *>(data + size_t{page} * page_bytes) != value)
            throw std::runtime_error("a return did not give the pages back");
}

mark_costs fork_and_return(char *data, const std::vector<uint32_t> &pages) {
    struct times {
        mark_costs costs;
        stopwatch since_leaving;
    };
    const shared<times> times;
    int ends[2];
    if (pipe(ends) != 0)
        fail_system("cannot make a pipe");
    write_pages(data, pages, marked);
    stopwatch forking;
    pid_t child = fork();
    if (child < 0)
        fail_system("cannot fork");
    if (child != 0) {
        times->costs.mark = forking.ms();
        stopwatch changing;
        write_pages(data, pages, changed);
        times->costs.change = changing.ms();
        times->since_leaving = stopwatch();
        std::_Exit(0);
    }
    close(ends[1]);
    wait_for_end(ends[0]);
    mark_costs costs = times->costs;
    costs.go_back = times->since_leaving.ms();
    close(ends[0]);
    expect_pages(data, pages, marked);
    return costs;
}

mark_costs dump_and_restore(const std::string &folder, size_t bytes, const std::vector<uint32_t> &pages) {
    criu("check");
    std::filesystem::create_directory(folder);
    write_file(folder + "/control", page_bytes);
    mapping file = mapping::of_file(folder + "/control", 0, page_bytes, true);
    auto &control = *::new (file.data()) dump_control{};
    pid_t process = fork();
    if (process < 0)
        fail_system("cannot fork");
    if (process == 0)
        be_dumped(control, bytes, pages);
    ending program(process);
    wait_until_stopped(process);
    const std::string images = " -D '" + folder + "'";
    stopwatch dumping;
    criu("dump --leave-running -t " + std::to_string(process) + images);
    mark_costs costs = {dumping.ms(), 0, 0};
    kill(process, SIGCONT);
    wait_until_stopped(process);
    costs.change = control.change_ms;
    control.restored = true;
    stopwatch restoring;
    program.end();
    criu("restore --restore-detached" + images);
    costs.go_back = restoring.ms();
    kill(process, SIGCONT);
    wait_for_exit(process);
    if (control.wrong)
        throw std::runtime_error("criu did not give the pages back");
    std::filesystem::remove_all(folder);
    return costs;
}

} // namespace bench
