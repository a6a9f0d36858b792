// How long a heap takes to open: from the call of ty_open until an object has been read through its root.
//
// Each open has a new process, as a starting program does; the page cache holds what the open before read, and the disk
// is the same for all. clean-1TB reserves 1 TB of which 100 MB are used. crash-1GB: a child opens the 1 GB heap, writes
// 10,000 scattered pages in five snapshots that nobody checkpoints, and is killed; then the clock starts.
//
// kernel: what no open can avoid, in a process of its own: open the same file, lock it, read its two header pages, map
// the heap's pages, and register the mapping for write tracking.
#include "harness.hpp"
#include "heap_file.hpp"
#include "kernel_probe.hpp"
#include "process.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace bench {

namespace {

constexpr size_t mega = size_t{1} << 20;
constexpr size_t giga = size_t{1} << 30;
constexpr size_t image_offset = 2 * mega; // where an image's heap pages begin

struct heap_case {
    const char *name;
    size_t used_bytes, limit_bytes;
    bool crash;
};
constexpr heap_case cases[] = {{"clean-10MB", 10 * mega, 64 * mega, false},
                               {"clean-1GB", giga, giga + 128 * mega, false},
                               {"clean-1TB", 100 * mega, size_t{1} << 40, false},
                               {"crash-1GB", giga, giga + 128 * mega, true}};
constexpr size_t crash_snapshots = 5;
constexpr size_t crash_pages = 2000; // in each

void make_heap(const std::string &path, size_t limit_bytes, size_t bytes) {
    in_child([&] {
        heap_settings settings;
        settings.limit_bytes = limit_bytes;
        heap_file heap(path, settings);
        heap.fill(bytes);
        heap.close();
        return std::vector<double>();
    });
}

void crash_heap(const std::string &path, size_t bytes, size_t pages_each) {
    in_killed_child([&] {
        heap_settings settings;
        settings.background = TY_BACKGROUND_CALLS;
        heap_file heap(path, settings);
        char *data = heap.block();
        for (size_t turn = 0; turn < crash_snapshots; turn++) {
            write_pages(data, random_pages(pages_each, bytes / page_bytes, turn + 1), turn);
            check(ty_snapshot(heap.get()), "cannot take a snapshot");
        }
        raise(SIGKILL); // before the heap is discarded properly
    });
}

std::vector<double> run_open(const std::string &path) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_EXISTING;
    ty_heap *heap = nullptr;
    stopwatch watch;
    check(ty_open(path.c_str(), &options, &heap, nullptr), "cannot open a heap");
    const volatile char *block = static_cast<const char *>(ty_root(heap, "block"));
    if (!block)
        throw std::runtime_error("the heap has lost its root");
    (void)*block;
    double open_ms = watch.ms();
    check(ty_close(heap), "cannot close a heap");
    return {open_ms};
}

std::vector<double> run_kernel(const std::string &path, size_t limit_bytes) {
    alignas(page_bytes) static char headers[2 * page_bytes];
    stopwatch watch;
    int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
    if (file < 0)
        throw unavailable("the file system refuses direct I/O");
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(file, F_SETLK, &lock) != 0)
        fail_system("cannot lock a file");
    if (pread(file, headers, sizeof headers, 0) != static_cast<ssize_t>(sizeof headers))
        fail_system("cannot read a file");
    mapping pages = mapping::of_file(path, image_offset, limit_bytes, false);
    write_tracking tracking(pages);
    (void)*const_cast<const volatile char *>(pages.data());
    double open_ms = watch.ms();
    close(file);
    return {open_ms};
}

void run_case(session &session, const heap_case &which) {
    std::string path = session.path(std::string(which.name) + ".ty");
    size_t bytes = session.scaled(which.used_bytes / page_bytes) * page_bytes;
    // Divided sizes are for tests, also of builds whose address space is too narrow for a terabyte.
    size_t limit_bytes = std::max(session.scaled(which.limit_bytes / page_bytes) * page_bytes, bytes + 16 * mega);
    make_heap(path, limit_bytes, bytes);
    auto add = [&](const char *subject, const std::vector<double> &figures) {
        session.out().add(which.name, subject, "open_ms", "ms", figures.at(0));
    };
    session.interleave(which.name, session.repetitions(which.crash ? 7 : 15),
                       {{"taiyen",
                         [&] {
                             if (which.crash)
                                 crash_heap(path, bytes, session.scaled(crash_pages));
                             add("taiyen", in_child([&] { return run_open(path); }));
                         }},
                        {"kernel", [&] { add("kernel", in_child([&] { return run_kernel(path, limit_bytes); })); }}});
    remove_heap(path);
}

void run(session &session) {
    for (const heap_case &which : cases)
        if (session.is_wanted(which.name))
            run_case(session, which);
    session.out().note("Each open in a new process, until the first object is read; the page cache is warm. "
                       "kernel: open, lock, read two pages, map, register for tracking.");
}

void evaluate(session &session) {
    results &out = session.out();
    out.bar("clean-1TB over clean-10MB",
            out.median("clean-1TB", self, "open_ms") / out.median("clean-10MB", self, "open_ms"), 2);
    for (const char *name : {"clean-10MB", "clean-1GB", "clean-1TB"})
        out.bar(std::string(name) + ": milliseconds", out.median(name, self, "open_ms"), 5);
}

} // namespace

extern const suite open_suite;
const suite open_suite = {"open", "opening a heap: closed in order, of several sizes, and after a crash",
                          [] { return names_of(cases); }, run, evaluate};

} // namespace bench
