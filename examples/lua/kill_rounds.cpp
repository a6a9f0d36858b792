#include "kill_rounds.hpp"
#include "heap_check.hpp"

namespace lua {
namespace {

using reports = demo::reported_states<reported_state>;

// Some lines are undone and redone, except for the first one, which defines the counter; each state on the way must be
// consistent.
std::string prove_history(session &s, kill_result &result) {
    constexpr uint64_t most = 5;
    const reported_state found = state_of(s);
    const uint64_t lines = std::min(most, found.undoable - std::min<uint64_t>(found.undoable, 1));
    for (uint64_t i = 0; i < lines; ++i) {
        s.undo();
        if (std::string problem = problem_of_counter(s); !problem.empty())
            return "with a line undone: " + problem;
    }
    for (uint64_t i = 0; i < lines; ++i)
        s.redo();
    result.walked += 2 * lines;
    if (state_of(s) != found)
        return "lines that were undone and done again have not led back";
    return problem_of_counter(s);
}

// Opens what the dead worker left and checks everything. Returns the first thing that is wrong; empty: nothing is. What
// the proof itself undoes and redoes is durable, too, as in any session; a line in progress stays so.
std::string prove(const kill_plan &plan, const reports &record, kill_result &result, reported_state &found) {
    demo::stopwatch clock;
    session s(plan.path);
    result.open_ms.push_back(clock.ms());
    result.code_words += s.report().code_words;
    if (std::string problem = demo::problem_of(s.heap()); !problem.empty())
        return problem;
    found = state_of(s);
    if (!record.may_be(found))
        return "counted to " + std::to_string(found.counted) + ", which was not acknowledged last, nor about to be";
    result.counted = found.counted;
    result.under_way += s.is_under_way();
    if (std::string problem = problem_of_counter(s); !problem.empty())
        return problem;
    if (!s.is_under_way())
        if (std::string problem = prove_history(s, result); !problem.empty())
            return problem;
    return demo::problem_of(s.heap());
}

} // namespace

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress) {
    kill_result result;
    reports record;
    {
        session s(plan.path);
        record.durable = state_of(s);
    }
    auto round = [&](unsigned n) {
        record.is_under_way = false;
        demo::let_work_and_kill<message>({"--state", plan.path}, "worker", plan.seed, n, {100, 10},
                                         message::kind::about_to, [&](const message &words) { record.note(words); });
        result.during_snapshot += record.is_under_way;
        result.acknowledged = record.acknowledged;
        return prove(plan, record, result, record.durable);
    };
    demo::run_rounds(plan.rounds, plan.seed, result, round, progress);
    return result;
}

} // namespace lua
