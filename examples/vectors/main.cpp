// vectors-demo: an index of hnswlib, which knows nothing of heaps, in a heap: built, reopened at once, extended, and
// killed again and again. Start reading at common/scoped.hpp: all that it takes.
#include "collection.hpp"
#include "folder.hpp"
#include "lost_words.hpp"
#include "run_program.hpp"
#include "twin_rounds.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <numeric>

namespace {

using demo::check;
using demo::heap_file;
using vectors::collection;

struct demo_plan {
    std::filesystem::path folder = demo::default_folder();
    size_t vectors = 4000;
    size_t dimensions = 64;
    unsigned rounds = 20;
    uint64_t seed = 1;
};

constexpr size_t neighbours = 10;
constexpr size_t queries = 200;

struct answers {
    std::vector<uint64_t> numbers = std::vector<uint64_t>(queries * neighbours);
    double us = 0; // per query
};

void query_of(const vectors::source &from, size_t query, float *vector) {
    from.make((uint64_t{1} << 40) + query, vector); // near one of the clusters, and not in the index
}

// `found` was made outside of any scope.
void ask(const collection &index, const vectors::source &from, answers &found) {
    float vector[vectors::dimensions_max];
    demo::stopwatch clock;
    for (size_t query = 0; query < queries; ++query) {
        query_of(from, query, vector);
        index.nearest(vector, neighbours, &found.numbers[query * neighbours]);
    }
    found.us = clock.ms() * 1e3 / queries;
}

// The share of the nearest ones (by a scan of all vectors) that were found.
double recall_of(const answers &found, const vectors::source &from, size_t count) {
    size_t hits = 0;
    std::vector<std::pair<float, uint64_t>> all(count);
    std::vector<float> made(count * from.dimensions());
    for (size_t i = 0; i < count; ++i)
        from.make(i, &made[i * from.dimensions()]);
    for (size_t query = 0; query < queries; ++query) {
        float vector[vectors::dimensions_max];
        query_of(from, query, vector);
        for (size_t i = 0; i < count; ++i)
            all[i] = {std::inner_product(vector, vector + from.dimensions(), &made[i * from.dimensions()], 0.0F,
                                         std::plus<>(), [](float a, float b) { return (a - b) * (a - b); }),
                      i};
        std::partial_sort(all.begin(), all.begin() + neighbours, all.end());
        const auto *mine = &found.numbers[query * neighbours];
        for (size_t i = 0; i < neighbours; ++i)
            hits += std::find(mine, mine + neighbours, all[i].second) != mine + neighbours;
    }
    return static_cast<double>(hits) / (queries * neighbours);
}

std::string path_of(const demo_plan &plan, const char *name) {
    std::string path = (plan.folder / name).string();
    demo::prepare_folder(plan.folder, path, {"", "-journal", "-log"});
    return path;
}

void build(const std::string &path, const vectors::source &from, size_t count) {
    demo::stopwatch clock;
    heap_file heap(path, demo::options_of_new(TY_SNAPSHOT, TY_CODE_PINNED));
    demo::found_heap<collection>(heap.get(), from, [&](collection &index) {
        while (index.count() < count)
            index.add(from);
    });
    std::printf("  built in the heap in %.0f ms, durable; %zu words that lead out of it\n", clock.ms(),
                demo::lost_words_of(heap.get()).size());
    heap.close();
}

uint64_t written_of(ty_heap *heap) {
    ty_snapshot_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_get_snapshot_stats(heap, &stats));
    return stats.journal_bytes;
}

