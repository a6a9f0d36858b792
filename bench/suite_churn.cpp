// The allocator against glibc's and mimalloc, in programs that allocate and free all the time.
//
// Why the comparison is fair: every run has a new process; the same program, compiled from the same template, makes the
// same calls in the same order. taiyen works on a volatile heap with default options. mimalloc is loaded with dlopen in
// the processes that measure it, since linking it would replace glibc's malloc in all of them; its calls go through a
// pointer, glibc's through the linker's table, taiyen's are direct: that is how each is commonly used, and the
// difference is a fraction of a nanosecond.
//
// rss_ratio is the peak of resident memory, minus what was resident before the allocator was first used, over the peak
// of the bytes asked for. The kernel counts resident pages in batches of 32 per processor: an error of up to 2 %.
#include "churn_cases.hpp"
#include "process.hpp"
#include "shared_library.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace bench {

namespace {

constexpr double not_known = std::numeric_limits<double>::quiet_NaN(); // only taiyen reports its availability

struct glibc_allocator {
    static void *alloc(size_t size) { return std::malloc(size); }
    static void free(void *block) { std::free(block); }
    static void *resize(void *block, size_t size) { return std::realloc(block, size); }
    static void start() {}
    static double availability() { return not_known; }
};

struct mimalloc_allocator {
    static inline void *(*alloc)(size_t) = nullptr;
    static inline void (*free)(void *) = nullptr;
    static inline void *(*resize)(void *, size_t) = nullptr;

    static void start() {
        shared_library library("libmimalloc.so.2");
        alloc = library.function<void *(*)(size_t)>("mi_malloc");
        free = library.function<void (*)(void *)>("mi_free");
        resize = library.function<void *(*)(void *, size_t)>("mi_realloc");
    }
    static double availability() { return not_known; }
};

struct taiyen_allocator {
    static inline ty_heap *heap = nullptr;
    static void *alloc(size_t size) { return ty_alloc(heap, size); }
    static void free(void *block) { ty_free(block); }
    static void *resize(void *block, size_t size) { return ty_resize(block, size); }
    static void start() { check(ty_heap_create(nullptr, &heap), "cannot create a heap"); }
    static double availability() {
        ty_heap_stats stats = {};
        stats.struct_size = sizeof stats;
        check(ty_heap_get_stats(heap, &stats), "cannot get statistics");
        return stats.availability;
    }
};

struct program {
    const char *name;
    size_t slots; // so that the live set has 16 MB or more
    size_t steps;
};
constexpr program programs[] = {{"tight", 500000, 20000000}, {"random", 100000, 4000000}, {"drift", 100000, 4500000},
                                {"large", 200, 20000},       {"resize", 2000, 200000},    {"handoff", 200000, 4000000}};

// The same programs, in the same order.
template <typename Allocator>
constexpr churn_case *cases_of[] = {churn_tight<Allocator>, churn_random<Allocator>, churn_drift<Allocator>,
                                    churn_large<Allocator>, churn_resize<Allocator>, churn_handoff<Allocator>};

template <typename Allocator>
std::vector<double> run_program(size_t index, size_t slots, size_t steps) {
    live_set live(slots);
    double before = peak_resident_bytes();
    Allocator::start();
    double ns = cases_of<Allocator>[index](live, steps);
    double used = peak_resident_bytes() - before;
    return {ns, used / static_cast<double>(live.peak()), Allocator::availability()};
}

template <typename Allocator>
session::subject subject_of(session &session, const char *name, size_t index) {
    return {name, [&session, name, index] {
                const program &which = programs[index];
                std::vector<double> figures = in_child([&session, &which, index] {
                    return run_program<Allocator>(index, session.scaled(which.slots), session.work(which.steps));
                });
                session.out().add(which.name, name, "ns_per_op", "ns", figures.at(0));
                session.out().add(which.name, name, "rss_ratio", "ratio", figures.at(1));
                if (!std::isnan(figures.at(2)))
                    session.out().add(which.name, name, "availability", "ratio", figures.at(2));
            }};
}

void run(session &session) {
    for (size_t index = 0; index < std::size(programs); index++)
        session.interleave(programs[index].name, session.repetitions(7),
                           {subject_of<taiyen_allocator>(session, self, index),
                            subject_of<glibc_allocator>(session, "glibc", index),
                            subject_of<mimalloc_allocator>(session, "mimalloc", index)});
    session.out().note("An operation is one alloc, free or resize. rss_ratio: peak resident bytes over peak live "
                       "bytes. availability: how much of taiyen's free space can be used, 0 to 1.");
}

void evaluate(session &session) {
    results &out = session.out();
    for (const char *name : {"tight", "random", "drift", "large", "resize"})
        out.bar(std::string(name) + ": time over mimalloc, single thread",
                out.ratio(name, "ns_per_op", self, "mimalloc"), 2);
}

} // namespace

extern const suite churn_suite;
const suite churn_suite = {
    "churn",          "the allocator against glibc and mimalloc", [] { return names_of(programs); }, run, evaluate,
    size_t{256} << 20};

} // namespace bench
