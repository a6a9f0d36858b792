#include "kill_rounds.hpp"
#include "heap_check.hpp"
#include "listen_and_kill.hpp"
#include <random>

namespace lua {
namespace {

// What the worker has told so far.
struct told {
    state_told durable{};
    state_told under_way{}; // while in_snapshot
    bool in_snapshot = false;
    uint64_t acknowledged = 0;

    void note(const message &words) {
        if (words.what == message::kind::about_to) {
            under_way = words.which;
            in_snapshot = true;
        } else if (words.what == message::kind::durable) {
            durable = words.which;
            in_snapshot = false;
            ++acknowledged;
        }
    }
};

// Lets a worker work and kills it some time after its first line, or, in every fourth round, some time after the
// process started, so that its opening of the state is hit too.
void let_work_and_kill(const kill_plan &plan, unsigned round, told &record) {
    constexpr double most_work_ms = 100;
    constexpr double most_open_ms = 10;
    std::mt19937_64 random(plan.seed * 1000003 + round);
    const bool early = round % 4 == 0;
    const message::kind starts_clock = early ? message::kind::started : message::kind::about_to;
    demo::child_process worker({"--seed", std::to_string(random() >> 8), "--state", plan.path});
    demo::listen_and_kill<message>(worker, "worker", demo::random_ms(random, early ? most_open_ms : most_work_ms),
                                   [&](const message &words) {
                                       record.note(words);
                                       return words.what == starts_clock;
                                   });
}

// Some lines are undone and done again, but for the first one, which defines the counter; each state on the way must be
// whole.
std::string prove_history(session &s, kill_result &result) {
    constexpr uint64_t most = 5;
    const state_told found = state_of(s);
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

// Opens what the dead worker left and checks everything. The text says what is not as it must be; empty: all is. What
// the proof itself undoes and does again is durable, too, as in any session; a line that is under way stays so.
std::string prove(const kill_plan &plan, const told &record, kill_result &result, state_told &found) {
    demo::stopwatch clock;
    session s(plan.path);
    result.open_ms.push_back(clock.ms());
    result.code_words += s.report().code_words;
    if (std::string problem = demo::problem_of(s.heap()); !problem.empty())
        return problem;
    found = state_of(s);
    if (found != record.durable && !(record.in_snapshot && found == record.under_way))
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
    told record;
    {
        session s(plan.path);
        record.durable = state_of(s);
    }
    for (unsigned round = 0; round < plan.rounds; ++round) {
        record.in_snapshot = false;
        let_work_and_kill(plan, round, record);
        ++result.rounds;
        result.during_snapshot += record.in_snapshot;
        result.acknowledged = record.acknowledged;
        std::string problem = prove(plan, record, result, record.durable);
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

} // namespace lua
