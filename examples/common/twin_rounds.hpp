// The proof by killing, for structures whose whole content follows from the number of steps that made them. A process
// takes steps in a heap without end, and is killed. What it left is compared with a twin, which the same code makes in
// the memory of the proving process, where nothing is killed.
//
// State is the object at the root: State(inputs) makes it, step(inputs) takes one step, steps() is how many were taken,
// difference_from(twin) says where two differ (empty: nowhere), State::root is the root's name.
#pragma once

#include "folder.hpp"
#include "heap_check.hpp"
#include "killing.hpp"
#include "scoped.hpp"
#include <cstdio>

namespace demo {

struct step_message {
    enum class kind : uint64_t {
        started, // the process runs; nothing is open yet
        opened,  // the heap is open
        begun,   // what comes next makes this number of steps durable
        durable, // this number of steps is durable
    };
    kind what;
    uint64_t steps;
};

struct twin_plan {
    std::string heap_path;
    unsigned rounds;
    uint64_t seed;
    unsigned steps_most; // in a snapshot or transaction
};

struct twin_result : kill_count {
    unsigned later = 0;        // rounds whose last steps had become durable, but were not reported yet
    uint64_t acknowledged = 0; // snapshots or transactions
    uint64_t steps = 0;        // in the end
    uint64_t code_words = 0;   // repointed, in all opens
};

template <class State>
State *root_of(ty_heap *heap) {
    auto *state = static_cast<State *>(ty_root(heap, State::root));
    if (state == nullptr)
        throw failure(std::string("the root \"") + State::root + "\" is gone");
    return state;
}

// A new heap with a new State at its root; work runs before the heap is durable for the first time.
template <class State, class Inputs, class Work>
void found_heap(ty_heap *heap, const Inputs &inputs, Work &&work) {
    change_durably(heap, [&] {
        auto *state = new State(inputs);
        work(*state);
        check(ty_root_set(heap, State::root, state));
    });
}

inline void send_steps(int pipe, step_message::kind what, uint64_t steps) {
    const step_message words{what, steps};
    send_to_parent(pipe, &words, sizeof words);
}

// The process that is killed. Returns only by an exception.
template <class State, class Inputs>
[[noreturn]] void take_steps(const twin_plan &plan, int pipe, const Inputs &inputs) {
    be_child("taiyen-steps");
    send_steps(pipe, step_message::kind::started, 0); // fails if the parent died before the line above
    heap_file heap(plan.heap_path);
    send_steps(pipe, step_message::kind::opened, 0);
    auto *state = root_of<State>(heap.get());
    std::mt19937_64 random(plan.seed);
    for (;;) {
        const uint64_t steps = state->steps() + 1 + random() % plan.steps_most;
        send_steps(pipe, step_message::kind::begun, steps);
        change_durably(heap.get(), [&] {
            while (state->steps() < steps)
                state->step(inputs);
        });
        send_steps(pipe, step_message::kind::durable, steps);
    }
}

// Prints to standard output. False: something was not proven.
inline bool print_outcome(const twin_result &result, const std::string &what) {
    if (!result.failure.empty()) {
        std::printf("\nNOT PROVEN: %s. The files stay as they are.\n", result.failure.c_str());
        return false;
    }
    if (result.proven == 0)
        return true;
    std::printf("  %s steps, made durable %s times; %u kills fell between that and the word of it\n"
                "  opened in %.2f ms (median)",
                with_commas(result.steps).c_str(), with_commas(result.acknowledged).c_str(), result.later,
                median(result.open_ms));
    if (result.code_words != 0)
        std::printf("; %s words that lead into code got new values, as the program lay elsewhere",
                    with_commas(result.code_words).c_str());
    std::printf("\nAll proven: %u kills; %s would be the same, block for block.\n", result.proven, what.c_str());
    return true;
}

// The rounds. The twin lies in a heap of its own, so that its blocks can be counted: both heaps must have as many.
template <class State, class Inputs>
class twin_rounds {
public:
    twin_rounds(const twin_plan &plan, const Inputs &inputs) : plan_(plan), inputs_(inputs) {
        check(ty_heap_create(nullptr, &twins_));
        in_scope(twins_, [&] { twin_ = new State(inputs_); });
    }
    ~twin_rounds() { static_cast<void>(ty_heap_destroy(twins_)); } // with the twin in it
    twin_rounds(const twin_rounds &) = delete;
    twin_rounds &operator=(const twin_rounds &) = delete;

    // Stops at the first round that is not proven; the files then stay as they are. `child` are the arguments with
    // which this program calls take_steps with the same inputs.
    twin_result run(const std::vector<std::string> &child) {
        if (result_.failure = prove(); !result_.failure.empty())
            return result_;
        std::vector<std::string> arguments = child;
        arguments.insert(arguments.end(), {"--heap", plan_.heap_path});
        auto round = [&](unsigned n) {
            begun_ = durable_;
            let_work_and_kill<step_message>(arguments, "process that takes steps", plan_.seed, n, {40, 8},
                                            step_message::kind::opened,
                                            [&](const step_message &words) { hear(words); });
            return prove();
        };
        run_rounds<twin_result>(plan_.rounds, plan_.seed, result_, round, [](const twin_result &) {});
        return result_;
    }

private:
    void hear(const step_message &words) {
        if (words.what == step_message::kind::begun)
            begun_ = words.steps;
        if (words.what == step_message::kind::durable) {
            durable_ = words.steps;
            ++result_.acknowledged;
        }
    }

    // The state must have the number of steps that was acknowledged; or the one that was being made durable,
    // completely.
    std::string prove() {
        stopwatch clock;
        heap_file heap(plan_.heap_path);
        auto *state = root_of<State>(heap.get());
        result_.open_ms.push_back(clock.ms());
        result_.code_words += heap.report().code_words;
        if (std::string problem = problem_of(heap.get()); !problem.empty())
            return problem;
        const uint64_t steps = state->steps();
        const bool first = result_.open_ms.size() == 1;
        if (!first && steps != durable_ && steps != begun_)
            return "it has " + std::to_string(steps) + " steps, but " + std::to_string(durable_) +
                   " were acknowledged, and then " + std::to_string(begun_) + " begun";
        result_.later += !first && steps != durable_;
        begun_ = durable_ = result_.steps = steps;
        in_scope(twins_, [&] {
            while (twin_->steps() < steps)
                twin_->step(inputs_);
        });
        const std::string difference = state->difference_from(*twin_);
        return difference.empty() ? count_blocks(heap.get()) : difference;
    }

    std::string count_blocks(ty_heap *heap) const {
        // The library's records of code: the objects and, in a mapped heap, their symbols.
        const uint64_t own =
            uint64_t{ty_root(heap, TY_CODE_ROOT) != nullptr} + (ty_root(heap, TY_SYMBOLS_ROOT) != nullptr);
        const uint64_t blocks = live_blocks_of(heap) - own, twins = live_blocks_of(twins_);
        if (blocks == twins)
            return {};
        return "there are " + std::to_string(blocks) + " blocks, and the twin has " + std::to_string(twins);
    }

    const twin_plan plan_;
    const Inputs &inputs_;
    ty_heap *twins_ = nullptr;
    State *twin_ = nullptr;
    uint64_t begun_ = 0;
    uint64_t durable_ = 0;
    twin_result result_;
};

} // namespace demo
