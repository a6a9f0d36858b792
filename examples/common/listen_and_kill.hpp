// One round of a proof by killing: a child works and tells what it does, until it dies.
#pragma once

#include "child_process.hpp"
#include "heap_file.hpp"
#include "stopwatch.hpp"

namespace demo {

// Hears the child's messages, each by hear(message), which returns whether that one starts the clock. Kills the child
// delay_ms after the first one that does, and hears what it had told before it died. `who` is for the failures: a child
// that ends by itself, or that does nothing for a minute.
template <class Message, class Hear>
void listen_and_kill(child_process &child, const std::string &who, double delay_ms, Hear &&hear) {
    constexpr double patience_ms = 60000;
    stopwatch clock;
    double deadline_ms = patience_ms;
    bool counting = false;
    auto reading = child_process::reading::none;
    auto listen = [&](double wait_ms) {
        Message messages[256];
        size_t count = 0;
        reading = child.read(messages, sizeof *messages, std::size(messages), wait_ms, count);
        for (size_t i = 0; i < count; ++i) {
            if (!hear(messages[i]) || counting)
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
        listen(patience_ms);
}

// A number of milliseconds from 0 to `most`, for the delay.
template <class Random>
double random_ms(Random &random, double most) {
    return most * static_cast<double>(random() >> 11) / 9007199254740992.0; // 2^53
}

} // namespace demo
