// False sharing: two threads write to small blocks of their own.
//
// Active: each thread allocates its block itself, writes to it, frees it, and repeats. Passive: one thread allocates
// adjacent blocks and hands one to each thread, which frees it and continues as in the active case: an allocator that
// returns the two freed halves of a line to different threads makes them share it for ever. The control makes the same
// calls and writes to separate lines of one big block. Test and control alternate every few milliseconds, and
// over_control is the median of the test's turns over that of the control's.
#include "case.hpp"

#include <atomic>
#include <sched.h>
#include <vector>

namespace bench {

namespace {

constexpr size_t sizes[] = {8, 16, 24, 40};
constexpr size_t turns = 31, writes = 2000;

enum class where { own_block, separate_line };

// Both threads must arrive before either continues.
class gate {
public:
    void pass() {
        size_t ticket = arrived_.fetch_add(1, std::memory_order_acq_rel); // pairs with itself
        while (arrived_.load(std::memory_order_acquire) < ticket / 2 * 2 + 2)
            sched_yield();
    }

private:
    std::atomic<size_t> arrived_ = 0;
};

void write_many(volatile char *place) {
    for (size_t at = 0; at < writes; at++)
        *place = static_cast<char>(*place + 1);
}

struct playground {
    gate meet;
    char *lines;        // two pages apart
    char *handed[2][4]; // passive: a block of each size for each thread
    bool passive;
    size_t rounds;
};

// One thread's part of a turn. Returns the nanoseconds.
double take_turn(playground &ground, size_t thread, where target) {
    char *line = ground.lines + thread * 8192;
    if (thread == 0 && ground.passive)
        for (size_t at = 0; at < std::size(sizes); at++)
            for (auto &each : ground.handed)
                each[at] = allocate(sizes[at]);
    ground.meet.pass();
    if (ground.passive)
        for (size_t at = 0; at < std::size(sizes); at++) {
            write_many(target == where::own_block ? ground.handed[thread][at] : line);
            std::free(ground.handed[thread][at]);
        }
    ground.meet.pass();
    stopwatch watch;
    for (size_t round = 0; round < ground.rounds; round++)
        for (size_t size : sizes) {
            char *block = allocate(size);
            write_many(target == where::own_block ? block : line);
            std::free(block);
        }
    return watch.ns();
}

double median(std::vector<double> &of) {
    std::nth_element(of.begin(), of.begin() + of.size() / 2, of.end());
    return of[of.size() / 2];
}

void run_sharing(case_run &run, bool passive) {
    table<char> lines(size_t{4} * 4096);
    playground ground{{}, lines.begin(), {}, passive, run.work(250)};
    std::vector<double> test(turns), control(turns);
    run.start();
    run_threads(2, [&](size_t thread) {
        for (size_t turn = 0; turn < turns; turn++) {
            double apart = take_turn(ground, thread, where::separate_line);
            double own = take_turn(ground, thread, where::own_block);
            if (thread == 0) {
                control[turn] = apart;
                test[turn] = own;
            }
        }
    });
    run.stop(0);
    run.report("over_control", "ratio", median(test) / median(control));
}

} // namespace

void run_sharing_active(case_run &run) {
    run_sharing(run, false);
}

void run_sharing_passive(case_run &run) {
    run_sharing(run, true);
}

} // namespace bench
