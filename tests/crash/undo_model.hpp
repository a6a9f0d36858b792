// What the history of undo must be: the transactions in order with the heap's content after each, and how far it is
// undone. A point of the trace has it beside its content, since a snapshot holds both.
#pragma once

#include "heap_content.hpp"

#include <memory>
#include <string>
#include <vector>

namespace crash {

using shared_content = std::shared_ptr<const content>;

// Whether the sessions on a disk attach undo, and with which buffers. They are circular.
struct undo_choice {
    bool wanted = false;
    bool volatile_buffers = false;
    uint64_t buffer_bytes = 0;
    uint64_t entries = 0;
    bool wrong_history = false; // the canary: a recovery finds a transaction too many
};

struct undo_model {
    struct step {
        std::string label; // no two have the same
        shared_content after;
    };
    bool there = false; // the heap has buffers
    shared_content oldest;
    std::vector<step> steps;
    size_t done = 0; // the cursor: steps from it on are undone
    bool cycle = false;
    bool open = false; // a transaction
    bool full = false; // and it does not fit
    std::string open_label;
    uint64_t open_changes = 0;
    shared_content before; // the open transaction

    const shared_content &now() const { return done > 0 ? steps[done - 1].after : oldest; }
    bool empty() const { return steps.empty() && !open; }
    // The history ends, with nothing under way.
    void clear();
    // As far as the API reports it: labels from the oldest on, and what is under way.
    std::string text() const;
    // What a session finds that opens the heap: of volatile buffers, their being there.
    undo_model found_with(const undo_choice &choice) const;
};

} // namespace crash
