// words-demo: containers of the standard library, JSON documents and a program's own classes in a heap, though none of
// them knows of heaps; killed again and again. Start reading at common/scoped.hpp: all that it takes.
#include "folder.hpp"
#include "lost_words.hpp"
#include "run_program.hpp"
#include "tally.hpp"
#include "twin_rounds.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <tuple>

namespace {

struct demo_plan {
    std::vector<std::string> paths = {WORDS_TEXTS};
    std::filesystem::path folder = demo::default_folder();
    unsigned rounds = 20;
    uint64_t seed = 1;
};

void show(const words::tally &tally) {
    using entry = std::pair<int, const std::string *>;
    std::vector<entry> all;
    for (const auto &[word, counts] : tally.counts())
        all.emplace_back(std::accumulate(counts.begin(), counts.end(), 0), &word);
    const size_t shown = std::min<size_t>(all.size(), 8);
    std::partial_sort(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), all.end(),
        [](const entry &a, const entry &b) { return std::tie(b.first, *a.second) < std::tie(a.first, *b.second); });
    std::printf("  most often:");
    for (size_t i = 0; i < shown; ++i)
        std::printf(" %s (%d)", all[i].second->c_str(), all[i].first);
    std::printf("\n");
}

void found(const std::string &path, ty_kind kind, const words::texts &texts) {
    demo::stopwatch clock;
    demo::heap_file heap(path, demo::options_of_new(kind, TY_CODE_MAPPED));
    demo::found_heap<words::tally>(heap.get(), texts, [&](words::tally &tally) {
        while (tally.steps() < texts.lines.size())
            tally.step(texts);
    });
    auto *tally = demo::root_of<words::tally>(heap.get());
    std::printf(
        "  %s lines read in %.0f ms: %s words, %u headings; %s blocks in the heap, %zu words that lead out of it\n",
        demo::with_commas(texts.lines.size()).c_str(), clock.ms(), demo::with_commas(tally->word_count()).c_str(),
        tally->headings().Size(), demo::with_commas(demo::live_blocks_of(heap.get())).c_str(),
        demo::lost_words_of(heap.get()).size());
    show(*tally);
    heap.close();
}

// False: something was not proven.
bool prove(const demo_plan &plan, const std::string &path, const words::texts &texts) {
    demo::twin_rounds<words::tally, words::texts> rounds({path, plan.rounds, plan.seed, 0}, texts);
    return demo::print_outcome(rounds.run(plan.paths), "containers that nobody killed");
}

bool run_kind(const demo_plan &plan, const words::texts &texts, ty_kind kind) {
    const bool transactional = kind == TY_TRANSACTIONAL;
    const std::string path = (plan.folder / (transactional ? "words-txn.ty" : "words.ty")).string();
    demo::prepare_folder(plan.folder, path, {"", "-journal", "-log"});
    std::printf(
        "The words of %zu texts in std::unordered_map, nlohmann::json, RapidJSON and classes with virtual functions,\n"
        "unmodified, in a %s heap, %s\n",
        texts.names.size(), transactional ? "transactional" : "snapshot", demo::shown(path).c_str());
    found(path, kind, texts);
    std::printf("A process that forgets and reads lines, killed %u times (seed %llu)\n", plan.rounds,
                static_cast<unsigned long long>(plan.seed));
    return prove(plan, path, texts);
}

int run(int argc, char **argv) {
    CLI::App options("Containers and JSON documents that know nothing of heaps, in a heap; killed again and again");
    demo_plan plan;
    int pipe = -1;
    std::string heap;
    options.add_option("texts", plan.paths, "Files, or folders of Markdown files, whose words are counted")
        ->capture_default_str();
    options.add_option("--folder", plan.folder, "Where the heaps go; replaces words*.ty there")->capture_default_str();
    options.add_option("--rounds", plan.rounds, "How often the working process is killed, with each kind of heap")
        ->capture_default_str();
    options.add_option("--seed", plan.seed, "Of everything that is random")->capture_default_str();
    // The demo starts its own worker with it.
    auto *pipe_option = options.add_option("--pipe", pipe)->group("");
    options.add_option("--heap", heap)->group("")->needs(pipe_option);
    CLI11_PARSE(options, argc, argv);

    const words::texts texts = words::read_texts(plan.paths);
    if (pipe >= 0)
        demo::take_steps<words::tally>({heap, 0, plan.seed, 40}, pipe, texts);
    demo::begin_proof();
    return run_kind(plan, texts, TY_SNAPSHOT) && run_kind(plan, texts, TY_TRANSACTIONAL) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return demo::run_program("words-demo", run, argc, argv);
}
