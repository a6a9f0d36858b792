// The proof: an editor is killed at a random moment, the drawing opened again, its changes undone back to the import,
// including those of other processes, and redone.
#pragma once

#include "editor.hpp"

namespace draw {

struct kill_plan {
    std::string path;
    unsigned rounds;
    uint64_t seed;
    state imported; // nothing can be undone but the import itself
    state edited;   // the editor starts from this state, and does not undo it
};

struct kill_result : demo::kill_count { // open_ms: until the drawing can be changed, undone and redone
    unsigned during_save = 0;
    unsigned in_cycle = 0; // saved between an undo and a redo
    uint64_t saves = 0;
    uint64_t steps = 0; // undone and redone by the proofs
    double steps_ms = 0;
};

kill_result run_kill_rounds(const kill_plan &plan, const std::function<void(const kill_result &)> &progress);

} // namespace draw
