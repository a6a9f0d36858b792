// The proof by killing: a child works and reports what it does, until it is killed at some moment; then what it left is
// checked against what it reported. A demo provides the child's work, its reports, and the check.
#pragma once

#include "child_process.hpp"
#include "heap_file.hpp"
#include "stopwatch.hpp"
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace demo {

// The reports of a child that makes one State after the other durable.
template <class State>
struct state_message {
    enum class kind : uint64_t {
        started,  // the process runs; nothing is open yet
        about_to, // this is going to be durable
        durable,  // it is durable
    };
    kind what;
    State which;
};

// What such a child has reported so far. Message: a state_message, or one with more in it.
template <class State>
struct reported_states {
    State durable{};
    State under_way{}; // while is_under_way
    bool is_under_way = false;
    uint64_t acknowledged = 0;

    template <class Message>
    void note(const Message &words) {
        if (words.what == Message::kind::about_to) {
            under_way = words.which;
            is_under_way = true;
        } else if (words.what == Message::kind::durable) {
            durable = words.which;
            is_under_way = false;
            ++acknowledged;
        }
    }
    bool may_be(const State &found) const { return found == durable || (is_under_way && found == under_way); }
};

// Counts of all proofs.
struct kill_count {
    unsigned rounds = 0;
    unsigned proven = 0;
    std::vector<double> open_ms; // of the first open after a kill
    std::string failure;         // what was not proven; empty: nothing
};

// A round kills a child and checks what it left; it returns the first thing that is wrong (empty: nothing). Stops at
// the first round that is not proven; the files then stay as they are. Calls `progress` after each round.
template <class Result, class Round>
void run_rounds(unsigned rounds, uint64_t seed, Result &result, Round &&round,
                const std::function<void(const Result &)> &progress) {
    for (unsigned n = 0; n < rounds; ++n) {
        ++result.rounds;
        if (std::string problem = round(n); !problem.empty()) {
            result.failure = "round " + std::to_string(n) + " of seed " + std::to_string(seed) + ": " + problem;
            return;
        }
        ++result.proven;
        progress(result);
    }
}

// A random number of milliseconds from 0 to `most`, for the delay.
template <class Random>
double random_ms(Random &random, double most) {
    return most * static_cast<double>(random() >> 11) / 9007199254740992.0; // 2^53
}

struct kill_times {
    double most_work_ms; // after the child began to work
    double most_open_ms; // in every fourth round: after its process started, so that kills also hit its open
};

// Starts the child, with a seed of its own, and passes its messages to hear(message). Kills it some time after the
// first message that says `working`, and reads what it had reported before it died. `who` is for the failures: a child
// that ends by itself, or that does nothing for a minute.
template <class Message, class Hear>
void let_work_and_kill(std::vector<std::string> arguments, const std::string &who, uint64_t seed, unsigned round,
                       const kill_times &times, typename Message::kind working, Hear &&hear) {
    constexpr double timeout_ms = 60000;
    std::mt19937_64 random(seed * 1000003 + round);
    const bool early = round % 4 == 0;
    const double delay_ms = random_ms(random, early ? times.most_open_ms : times.most_work_ms);
    const auto starts_clock = early ? Message::kind::started : working;
    arguments.insert(arguments.end(), {"--seed", std::to_string(random() >> 8)});
    child_process child(arguments);
    stopwatch clock;
    double deadline_ms = timeout_ms;
    bool counting = false;
    auto reading = child_process::reading::none;
    auto listen = [&](double wait_ms) {
        Message messages[256];
        size_t count = 0;
        reading = child.read(messages, sizeof *messages, std::size(messages), wait_ms, count);
        for (size_t i = 0; i < count; ++i) {
            hear(messages[i]);
            if (messages[i].what != starts_clock || counting)
                continue;
            counting = true;
            clock = stopwatch();
            deadline_ms = delay_ms;
        }
    };
    while (reading != child_process::reading::ended && clock.ms() < deadline_ms)
        listen(deadline_ms - clock.ms());
    if (reading == child_process::reading::ended)
        throw failure("the " + who + " ended by itself; what it said stands above");
    if (!counting)
        throw failure("the " + who + " did nothing for a minute");
    kill_child();
    while (reading != child_process::reading::ended)
        listen(timeout_ms);
}

} // namespace demo
