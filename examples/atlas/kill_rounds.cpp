#include "kill_rounds.hpp"
#include "heap_check.hpp"
#include "writer.hpp"

namespace demo {
namespace {

// Opens what the dead writer left and checks everything. Returns the first thing that is wrong; empty: nothing is.
std::string prove(const kill_plan &plan, const reported_states<fingerprint> &reported, kill_result &result,
                  fingerprint &content) {
    stopwatch clock;
    heap_file heap(plan.heap_path);
    result.open_ms.push_back(clock.ms());
    ++result.found[heap.report().found];

    if (std::string problem = problem_of(heap.get()); !problem.empty())
        return problem;

    const auto *book = static_cast<const atlas *>(ty_root(heap.get(), "atlas"));
    if (book == nullptr)
        return "the root \"atlas\" is gone";
    survey walked = survey_atlas(book);
    if (!walked.problem.empty())
        return "the atlas is damaged: " + walked.problem;
    if (uint64_t live = live_blocks_of(heap.get()); live != walked.blocks)
        return "the heap has " + std::to_string(live) + " live blocks, the atlas consists of " +
               std::to_string(walked.blocks);
    if (!reported.may_be(walked.content))
        return "the content is neither that of the last acknowledged snapshot nor of the one that was under way";
    result.found_new += reported.is_under_way && walked.content == reported.under_way;
    content = walked.content;
    heap.close();
    return {};
}

} // namespace

kill_result run_kill_rounds(const kill_plan &plan, fingerprint content,
                            const std::function<void(const kill_result &)> &progress) {
    kill_result result;
    auto round = [&](unsigned n) {
        reported_states<fingerprint> reported{content};
        auto hear = [&](const message &words) {
            reported.note(words);
            if (words.what != message::kind::durable)
                return;
            result.pause_ms.push_back(static_cast<double>(words.pause_ns) / 1e6);
            result.kilobytes.push_back(static_cast<double>(words.bytes) / 1e3);
        };
        let_work_and_kill<message>({"--heap", plan.heap_path}, "writer", plan.seed, n, {200, 200},
                                   message::kind::about_to, hear);
        result.acknowledged += reported.acknowledged;
        result.during_snapshot += reported.is_under_way;
        return prove(plan, reported, result, content);
    };
    run_rounds(plan.rounds, plan.seed, result, round, progress);
    return result;
}

} // namespace demo
