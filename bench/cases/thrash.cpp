// Thrash on the preloaded malloc.
#include "thrash.hpp"
#include "case.hpp"

namespace bench {

namespace {

struct plain_malloc {
    static void *alloc(size_t size) { return allocate(size); }
    static void free(void *block) { std::free(block); }
};

// The mean of live over resident bytes, by samples 5 ms apart.
class efficiency_meter {
public:
    explicit efficiency_meter(const case_run &run) : run_(run) {}
    void look(size_t live) {
        if (count_ > 0 && since_.ms() < 5)
            return;
        since_ = stopwatch();
        sum_ += static_cast<double>(live) / run_.resident_bytes();
        count_++;
    }
    double mean() const { return sum_ / static_cast<double>(count_); }

private:
    const case_run &run_;
    stopwatch since_;
    double sum_ = 0;
    size_t count_ = 0;
};

void run_thrash(case_run &run, size_t largest) {
    thrash_plan plan = plan_thrash(largest, run.divisor(), run.quick());
    table<thrash_block> blocks(plan.slots);
    efficiency_meter efficiency(run);
    run.start();
    thrash<plain_malloc>(plan, blocks.begin(), [&](size_t live) { efficiency.look(live); });
    run.stop(plan.live_bytes);
    run.report("page_efficiency", "ratio", efficiency.mean());
}

} // namespace

void run_thrash_64k(case_run &run) {
    run_thrash(run, size_t{64} << 10);
}

void run_thrash_4m(case_run &run) {
    run_thrash(run, size_t{4} << 20);
}

} // namespace bench
