// taiyen-bench-cases: runs one case on the preloaded malloc, and prints its figures: metric, unit, value.
//
//   taiyen-bench-cases CASE LIBRARY full|quick DIVISOR
//
// Exit code 77: malloc is not LIBRARY's (a path or a file name). The program links nothing of taiyen: what is measured
// is the library that users preload.
#include "case.hpp"
#include "case_list.hpp"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace bench {

#define TAIYEN_DECLARE_CASE(function, name) void run_##function(case_run &run);
TAIYEN_MALLOC_CASES(TAIYEN_DECLARE_CASE)
TAIYEN_DYNAMIC_CASES(TAIYEN_DECLARE_CASE)
#undef TAIYEN_DECLARE_CASE

namespace {

constexpr size_t little_bytes = size_t{4} << 20; // of live memory: below it, fixed costs show in rss_ratio

double cpu_seconds_now() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval &time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Reads a small file of /proc without allocating.
size_t read_small(const char *path, char *to, size_t room) {
    int from = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = from < 0 ? -1 : read(from, to, room - 1);
    if (got < 0)
        fail(path);
    close(from);
    to[got] = 0;
    return static_cast<size_t>(got);
}

size_t resident_now() {
    char text[128];
    read_small("/proc/self/statm", text, sizeof text);
    unsigned long long all = 0, resident = 0;
    if (std::sscanf(text, "%llu %llu", &all, &resident) != 2)
        fail("/proc/self/statm has no second figure");
    return resident * 4096;
}

size_t resident_peak() {
    char text[4096];
    read_small("/proc/self/status", text, sizeof text);
    const char *line = std::strstr(text, "VmHWM:");
    return line ? std::strtoull(line + 6, nullptr, 10) * 1024 : 0;
}

// From now on, the peak is the highest value since this call.
void forget_resident_peak() {
    int to = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (to < 0 || write(to, "5", 1) != 1)
        fail("/proc/self/clear_refs");
    close(to);
}

// The file that this program's malloc comes from.
std::string file_of_malloc() {
    Dl_info where = {};
    void *found = dlsym(RTLD_DEFAULT, "malloc");
    if (!found || !dladdr(found, &where))
        fail("nobody knows where malloc is");
    return where.dli_fname;
}

bool is_library(const std::string &file, const std::string &library) {
    std::error_code error;
    if (library.find('/') != std::string::npos)
        return std::filesystem::equivalent(file, library, error);
    return std::filesystem::path(file).filename() == library;
}

struct named_case {
    const char *name;
    void (*run)(case_run &run);
};
#define TAIYEN_CASE_ENTRY(function, name) {name, run_##function},
constexpr named_case cases[] = {TAIYEN_MALLOC_CASES(TAIYEN_CASE_ENTRY) TAIYEN_DYNAMIC_CASES(TAIYEN_CASE_ENTRY)};
#undef TAIYEN_CASE_ENTRY

} // namespace

void fail(const char *what) {
    std::fprintf(stderr, "taiyen-bench-cases: %s\n", what);
    std::_Exit(1);
}

void *map_table(size_t bytes) {
    void *found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (found == MAP_FAILED)
        fail("no memory for a table");
    return found;
}

void case_run::start() {
    forget_resident_peak();
    resident_before_ = resident_now();
    cpu_seconds_ = cpu_seconds_now();
    watch_ = stopwatch();
}

void case_run::stop(size_t peak_live_bytes) {
    double seconds = watch_.ns() / 1e9;
    report("seconds", "s", seconds);
    report("cpu_seconds", "s", cpu_seconds_now() - cpu_seconds_);
    if (peak_live_bytes >= scaled(little_bytes))
        report("rss_ratio", "ratio",
               (static_cast<double>(resident_peak()) - static_cast<double>(resident_before_)) /
                   static_cast<double>(peak_live_bytes));
}

double case_run::resident_bytes() const {
    return static_cast<double>(resident_now()) - static_cast<double>(resident_before_);
}

void case_run::report(const char *metric, const char *unit, double value) {
    std::printf("%s %s %.9g\n", metric, unit, value);
}

void run_threads(size_t count, const std::function<void(size_t)> &work) {
    std::vector<std::thread> threads;
    for (size_t index = 0; index < count; index++)
        threads.emplace_back([&work, index] { work(index); });
    for (std::thread &each : threads)
        each.join();
}

} // namespace bench

int main(int argc, char **argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: taiyen-bench-cases CASE LIBRARY full|quick DIVISOR\n");
        return 2;
    }
    std::string file = bench::file_of_malloc();
    if (!bench::is_library(file, argv[2])) {
        std::fprintf(stderr, "taiyen-bench-cases: malloc is that of %s\n", file.c_str());
        return 77;
    }
    size_t divisor = std::strtoull(argv[4], nullptr, 10);
    bench::case_run run(std::strcmp(argv[3], "quick") == 0, divisor > 0 ? divisor : 1);
    for (const bench::named_case &each : bench::cases)
        if (std::strcmp(each.name, argv[1]) == 0) {
            each.run(run);
            return std::fflush(stdout) == 0 ? 0 : 1;
        }
    std::fprintf(stderr, "taiyen-bench-cases: there is no case %s\n", argv[1]);
    return 2;
}
