#include "kill_rounds.hpp"
#include "heap_check.hpp"
#include "session.hpp"

namespace draw {
namespace {

using reports = demo::reported_states<state>;

// Undoes or redoes until so many changes can be undone.
void walk_to(const session &s, uint64_t undoable, kill_result &result) {
    demo::stopwatch clock;
    uint64_t now = undo_stats_of(s.heap()).undoable;
    for (; now > undoable; --now, ++result.steps)
        undo(s.heap());
    for (; now < undoable; ++now, ++result.steps)
        redo(s.heap());
    result.steps_ms += clock.ms();
}

bool is_as(const session &s, const state &expected) {
    state now = state_of(s.content());
    return now.content == expected.content && now.memory == expected.memory && now.undoable == expected.undoable;
}

// Opens what the dead editor left and checks everything. Returns the first thing that is wrong; empty: nothing is. What
// the proof itself undoes is not saved.
std::string prove(const kill_plan &plan, const reports &record, kill_result &result, state &found) {
    demo::stopwatch clock;
    session s(plan.path);
    result.open_ms.push_back(clock.ms());
    if (std::string problem = demo::problem_of(s.heap()); !problem.empty())
        return problem;
    found = state_of(s.content());
    if (!record.may_be(found))
        return "the drawing is neither what was saved last nor what was being saved";
    result.in_cycle += found.redoable > 0;

    const state way[] = {plan.edited, plan.imported, plan.edited, found};
    for (const state &next : way) {
        walk_to(s, next.undoable, result);
        if (!is_as(s, next))
            return "with " + std::to_string(next.undoable) + " changes left to undo, the drawing is not as it was then";
    }
    return demo::problem_of(s.heap());
}

} // namespace

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress) {
    kill_result result;
    state content = plan.edited;
    const std::vector<std::string> editor = {"--drawing", plan.path, "--keep", std::to_string(plan.edited.undoable)};
    auto round = [&](unsigned n) {
        reports record{content};
        demo::let_work_and_kill<message>(editor, "editor", plan.seed, n, {200, 20}, message::kind::about_to,
                                         [&](const message &words) { record.note(words); });
        result.saves += record.acknowledged;
        result.during_save += record.is_under_way;
        return prove(plan, record, result, content);
    };
    demo::run_rounds(plan.rounds, plan.seed, result, round, progress);
    return result;
}

} // namespace draw
