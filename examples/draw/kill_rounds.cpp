#include "kill_rounds.hpp"
#include "heap_check.hpp"
#include "listen_and_kill.hpp"
#include "session.hpp"
#include <random>

namespace draw {
namespace {

// What the editor has told so far.
struct told {
    state saved{};
    state under_way{}; // while in_save
    bool in_save = false;
    uint64_t saves = 0;

    void note(const message &words) {
        if (words.what == message::kind::about_to) {
            under_way = words.which;
            in_save = true;
        } else if (words.what == message::kind::saved) {
            saved = words.which;
            in_save = false;
            ++saves;
        }
    }
};

// Lets an editor work and kills it some time after its first save began, or, in every fourth round, some time after the
// process started, so that its opening of the drawing is hit too.
void let_work_and_kill(const kill_plan &plan, unsigned round, told &record) {
    constexpr double most_work_ms = 200;
    constexpr double most_open_ms = 20;
    std::mt19937_64 random(plan.seed * 1000003 + round);
    bool early = round % 4 == 0;
    message::kind starts_clock = early ? message::kind::started : message::kind::about_to;
    demo::child_process editor({"--seed", std::to_string(random() >> 8), "--drawing", plan.path, "--keep",
                                std::to_string(plan.edited.undoable)});
    demo::listen_and_kill<message>(editor, "editor", demo::random_ms(random, early ? most_open_ms : most_work_ms),
                                   [&](const message &words) {
                                       record.note(words);
                                       return words.what == starts_clock;
                                   });
}

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

// Opens what the dead editor left and checks everything. The text says what is not as it must be; empty: all is. What
// the proof itself undoes is not saved.
std::string prove(const kill_plan &plan, const told &record, kill_result &result, state &found) {
    demo::stopwatch clock;
    session s(plan.path);
    result.open_ms.push_back(clock.ms());
    if (std::string problem = demo::problem_of(s.heap()); !problem.empty())
        return problem;
    found = state_of(s.content());
    if (found != record.saved && !(record.in_save && found == record.under_way))
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
    for (unsigned round = 0; round < plan.rounds; ++round) {
        told record;
        record.saved = content;
        let_work_and_kill(plan, round, record);
        ++result.rounds;
        result.saves += record.saves;
        result.during_save += record.in_save;
        std::string problem = prove(plan, record, result, content);
        if (!problem.empty()) {
            result.failure =
                "round " + std::to_string(round) + " of seed " + std::to_string(plan.seed) + ": " + problem;
            break;
        }
        ++result.proven;
        progress(result);
    }
    return result;
}

} // namespace draw
