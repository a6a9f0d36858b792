#include "demo.hpp"
#include "editor.hpp"
#include "folder.hpp"
#include "invert.hpp"
#include "run_program.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>

namespace {

int run(int argc, char **argv) {
    CLI::App options("The world as a drawing: edited, saved, killed, opened again, undone and redone");
    draw::demo_plan plan{DRAW_COUNTRIES, demo::default_folder()};
    int pipe = -1;
    std::string drawing;
    uint64_t keep = 0;
    options.add_option("countries", plan.countries, "A TopoJSON file of countries")->capture_default_str();
    options.add_option("--folder", plan.folder, "Where the drawing goes; replaces draw.ty and draw-*.png, .svg there")
        ->capture_default_str();
    options.add_option("--rounds", plan.rounds, "How often the editing process is killed")->capture_default_str();
    options.add_option("--seed", plan.seed, "Of everything that is random")->capture_default_str();
    // The demo starts its own editor with it.
    auto *pipe_option = options.add_option("--pipe", pipe)->group("");
    options.add_option("--drawing", drawing)->group("")->needs(pipe_option);
    options.add_option("--keep", keep)->group("")->needs(pipe_option);
    CLI11_PARSE(options, argc, argv);

    draw::register_procedures();
    if (pipe >= 0)
        draw::run_editor(drawing, pipe, plan.seed, keep);
    demo::begin_proof();
    return draw::run_demo(plan) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return demo::run_program("draw-demo", run, argc, argv);
}
