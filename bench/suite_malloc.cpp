// malloc: the drop-in against the mallocs that people preload, in programs of all kinds.
//
// Why the comparison is fair: each turn is a new process of the same program (taiyen-bench-cases), which calls malloc
// and free through the linker's table and does not know which library they come from; it checks that they are those of
// the library to be measured. All have their default settings; the peers are built with the options of their own
// release builds, or are the distribution's. Blocks are touched in every page, for every allocator.
//
// seconds is wall-clock time, cpu_seconds processor time, which a busy machine disturbs less. rss_ratio is the peak of
// resident memory over the peak of the bytes asked for, without what was resident when the case began.
//
// The thrash runs once more on a heap of the library with the drop-in's options, for figures that malloc cannot report:
// its availability, and whether all is one free extent and in order when everything has been freed.
#include "cases/case_list.hpp"
#include "cases/thrash.hpp"
#include "preload.hpp"
#include "process.hpp"

#include <algorithm>
#include <string_view>

namespace bench {

namespace {

#define TAIYEN_CASE_NAME(function, name) name,
constexpr const char *case_names[] = {TAIYEN_MALLOC_CASES(TAIYEN_CASE_NAME)};
#undef TAIYEN_CASE_NAME

struct thrash_case {
    const char *name;
    size_t largest;
};
constexpr thrash_case thrash_cases[] = {{"thrash-64K", size_t{64} << 10}, {"thrash-4M", size_t{4} << 20}};

// Where threads hand blocks to each other, a case takes 0.1 s or 0.4 s on a virtual machine, depending on how its host
// places the processors: five turns then show which of the two is the more common.
constexpr std::string_view moody_cases[] = {"handover-single", "handover-batch", "server", "torture", "restart"};

size_t times_of(const char *case_name) {
    return std::ranges::find(moody_cases, case_name) != std::end(moody_cases) ? 15 : 5;
}

std::vector<std::string> names_of_cases() {
    return {std::begin(case_names), std::end(case_names)};
}

struct heap_allocator {
    static inline ty_heap *heap = nullptr;
    static void *alloc(size_t size) {
        void *block = ty_alloc(heap, size);
        if (!block)
            throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
        return block;
    }
    static void free(void *block) { check(ty_free(block), "cannot free"); }
};

ty_heap_stats stats_of(ty_heap *heap) {
    ty_heap_stats stats = {};
    stats.struct_size = sizeof stats;
    check(ty_heap_get_stats(heap, &stats), "cannot get statistics");
    return stats;
}

// The availability, and the number of free extents when all is freed.
std::vector<double> thrash_a_heap(const thrash_plan &plan) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.classes = TY_CLASSES_DENSE;
    check(ty_heap_create(&options, &heap_allocator::heap), "cannot create a heap");
    std::vector<thrash_block> blocks(plan.slots);
    size_t live = thrash<heap_allocator>(plan, blocks.data(), [](size_t) {});
    double availability = stats_of(heap_allocator::heap).availability;
    for (size_t at = 0; at < live; at++)
        heap_allocator::free(blocks[at].block);
    check(ty_heap_verify(heap_allocator::heap, nullptr, nullptr), "the heap is damaged after the thrash");
    ty_heap_stats empty = stats_of(heap_allocator::heap);
    if (empty.live_blocks != 0)
        throw std::runtime_error("blocks are left behind the thrash");
    return {availability, static_cast<double>(empty.free_extents)};
}

void run(session &session) {
    std::vector<allocator_library> libraries = allocator_libraries(session.options());
    for (const char *name : case_names)
        interleave_allocators(session, libraries, name, times_of(name));
    for (const thrash_case &each : thrash_cases) {
        if (!session.is_wanted(each.name))
            continue;
        thrash_plan plan = plan_thrash(each.largest, session.options().divisor, session.options().quick);
        std::vector<double> figures = in_child([&plan] { return thrash_a_heap(plan); });
        session.out().add(each.name, self, "availability", "ratio", figures.at(0));
        session.out().add(each.name, self, "free_extents", "runs", figures.at(1));
    }
}

void evaluate_thrash(results &out, const std::string &name) {
    out.bar_at_least(name + ": page efficiency", out.median(name, self, "page_efficiency"), 0.90);
    out.bar_at_least(name + ": availability", out.median(name, self, "availability"), 0.95);
    out.bar(name + ": free runs when all is freed", out.median(name, self, "free_extents"), 1);
    out.bar(name + ": time over that of the fastest peer",
            out.median(name, self, "seconds") / best_peer(out, name, "seconds"), 1);
}

void evaluate(session &session) {
    results &out = session.out();
    add_means(out, "seconds", "s");
    add_means(out, "cpu_seconds", "s");
    add_means(out, "rss_ratio", "ratio");
    out.bar("mean time over that of the best peer",
            out.median(mean_case, self, "seconds") / best_peer(out, mean_case, "seconds"), 1);
    out.bar("mean rss_ratio over that of the tightest peer, glibc apart",
            out.median(mean_case, self, "rss_ratio") / best_peer(out, mean_case, "rss_ratio", peers::without_glibc), 1);
    for (const char *name : case_names)
        if (session.is_wanted(name))
            out.bar(std::string(name) + ": time over that of the best peer",
                    out.median(name, self, "seconds") / best_peer(out, name, "seconds"), 1.25);
    for (const thrash_case &each : thrash_cases)
        if (session.is_wanted(each.name))
            evaluate_thrash(out, each.name);
    for (const char *name : {"sharing-active", "sharing-passive"})
        if (session.is_wanted(name))
            out.bar(std::string(name) + ": time over that of separate lines", out.median(name, self, "over_control"),
                    1.05);
}

} // namespace

extern const suite malloc_suite;
const suite malloc_suite = {
    "malloc", "the drop-in malloc against those that people preload", names_of_cases, run, evaluate, size_t{1} << 30};

} // namespace bench
