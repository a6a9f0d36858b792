// atlas-demo: the places of the world in a heap that survives being killed. Start reading at tour.cpp for what happens,
// at atlas.hpp for how a program keeps its structures in a heap.
#include "folder.hpp"
#include "run_program.hpp"
#include "tour.hpp"
#include "writer.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>

namespace {

int run(int argc, char **argv) {
    CLI::App options("The places of the world in a heap: loaded, snapshotted, queried, and killed again and again");
    demo::tour_plan plan{ATLAS_CITIES, demo::default_folder(), 50, 1};
    int writer_pipe = -1;
    std::string writer_heap;
    options.add_option("FILE", plan.cities, "Places as CSV, plain or gzip: lat,lon,name,admin1,admin2,cc")
        ->capture_default_str();
    options.add_option("--folder", plan.folder, "Where the heap and the pictures go; replaces atlas.* there")
        ->capture_default_str();
    options.add_option("--rounds", plan.rounds, "How often the writing process is killed")->capture_default_str();
    options.add_option("--seed", plan.seed, "Of everything that is random")->capture_default_str();
    // The demo starts its own writer with it.
    auto *pipe_option = options.add_option("--pipe", writer_pipe)->group("");
    options.add_option("--heap", writer_heap)->group("")->needs(pipe_option);
    CLI11_PARSE(options, argc, argv);

    if (writer_pipe >= 0)
        demo::run_writer(writer_heap, writer_pipe, plan.seed);
    demo::begin_proof();
    return demo::run_tour(plan) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return demo::run_program("atlas-demo", run, argc, argv);
}
