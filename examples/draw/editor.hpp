// The process that is killed: it opens the drawing, changes it without end, undoes and redoes, and saves in between.
// What it is about to save, and what has been saved, it tells through a pipe.
#pragma once

#include "killing.hpp"
#include "survey.hpp"
#include <string>

namespace draw {

// What a drawing and its history were at some time.
struct state {
    fingerprint content;
    fingerprint memory;
    uint64_t undoable;
    uint64_t redoable;
    bool operator==(const state &) const = default;
};
state state_of(const drawing *d); // throws where the drawing is damaged

using message = demo::state_message<state>;

// Returns only by an exception: the editor ends by being killed, and dies with its parent.
[[noreturn]] void run_editor(const std::string &path, int pipe, uint64_t seed, uint64_t keep);

} // namespace draw
