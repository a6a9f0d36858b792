#include "kill_rounds.hpp"
#include "killing.hpp"
#include "processes.hpp"
#include <random>

namespace orders {
namespace {

constexpr role killed_roles[] = {role::taker, role::worker, role::depot};

void start_all(processes &all) {
    for (role each : {role::depot, role::worker, role::taker})
        all.start(each);
}

// Kills it some time after it has opened its heaps; in every fourth round some time after it has started, so that kills
// also hit its opens.
void let_work_and_kill(processes &all, role who, std::mt19937_64 &random, unsigned round) {
    constexpr double most_work_ms = 40, most_open_ms = 5;
    const int n = static_cast<int>(who);
    const bool is_early = round % 4 == 0;
    all.listen(0, [&] { return is_early ? all.is_started[n] : all.is_opened[n]; });
    all.listen(demo::random_ms(random, is_early ? most_open_ms : most_work_ms), [] { return true; });
    all.kill(who);
}

bool check(processes &all, kill_result &result, bool is_final) {
    all.kill_all();
    result.acknowledged = all.acknowledged;
    result.done = all.done;
    result.resolved = all.resolved;
    if (!all.prove(is_final)) {
        result.failure = "after " + std::to_string(result.kills) + " kills; what is wrong stands above";
        return false;
    }
    ++result.proofs;
    return true;
}

// All orders taken are done, and the depot has them: then everything is checked once more.
void finish(processes &all, const kill_plan &plan, kill_result &result) {
    uint64_t taken = 0;
    {
        demo::heap_file heap(plan.paths.heap("counter"));
        taken = root_object<counter>(heap.get(), "counter")->taken;
    }
    all.is_quiet = true;
    start_all(all);
    all.listen(0, [&] { return all.received >= taken; });
    check(all, result, true);
}

} // namespace

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress) {
    role_plan given;
    given.paths = plan.paths;
    given.database = plan.database;
    given.where = plan.where;
    given.seed = plan.seed;
    given.is_apart = plan.is_apart;
    processes all(given);
    std::mt19937_64 random(plan.seed);
    kill_result result;
    const unsigned kills = plan.only < 0 ? 3 * plan.rounds : plan.rounds;
    start_all(all);
    for (unsigned n = 0; n < kills; ++n) {
        const role who = plan.only < 0 ? killed_roles[n % 3] : static_cast<role>(plan.only);
        let_work_and_kill(all, who, random, plan.only < 0 ? n / 3 : n);
        ++result.kills;
        if ((n + 1) % plan.check_every == 0 && n + 1 != kills) {
            if (!check(all, result, false))
                return result;
            progress(result);
            start_all(all);
        } else {
            all.start(who);
        }
    }
    if (check(all, result, false))
        finish(all, plan, result);
    return result;
}

} // namespace orders
