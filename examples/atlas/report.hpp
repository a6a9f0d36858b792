// The figures of a run, and their output.
#pragma once

#include "kill_rounds.hpp"
#include <string>
#include <vector>

namespace demo {

struct heap_figures {
    double live_mb = 0;
    double resident_mb = 0;
    double page_efficiency = 0;
    double availability = 0;
};
heap_figures figures_of(ty_heap *heap);

struct figures {
    uint64_t records = 0;
    double load_ms = 0;
    heap_figures loaded;
    heap_figures churned; // after all rounds
    double snapshot_mb = 0;
    std::vector<double> snapshot_ms; // of everything, interleaved with raw_ms
    std::vector<double> raw_ms;
    std::vector<double> pause_ms;
    std::vector<double> open_clean_ms;
    double nearest_first_us = 0; // when most pages have not been touched yet
    double nearest_us = 0;
    kill_result kills;
};

void print_table(const figures &run);

} // namespace demo
