#include "kill_rounds.hpp"
#include "heap_check.hpp"
#include "listen_and_kill.hpp"
#include "writer.hpp"
#include <random>

namespace demo {
namespace {

// What the writer has told so far.
class record {
public:
    record(kill_result &result, fingerprint content) : result_(result), acknowledged_(content) {}

    void note(const message &words) {
        if (words.what == message::kind::about_to) {
            under_way_ = words.content;
            in_snapshot_ = true;
        } else if (words.what == message::kind::acknowledged) {
            acknowledged_ = words.content;
            in_snapshot_ = false;
            ++result_.acknowledged;
            result_.pause_ms.push_back(static_cast<double>(words.pause_ns) / 1e6);
            result_.kilobytes.push_back(static_cast<double>(words.bytes) / 1e3);
        }
    }
    bool in_snapshot() const { return in_snapshot_; }
    bool is_acknowledged(const fingerprint &content) const { return content == acknowledged_; }
    bool is_under_way(const fingerprint &content) const { return in_snapshot_ && content == under_way_; }

private:
    kill_result &result_;
    fingerprint acknowledged_;
    fingerprint under_way_{}; // while in_snapshot_
    bool in_snapshot_ = false;
};

// Lets a writer work and kills it: some time after its first snapshot began, or, in every eighth round, some time after
// the process started, so that its opening of the heap is hit too.
void let_work_and_kill(const kill_plan &plan, unsigned round, record &told) {
    constexpr double most_work_ms = 200;
    std::mt19937_64 random(plan.seed * 1000003 + round);
    double delay_ms = random_ms(random, most_work_ms);
    message::kind starts_clock = round % 8 == 0 ? message::kind::started : message::kind::about_to;

    child_process writer({"--seed", std::to_string(random()), "--heap", plan.heap_path});
    listen_and_kill<message>(writer, "writer", delay_ms, [&](const message &words) {
        told.note(words);
        return words.what == starts_clock;
    });
}

// Opens what the dead writer left and checks everything. The text says what is not as it must be; empty: all is.
std::string prove(const kill_plan &plan, const record &told, kill_result &result, fingerprint &content) {
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
    bool is_new = told.is_under_way(walked.content);
    if (!is_new && !told.is_acknowledged(walked.content))
        return "the content is neither that of the last acknowledged snapshot nor of the one that was under way";
    result.found_new += is_new;
    content = walked.content;
    heap.close();
    return {};
}

} // namespace

kill_result run_kill_rounds(const kill_plan &plan, fingerprint content,
                            const std::function<void(const kill_result &)> &progress) {
    kill_result result;
    for (unsigned round = 0; round < plan.rounds; ++round) {
        record told(result, content);
        let_work_and_kill(plan, round, told);
        ++result.rounds;
        result.during_snapshot += told.in_snapshot();
        std::string problem = prove(plan, told, result, content);
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

} // namespace demo