// False: the heap's index gives other answers than the one in memory.
bool open_and_extend(const demo_plan &plan, const std::string &path, const vectors::source &from) {
    collection memory(from);
    demo::stopwatch clock;
    while (memory.count() < plan.vectors)
        memory.add(from);
    std::printf("  built in memory in %.0f ms\n", clock.ms());

    std::vector<double> open_ms;
    for (int i = 0; i < 9; ++i) {
        clock = demo::stopwatch();
        heap_file again(path);
        demo::root_of<collection>(again.get());
        open_ms.push_back(clock.ms());
    }
    std::printf("  opened in %.2f ms (median of %zu; the first time in %.2f)\n", demo::median(open_ms), open_ms.size(),
                open_ms.front());
    heap_file heap(path);
    auto *index = demo::root_of<collection>(heap.get());
    const size_t more = plan.vectors / 20 + 1;
    for (bool extended : {false, true}) {
        if (extended) {
            const uint64_t before = written_of(heap.get());
            demo::change_durably(heap.get(), [&] {
                for (size_t i = 0; i < more; ++i)
                    index->add(from);
            });
            for (size_t i = 0; i < more; ++i)
                memory.add(from);
            std::printf("  %zu more vectors: %s bytes written to make them durable\n", more,
                        demo::with_commas(written_of(heap.get()) - before).c_str());
        }
        answers in_heap, in_memory;
        const auto ask_memory = [&] { ask(memory, from, in_memory); };
        demo::look(heap.get(), ask_memory, [&] { ask(*index, from, in_heap); });
        ask_memory();
        std::printf("  a query: %.0f us in the heap, %.0f in memory; recall %.3f and %.3f\n", in_heap.us, in_memory.us,
                    recall_of(in_heap, from, index->count()), recall_of(in_memory, from, memory.count()));
        if (in_heap.numbers != in_memory.numbers || !index->difference_from(memory).empty()) {
            std::printf("\nNOT PROVEN: the index in the heap is not like the one in memory.\n");
            return false;
        }
    }
    heap.close();
    return true;
}

// False: something was not proven.
bool prove_by_kills(const demo_plan &plan, const std::string &path, const vectors::source &from) {
    std::printf("A process that adds, changes and takes out vectors, killed %u times (seed %llu)\n", plan.rounds,
                static_cast<unsigned long long>(plan.seed));
    {
        heap_file heap(path, demo::options_of_new(TY_SNAPSHOT, TY_CODE_PINNED));
        demo::found_heap<collection>(heap.get(), from, [](collection &) {});
        heap.close();
    }
    demo::twin_rounds<collection, vectors::source> rounds({path, plan.rounds, plan.seed, 0}, from);
    const demo::twin_result result = rounds.run({"--dimensions", std::to_string(plan.dimensions)});
    return demo::print_outcome(result, "an index that nobody killed");
}

int run(int argc, char **argv) {
    CLI::App options("An index of hnswlib in a heap: built, opened again, extended, and killed again and again");
    demo_plan plan;
    int pipe = -1;
    std::string heap;
    options.add_option("--folder", plan.folder, "Where the heaps go; replaces vectors*.ty there")
        ->capture_default_str();
    options.add_option("--vectors", plan.vectors, "How many are indexed")
        ->check(CLI::Range(100, 10'000'000))
        ->capture_default_str();
    options.add_option("--dimensions", plan.dimensions, "Of each vector")
        ->check(CLI::Range(size_t{1}, vectors::dimensions_max))
        ->capture_default_str();
    options.add_option("--rounds", plan.rounds, "How often the working process is killed")->capture_default_str();
    options.add_option("--seed", plan.seed, "Of the moments of the kills")->capture_default_str();
    // The demo starts its own worker with it.
    auto *pipe_option = options.add_option("--pipe", pipe)->group("");
    options.add_option("--heap", heap)->group("")->needs(pipe_option);
    CLI11_PARSE(options, argc, argv);

    const vectors::source from(plan.dimensions, 1);
    if (pipe >= 0)
        demo::take_steps<collection>({heap, 0, plan.seed, 30}, pipe, from);
    demo::begin_proof();
    const std::string path = path_of(plan, "vectors.ty"), killed = path_of(plan, "vectors-killed.ty");
    std::printf("%s vectors of %zu dimensions, indexed by hnswlib, unmodified, in %s\n",
                demo::with_commas(plan.vectors).c_str(), plan.dimensions, demo::shown(path).c_str());
    build(path, from, plan.vectors);
    return open_and_extend(plan, path, from) && prove_by_kills(plan, killed, from) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    constexpr int not_possible_here = 77;   // as test runners expect it
    if (ty_pin_code(argc, argv) != TY_OK) { // the index points to code
        std::fprintf(stderr, "vectors-demo: %s\n", ty_error_text());
        return not_possible_here;
    }
    return demo::run_program("vectors-demo", run, argc, argv);
}
