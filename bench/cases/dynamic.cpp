// Blocks that grow from 1 MB to 1 GB through realloc, with all their pages touched; twice in a process: the second pass
// uses what the allocator has kept from the first.
#include "case.hpp"

namespace bench {

namespace {

constexpr size_t smallest = size_t{1} << 20, largest = size_t{1} << 30;
constexpr size_t between_bytes = size_t{96} << 10;

// The other allocations between the steps are each an extent of pages, and stay until the block is freed.
void grow_block(case_run &run, double factor, bool between) {
    char *others[64] = {};
    size_t count = 0, size = run.scaled(smallest), end = run.scaled(largest);
    char *block = allocate_touched(size);
    while (size < end) {
        if (between)
            others[count++] = allocate_touched(between_bytes);
        size_t larger = std::min(end, static_cast<size_t>(static_cast<double>(size) * factor));
        block = static_cast<char *>(std::realloc(block, larger));
        if (!block || block[0] != 1 || block[size - 1] != 1)
            fail("realloc lost what was written");
        touch(block, size, larger);
        size = larger;
    }
    std::free(block);
    for (size_t at = 0; at < count; at++)
        std::free(others[at]);
}

void run_growth(case_run &run, double factor, bool between) {
    run.start();
    grow_block(run, factor, between);
    run.stop(run.scaled(largest));
    stopwatch watch;
    grow_block(run, factor, between);
    run.report("again_seconds", "s", watch.ns() / 1e9);
}

} // namespace

void run_double_alone(case_run &run) {
    run_growth(run, 2, false);
}

void run_double_between(case_run &run) {
    run_growth(run, 2, true);
}

void run_third_alone(case_run &run) {
    run_growth(run, 1.3, false);
}

void run_third_between(case_run &run) {
    run_growth(run, 1.3, true);
}

} // namespace bench
