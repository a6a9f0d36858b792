// The cost of the first write to a page, which every program pays for being able to take snapshots.
//
// first: a page that this process has never written. The kernel copies it from the page cache (copy on write), in all
//        subjects alike; only the notification differs.
// again: a page that has a private copy, and has not been written since the last snapshot.
//
// Why the comparison is fair: all subjects write one word into the same pages (16,384 of 65,536, chosen and ordered at
// random by the same seed) of a private mapping of a file with the same content and size on the same disk. All files
// are fully in the page cache, read there the same way, and no page is in the page tables when `first` begins; page
// tables are part of the cost of each. Before a clock starts, background work is waited for, and the processor's caches
// are filled with other data, since a snapshot leaves other things in them than a scan. Each run has a new process.
#include "harness.hpp"
#include "heap_file.hpp"
#include "kernel_probe.hpp"
#include "process.hpp"

#include <memory>

namespace bench {

namespace {

constexpr size_t block_bytes = size_t{256} << 20;
constexpr size_t limit_bytes = size_t{320} << 20;
constexpr size_t cache_bytes = size_t{256} << 20; // more than a processor's caches hold

struct plan {
    std::string heap_path, probe_path;
    size_t bytes;
    std::vector<uint32_t> pages;
};

std::vector<std::string> case_names() {
    return {"first", "again"};
}

double timed_writes(char *data, const std::vector<uint32_t> &pages, uint64_t value) {
    { mapping other = mapping::touched_memory(cache_bytes); }
    stopwatch watch;
    write_pages(data, pages, value);
    return watch.ns() / static_cast<double>(pages.size());
}

std::vector<double> run_heap(const plan &plan, ty_tracking tracking) {
    heap_settings settings;
    settings.tracking = tracking;
    heap_file heap(plan.heap_path, settings);
    char *data = heap.block();
    double first = timed_writes(data, plan.pages, 1);
    heap.checkpoint();
    double again = timed_writes(data, plan.pages, 2);
    heap.close(); // checkpoints, so that the next run opens a clean heap
    return {first, again};
}

std::vector<double> run_kernel(const plan &plan) {
    mapping data = mapping::of_file(plan.probe_path, 0, plan.bytes, false);
    write_tracking tracking(data);
    double first = timed_writes(data.data(), plan.pages, 1);
    tracking.collect();
    double again = timed_writes(data.data(), plan.pages, 2);
    return {first, again};
}

void add(session &session, const char *subject, const std::vector<double> &figures) {
    session.out().add("first", subject, "ns_per_page", "ns", figures.at(0));
    session.out().add("again", subject, "ns_per_page", "ns", figures.at(1));
}

void run(session &session) {
    size_t bytes = session.scaled(block_bytes / page_bytes) * page_bytes;
    plan plan = {session.path("dirty.ty"), session.path("dirty.probe"), bytes, {}};
    plan.pages = random_pages(bytes / page_bytes / 4, bytes / page_bytes, 3);
    in_child([&] {
        heap_settings settings;
        settings.limit_bytes = limit_bytes;
        heap_file heap(plan.heap_path, settings);
        heap.fill(bytes);
        heap.close();
        return std::vector<double>();
    });
    write_file(plan.probe_path, bytes);
    drop_cache(plan.probe_path); // taiyen's image was written past the cache; from here on both files are only read
    auto heap_subject = [&](const char *name, ty_tracking tracking) {
        return [&session, &plan, name, tracking] {
            drop_cache(plan.heap_path);
            warm_cache(plan.heap_path); // the checkpoint before wrote past the page cache
            add(session, name, in_child([&] { return run_heap(plan, tracking); }));
        };
    };
    session.interleave(case_names(), session.repetitions(35),
                       {{"taiyen", heap_subject("taiyen", TY_TRACK_KERNEL)},
                        {"kernel",
                         [&] {
                             warm_cache(plan.probe_path);
                             add(session, "kernel", in_child([&] { return run_kernel(plan); }));
                         }},
                        {"signal", heap_subject("signal", TY_TRACK_SIGNAL)}});
    remove_heap(plan.heap_path);
    remove_heap(plan.probe_path);
    session.out().note("kernel: the same mechanism without taiyen; signal: taiyen with page protection and SIGSEGV. "
                       "Pages are scattered, in the page cache, and not mapped before `first`.");
}

void evaluate(session &session) {
    results &out = session.out();
    for (const std::string &name : case_names()) {
        out.bar(name + ": taiyen over the bare kernel cost", out.ratio(name, "ns_per_page", self, "kernel"), 1.5);
        out.bar(name + ": taiyen over the signal method", out.ratio(name, "ns_per_page", self, "signal"), 0.25);
    }
}

} // namespace

extern const suite dirty_suite;
const suite dirty_suite = {"dirty", "the first write to a page, never written before or since the last snapshot",
                           case_names, run, evaluate};

} // namespace bench
