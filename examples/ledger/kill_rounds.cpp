#include "kill_rounds.hpp"
#include "heap_check.hpp"
#include "worker.hpp"
#include <algorithm>

namespace ledger {
namespace {

// What the worker has reported so far.
struct reports {
    uint64_t posted = 0; // highest acknowledged numbers
    uint64_t settled = 0;
    std::vector<uint64_t> done; // by teller
    uint64_t acknowledged = 0;
    bool wrong_sum = false;

    void note(const message &words) {
        if (words.what == message::kind::transferred) {
            done.resize(std::max<size_t>(done.size(), words.teller + 1));
            uint64_t &last = done[words.teller];
            acknowledged += last != 0 ? words.number - last : 1;
            last = words.number;
        }

        if (words.what == message::kind::posted)
            posted = std::max(posted, words.number);
        else if (words.what == message::kind::settled)
            settled = std::max(settled, words.number);
        else if (words.what == message::kind::wrong)
            wrong_sum = true;
        acknowledged += words.what == message::kind::posted || words.what == message::kind::settled;
    }
};

std::string prove_branch(ty_heap *heap, const reports &record, kill_result &result) {
    const auto *b = static_cast<const branch *>(ty_root(heap, "branch"));
    if (b == nullptr)
        return "the root \"branch\" is gone";
    uint64_t blocks = 0;
    if (std::string problem = audit(b, &blocks); !problem.empty())
        return problem;
    if (uint64_t live = demo::live_blocks_of(heap); live != blocks)
        return "the heap has " + std::to_string(live) + " live blocks, the branch consists of " +
               std::to_string(blocks);
    if (record.wrong_sum)
        return "a reader saw half a transaction";
    result.transfers = 0;
    for (size_t t = 0; t < b->teller_count; ++t) {
        const uint64_t acknowledged = t < record.done.size() ? record.done[t] : 0;
        if (b->tellers[t].done < acknowledged)
            return "transfer " + std::to_string(acknowledged) + " of teller " + std::to_string(t) +
                   " was acknowledged, and the last one is " + std::to_string(b->tellers[t].done);
        result.transfers += b->tellers[t].done;
    }
    return {};
}

std::string prove_bank(ty_heap *heap, const reports &record, kill_result &result) {
    const auto *b = static_cast<const bank *>(ty_root(heap, "bank"));
    if (b == nullptr)
        return "the root \"bank\" is gone";
    uint64_t blocks = 0;
    if (std::string problem = audit(b, &blocks); !problem.empty())
        return problem;
    if (uint64_t live = demo::live_blocks_of(heap); live != blocks)
        return "the heap has " + std::to_string(live) + " live blocks, the bank consists of " + std::to_string(blocks);
    if (record.wrong_sum)
        return "a reader saw half a transaction";
    if (b->posted < record.posted || b->settled < record.settled)
        return "orders were acknowledged up to " + std::to_string(record.posted) + " (settled up to " +
               std::to_string(record.settled) + "), the bank has them up to " + std::to_string(b->posted) + " (" +
               std::to_string(b->settled) + ")";
    result.posted = b->posted;
    result.settled = b->settled;
    result.refused = b->refused;
    return {};
}

// Opens what the dead worker left and checks everything. Returns the first thing that is wrong; empty: nothing is.
std::string prove(const kill_plan &plan, const reports &record, kill_result &result) {
    demo::stopwatch clock;
    demo::heap_file heap(plan.heap_path);
    result.open_ms.push_back(clock.ms());
    result.replayed += heap.report().replayed_transactions;
    result.with_replay += heap.report().replayed_transactions > 0;
    if (std::string problem = demo::problem_of(heap.get()); !problem.empty())
        return problem;
    return plan.branch ? prove_branch(heap.get(), record, result) : prove_bank(heap.get(), record, result);
}

// If threads were killed in it, a heap has lists of the library; a heap that was closed properly has none.
std::string prove_nothing_left(const kill_plan &plan) {
    demo::heap_file(plan.heap_path).close();
    demo::heap_file heap(plan.heap_path);
    if (uint64_t left = demo::library_blocks_of(heap.get()); left != 0)
        return "a closed heap has " + std::to_string(left) + " blocks of the library";
    return {};
}

} // namespace

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress) {
    kill_result result;
    std::vector<std::string> worker = {"--heap", plan.heap_path, "--threads", std::to_string(plan.threads)};
    if (plan.branch)
        worker.push_back("--tellers");
    auto round = [&](unsigned n) {
        reports record;
        demo::let_work_and_kill<message>(worker, "worker", plan.seed, n, {40, 5}, message::kind::opened,
                                         [&](const message &words) { record.note(words); });
        result.acknowledged += record.acknowledged;
        std::string problem = prove(plan, record, result);
        if (problem.empty() && plan.branch && n + 1 == plan.rounds)
            problem = prove_nothing_left(plan);
        return problem;
    };
    demo::run_rounds(plan.rounds, plan.seed, result, round, progress);
    return result;
}

} // namespace ledger
