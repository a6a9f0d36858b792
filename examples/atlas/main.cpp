// atlas-demo: the places of the world in a heap that survives being killed. Start reading at tour.cpp for what happens,
// at atlas.hpp for how a program keeps its structures in a heap.
#include "kill_rounds.hpp"
#include "tour.hpp"
#include "writer.hpp"
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <unistd.h>

namespace {

// build/release/bin/atlas-demo puts its files into build/release/demo.
std::filesystem::path default_folder() {
    std::error_code error;
    std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? "demo" : program.parent_path().parent_path() / "demo";
}

void on_signal(int signal) {
    demo::kill_writer();
    _exit(128 + signal);
}

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        sigaction(signal, &action, nullptr);
}

int run(int argc, char **argv) {
    CLI::App options("The places of the world in a heap: loaded, snapshotted, queried, and killed again and again");
    demo::tour_plan plan{ATLAS_CITIES, default_folder(), 50, 1};
    int writer_pipe = -1;
    std::string writer_heap;
    options.add_option("FILE", plan.cities, "Places as CSV, plain or gzip: lat,lon,name,admin1,admin2,cc")
        ->capture_default_str();
    options.add_option("--folder", plan.folder, "Where the heap and the pictures go; replaces atlas.* there")
        ->capture_default_str();
    options.add_option("--rounds", plan.rounds, "How often the writing process is killed")->capture_default_str();
    options.add_option("--seed", plan.seed, "Of everything that is random")->capture_default_str();
    // How the demo starts its own writer.
    auto *pipe_option = options.add_option("--writer-pipe", writer_pipe)->group("");
    options.add_option("--heap", writer_heap)->group("")->needs(pipe_option);
    CLI11_PARSE(options, argc, argv);

    if (writer_pipe >= 0)
        demo::run_writer(writer_heap, writer_pipe, plan.seed);
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // so that progress shows in a pipe too
    catch_signals();
    return demo::run_tour(plan) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception &error) {
        std::fflush(stdout);
        std::fprintf(stderr, "atlas-demo: %s\n", error.what());
        return 1;
    }
}
