// taiyen-crash, the power-cut explorer: see --help.
#include "run.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace {

using namespace crash;

struct command {
    run_options options;
    std::string canary_text; // empty: none
    std::string state_text;
};

void print_table(const tally &counts) {
    std::printf("%-10s %10s %22s\n", "power cut", "states", "of a recovery's states");
    for (size_t i = 0; i < tally::phases; ++i) {
        if (counts.first[i] + counts.again[i] > 0) {
            std::printf("%-10s %10llu %22llu\n", phase_name(static_cast<phase>(i)),
                        static_cast<unsigned long long>(counts.first[i]),
                        static_cast<unsigned long long>(counts.again[i]));
        }
    }
}

bool run_once(const run_options &options) {
    tally counts = run(options);
    print_table(counts);
    std::printf("%llu states: %llu lost, %llu inconsistent, %llu refused\n",
                static_cast<unsigned long long>(counts.states), static_cast<unsigned long long>(counts.lost),
                static_cast<unsigned long long>(counts.inconsistent), static_cast<unsigned long long>(counts.refused));
    if (options.broken == canary::none) {
        return counts.failed() == 0;
    }
    const char *name = canary_name(options.broken);
    bool caught = (options.broken == canary::undo_history ? counts.inconsistent : counts.lost) > 0;
    std::printf(caught ? "canary: the broken %s was caught\n"
                       : "canary: the broken %s was NOT caught; the explorer sees nothing\n",
                name);
    return caught;
}

int run_all(const command &given) {
    run_options options = given.options;
    if (given.canary_text.empty()) {
        return run_once(options) ? 0 : 1;
    }
    const mode &of = *options.what;
    bool caught = true;
    bool known = false;
    for (size_t i = 0; i < of.canary_count; ++i) {
        options.broken = of.canaries[i];
        if (given.canary_text == "all" || given.canary_text == canary_name(options.broken)) {
            known = true;
            caught = run_once(options) && caught;
        }
    }
    if (!known) {
        std::fprintf(stderr, "taiyen-crash: no such canary: '%s'\n", given.canary_text.c_str());
        return 2;
    }
    return caught ? 0 : 1;
}

int replay_one(const command &given) {
    std::optional<state> which = state::parse(given.state_text);
    if (!which) {
        std::fprintf(stderr, "taiyen-crash: '%s' is not WORKLOAD[:EVENT:CUT:SEED[/EVENT:CUT:SEED]...]\n",
                     given.state_text.c_str());
        return 2;
    }
    run_options options = given.options;
    for (canary one : {canary::flush, canary::durable_write, canary::undo_history, canary::older_files}) {
        options.broken = given.canary_text == canary_name(one) ? one : options.broken;
    }
    constexpr unsigned tries_of_threads = 200;
    for (unsigned i = 0; i < (options.what->threads ? tries_of_threads : 1); ++i)
        if (replay(*which, options).what != verdict::sound)
            return 1;
    return 0;
}

void add_mode(CLI::App &app, const mode &of, const char *what, command &given) {
    CLI::App *sub = app.add_subcommand(of.name, what);
    sub->add_option("--states", given.options.states, "States of the disk to explore")->capture_default_str();
    sub->add_option("--seed", given.options.seed, "What the workloads and cuts are derived from")
        ->capture_default_str();
    sub->add_option("--jobs", given.options.jobs, "Worker processes")->capture_default_str()->check(CLI::Range(1, 64));
    if (&of == &transactional_mode || &of == &concurrent_mode) {
        sub->add_option("--log-streams", log_streams, "Of the logs")->check(CLI::Range(0, TY_LOG_STREAMS_MAX));
    }
    sub->add_flag("--faults", given.options.faults, "Operations of the disk fail; few cuts");
    std::string names;
    for (size_t i = 0; i < of.canary_count; ++i) {
        names += (i ? ", " : "") + std::string(canary_name(of.canaries[i]));
    }
    sub->add_flag(
        "--canary{all}", given.canary_text,
        "With something broken on purpose: exit 0 if the explorer notices each, 1 if it does not (--canary=ONE "
        "of " +
            names + ")");
    sub->add_option("--replay", given.state_text, "Explore one state again, as a failure printed it");
    sub->callback([&given, &of] { given.options.what = &of; });
}

} // namespace

int main(int count, char **arguments) {
    CLI::App app{
        "Cuts the power at every write and flush of seeded workloads on a simulated disk, restores, and compares\n"
        "what is found with what was acknowledged."};
    app.require_subcommand(1);
    command given;
    add_mode(app, snapshot_mode, "Snapshot heaps (and archive heaps that become such)", given);
    add_mode(app, transactional_mode, "Transactional heaps (and snapshot heaps that become such)", given);
    add_mode(app, concurrent_mode, "Concurrent heaps, of several threads", given);
    add_mode(app, archive_mode, "Archive heaps", given);
    CLI11_PARSE(app, count, arguments);
    return given.state_text.empty() ? run_all(given) : replay_one(given);
}
