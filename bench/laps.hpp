// Transactions of several threads, run for a time, with their durations.
#pragma once

#include "workload.hpp"

#include <algorithm>
#include <exception>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

namespace bench {

struct lap {
    size_t transactions = 0;
    double ns = 0;          // from the start of the clock
    std::vector<double> us; // of those that were timed individually
    double longest_us = 0;  // those between two timed ones count as one: none took longer than this

    void add(const lap &other) {
        transactions += other.transactions;
        ns = std::max(ns, other.ns);
        us.insert(us.end(), other.us.begin(), other.us.end());
        longest_us = std::max(longest_us, other.longest_us);
    }
};

// Runs until `ns` on the watch, and until may_end() allows it. One of `stride` transactions is timed individually, so
// that the cost of clocks does not count.
template <typename Transaction, typename MayEnd>
lap run_until(double ns, const stopwatch &watch, size_t stride, Transaction transact, MayEnd may_end) {
    lap lap;
    lap.ns = watch.ns();
    do {
        for (size_t untimed = 1; untimed < stride; untimed++)
            transact();
        double before = watch.ns();
        transact();
        double after = watch.ns();
        lap.us.push_back((after - before) / 1e3);
        lap.longest_us = std::max({lap.longest_us, (before - lap.ns) / 1e3, lap.us.back()});
        lap.transactions += stride;
        lap.ns = after;
    } while (lap.ns < ns || !may_end());
    return lap;
}

template <typename Transaction>
lap run_until(double ns, const stopwatch &watch, size_t stride, Transaction transact) {
    return run_until(ns, watch, stride, transact, [] { return true; });
}

// Calls run(index, watch) in so many threads at once; the watch starts when all are ready. The first failure is thrown
// when all have ended.
template <typename Run>
void run_side_by_side(size_t count, Run run) {
    std::vector<std::exception_ptr> failures(count);
    std::latch start(static_cast<ptrdiff_t>(count + 1));
    std::optional<stopwatch> watch; // set before the start
    std::vector<std::thread> threads;
    for (size_t index = 0; index < count; index++)
        threads.emplace_back([&, index] {
            start.arrive_and_wait();
            try {
                run(index, *watch);
            } catch (...) {
                failures[index] = std::current_exception();
            }
        });
    watch.emplace();
    start.count_down();
    for (std::thread &each : threads)
        each.join();
    for (const std::exception_ptr &each : failures)
        if (each)
            std::rethrow_exception(each);
}

inline double quantile(std::vector<double> &values, double part) {
    auto at = values.begin() + static_cast<ptrdiff_t>(part * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

} // namespace bench
