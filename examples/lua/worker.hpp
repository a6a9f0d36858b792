// The process that is killed: it opens the state, continues the line in progress, and runs lines without end: it
// counts, undoes and redoes, and runs scripts that save themselves at each count.
#pragma once

#include "counter.hpp"
#include "killing.hpp"

namespace lua {

// The report of a state: enough to distinguish states, and to know all of this one.
struct reported_state {
    uint64_t counted;
    uint64_t undoable;
    uint64_t redoable;
    uint64_t under_way;
    bool operator==(const reported_state &) const = default;
};
reported_state state_of(const session &s);

using message = demo::state_message<reported_state>;

// Returns only by an exception: the worker ends by being killed, and dies with its parent.
[[noreturn]] void run_worker(const std::string &path, int pipe, uint64_t seed);

} // namespace lua
