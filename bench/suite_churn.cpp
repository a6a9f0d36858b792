// The allocator against glibc's and mimalloc, in programs that allocate and free all the time.
//
// Why the comparison is fair: every run has a new process; the same program, compiled from the same template, makes the
// same calls in the same order. taiyen works on a volatile heap with default options. mimalloc is loaded with dlopen in
// the processes that measure it, since linking it would replace glibc's malloc in all of them; its calls go through a
// pointer, glibc's through the linker's table, taiyen's are direct: that is how each is commonly used, and the
// difference is a fraction of a nanosecond.
//
// rss_ratio is the peak of resident memory, less what was resident before the allocator was first used, over the peak
// of the bytes asked for. The kernel counts resident pages in batches of 32 a processor: an error of up to 2 %.
#include "churn_cases.hpp"
#include "process.hpp"

#include <cstdlib>
#include <dlfcn.h>

namespace bench {

namespace {

struct glibc_allocator {
    static void *alloc(size_t size) { return std::malloc(size); }
    static void free(void *block) { std::free(block); }
    static void *resize(void *block, size_t size) { return std::realloc(block, size); }
    static void start() {}
};

struct mimalloc_allocator {
    static inline void *(*alloc)(size_t) = nullptr;
    static inline void (*free)(void *) = nullptr;
    static inline void *(*resize)(void *, size_t) = nullptr;

    static void start() {
        void *library = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
        if (!library)
            throw unavailable(dlerror());
        alloc = reinterpret_cast<void *(*)(size_t)>(dlsym(library, "mi_malloc"));
        free = reinterpret_cast<void (*)(void *)>(dlsym(library, "mi_free"));
        resize = reinterpret_cast<void *(*)(void *, size_t)>(dlsym(library, "mi_realloc"));
        if (!alloc || !free || !resize)
            throw unavailable("libmimalloc.so.2 lacks a function");
    }
};

struct taiyen_allocator {
    static inline ty_heap *heap = nullptr;
    static void *alloc(size_t size) { return ty_alloc(heap, size); }
    static void free(void *block) { ty_free(block); }
    static void *resize(void *block, size_t size) { return ty_resize(block, size); }
    static void start() { check(ty_heap_create(nullptr, &heap), "cannot create a heap"); }
};

struct program {
    const char *name;
    size_t slots; // so that the live set has 16 MB and more
    size_t steps;
    churn_case *glibc, *mimalloc, *taiyen;
};

#define TAIYEN_BENCH_PROGRAM(name, slots, steps)                                                                       \
    {                                                                                                                  \
#name, slots, steps, churn_##name < glibc_allocator>, churn_##name < mimalloc_allocator>,                      \
            churn_##name < taiyen_allocator>                                                                           \
    }
constexpr program programs[] = {
    TAIYEN_BENCH_PROGRAM(tight, 500000, 20000000), TAIYEN_BENCH_PROGRAM(random, 100000, 4000000),
    TAIYEN_BENCH_PROGRAM(drift, 100000, 4500000),  TAIYEN_BENCH_PROGRAM(large, 200, 20000),
    TAIYEN_BENCH_PROGRAM(resize, 2000, 200000),    TAIYEN_BENCH_PROGRAM(handoff, 200000, 4000000)};

std::vector<double> run_program(churn_case *run, void (*start)(), size_t slots, size_t steps) {
    live_set live(slots);
    double before = peak_resident_bytes();
    start();
    double ns = run(live, steps);
    double used = peak_resident_bytes() - before;
    return {ns, used / static_cast<double>(live.peak())};
}

void run_case(session &session, const program &program) {
    size_t slots = session.scaled(program.slots), steps = session.work(program.steps);
    auto subject = [&](const char *name, churn_case *run, void (*start)()) {
        return session::subject{name, [&session, &program, name, run, start, slots, steps] {
                                    std::vector<double> figures =
                                        in_child([&] { return run_program(run, start, slots, steps); });
                                    session.out().add(program.name, name, "ns_per_op", "ns", figures.at(0));
                                    session.out().add(program.name, name, "rss_ratio", "ratio", figures.at(1));
                                }};
    };
    session.interleave(program.name, session.repetitions(7),
                       {subject("taiyen", program.taiyen, taiyen_allocator::start),
                        subject("glibc", program.glibc, glibc_allocator::start),
                        subject("mimalloc", program.mimalloc, mimalloc_allocator::start)});
}

void run(session &session) {
    for (const program &program : programs)
        run_case(session, program);
    session.out().note("An operation is one alloc, free or resize. rss_ratio: peak resident bytes over peak live "
                       "bytes.");
}

void judge(session &session) {
    results &out = session.out();
    for (const char *name : {"tight", "random", "drift", "large", "resize"})
        out.bar(std::string(name) + ": time over mimalloc, single thread",
                out.ratio(name, "ns_per_op", self, "mimalloc"), 2);
}

} // namespace

extern const suite churn_suite;
const suite churn_suite = {"churn", "the allocator against glibc and mimalloc", run, judge};

} // namespace bench
