// The process that is killed: it opens the drawing, changes it without end, undoes and redoes, and saves in between.
// Through a pipe it reports what it is about to save, and what has been saved.
#pragma once

#include "killing.hpp"
#include "survey.hpp"
#include <string>

namespace draw {

// The state of a drawing and its history at some time.
struct state {
    fingerprint content;
    fingerprint memory;
    uint64_t undoable;
    uint64_t redoable;
    bool operator==(const state &) const = default;
};
state state_of(const drawing *d); // throws if the drawing is damaged

using message = demo::state_message<state>;

// Returns only by an exception: the editor ends by being killed, and dies with its parent.
[[noreturn]] void run_editor(const std::string &path, int pipe, uint64_t seed, uint64_t keep);

} // namespace draw
