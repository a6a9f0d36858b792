// lua-demo: a Lua whose state lives in a heap, killed again and again. Start reading at session.hpp for how a library
// that allocates by a function of the program's is put into a heap, and at libraries.hpp for what must not be in it.
#include "folder.hpp"
#include "kill_rounds.hpp"
#include "run_program.hpp"
#include "stopwatch.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>

namespace {

struct demo_plan {
    std::filesystem::path folder = demo::default_folder();
    unsigned rounds = 25;
    uint64_t seed = 1;
};

void found_counter(const std::string &path) {
    lua::session s(path);
    lua::define_counter(s);
    for (const char *line : {"count()", "count()", "recent[2]"}) {
        std::printf("  > %s\n", line);
        std::fflush(stdout);
        lua::outcome how = s.execute(line);
        if (how.what != lua::outcome::kind::done)
            throw demo::failure(how.text);
    }
    s.close();
}

bool run_demo(const demo_plan &plan) {
    const std::string path = (plan.folder / "lua.ty").string();
    demo::prepare_folder(plan.folder, path, {"", "-journal", "-marks"});
    std::printf("Lua, whose whole state is in %s: a coroutine counts\n", demo::shown(path).c_str());
    found_counter(path);
    std::printf("A process that runs lines, undoes and redoes them, and scripts that save themselves, killed %u times "
                "(seed %llu)\n",
                plan.rounds, static_cast<unsigned long long>(plan.seed));
    lua::kill_result kills = lua::run_kill_rounds({path, plan.rounds, plan.seed}, [&](const lua::kill_result &so_far) {
        if (so_far.rounds % std::max(plan.rounds / 5, 1u) == 0)
            std::printf("  %4u kills, %s states acknowledged, counted to %s\n", so_far.rounds,
                        demo::with_commas(so_far.acknowledged).c_str(), demo::with_commas(so_far.counted).c_str());
    });
    if (!kills.failure.empty()) {
        std::printf("\nNOT PROVEN: %s. The files stay as they are.\n", kills.failure.c_str());
        return false;
    }
    if (plan.rounds == 0)
        return true;
    std::printf("  opened in %.2f ms (median), where %s addresses of code were repointed each time\n"
                "  %u killed within a snapshot, %u within a script, which went on; %s lines undone and done again\n"
                "All proven: %u kills; each time the state was one that had been acknowledged, to the last variable.\n"
                "It is yours: %s %s\n",
                demo::median(kills.open_ms), demo::with_commas(kills.code_words / kills.rounds).c_str(),
                kills.during_snapshot, kills.under_way, demo::with_commas(kills.walked).c_str(), kills.proven,
                demo::shown(demo::default_folder().parent_path() / "bin/durable-lua").c_str(),
                demo::shown(path).c_str());
    return true;
}

int run(int argc, char **argv) {
    CLI::App options("Lua with its state in a heap, killed again and again");
    demo_plan plan;
    int pipe = -1;
    std::string state;
    options.add_option("--folder", plan.folder, "Where the state goes; replaces lua.ty there")->capture_default_str();
    options.add_option("--rounds", plan.rounds, "How often the working process is killed")->capture_default_str();
    options.add_option("--seed", plan.seed, "Of everything that is random")->capture_default_str();
    // The demo starts its own worker with it.
    auto *pipe_option = options.add_option("--pipe", pipe)->group("");
    options.add_option("--state", state)->group("")->needs(pipe_option);
    CLI11_PARSE(options, argc, argv);

    if (pipe >= 0)
        lua::run_worker(state, pipe, plan.seed);
    demo::begin_proof();
    return run_demo(plan) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return demo::run_program("lua-demo", run, argc, argv);
}
