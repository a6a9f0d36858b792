// taiyen-crash, the power-cut explorer: see --help.
#include "run.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace {

using namespace crash;

void print_table(const tally &counts) {
    std::printf("%-10s %10s %22s\n", "power cut", "states", "of a recovery's states");
    for (size_t i = 0; i < tally::phases; ++i) {
        std::printf("%-10s %10llu %22llu\n", phase_name(static_cast<phase>(i)),
                    static_cast<unsigned long long>(counts.first[i]), static_cast<unsigned long long>(counts.again[i]));
    }
}

int run_all(const run_options &options) {
    tally counts = run(options);
    print_table(counts);
    std::printf("%llu states: %llu lost, %llu inconsistent, %llu refused\n",
                static_cast<unsigned long long>(counts.states), static_cast<unsigned long long>(counts.lost),
                static_cast<unsigned long long>(counts.inconsistent), static_cast<unsigned long long>(counts.refused));
    if (!options.canary) {
        return counts.failed() > 0;
    }
    std::printf(counts.failed() ? "canary: the broken flush was caught\n"
                                : "canary: the broken flush was NOT caught; the explorer sees nothing\n");
    return counts.failed() == 0;
}

int replay_one(const std::string &text, const run_options &options) {
    std::optional<state> which = state::parse(text);
    if (!which) {
        std::fprintf(stderr, "taiyen-crash: '%s' is not WORKLOAD[:EVENT:CUT:SEED[/EVENT:CUT:SEED]...]\n", text.c_str());
        return 2;
    }
    return replay(*which, options.canary, options.faults).what != verdict::sound;
}

} // namespace

int main(int count, char **arguments) {
    CLI::App app{
        "Cuts the power at every write and flush of seeded workloads on a simulated disk, restores, and compares\n"
        "what is found with what was acknowledged."};
    app.require_subcommand(1);
    run_options options;
    std::string state_text;
    CLI::App *snapshot = app.add_subcommand("snapshot", "Snapshot heaps (and archive heaps that become such)");
    snapshot->add_option("--states", options.states, "States of the disk to explore")->capture_default_str();
    snapshot->add_option("--seed", options.seed, "What the workloads and cuts are derived from")->capture_default_str();
    snapshot->add_option("--jobs", options.jobs, "Worker processes")->capture_default_str()->check(CLI::Range(1, 64));
    snapshot->add_flag("--faults", options.faults, "Operations of the disk fail; few cuts");
    snapshot->add_flag("--canary", options.canary,
                       "With a flush that does nothing: exit 0 if the explorer notices, 1 if it does not");
    snapshot->add_option("--replay", state_text, "Explore one state again, as a failure printed it");
    CLI11_PARSE(app, count, arguments);
    return state_text.empty() ? run_all(options) : replay_one(state_text, options);
}
