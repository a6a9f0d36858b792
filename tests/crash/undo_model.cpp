#include "undo_model.hpp"

namespace crash {

void undo_model::clear() {
    steps.clear();
    done = 0;
    cycle = open = full = false;
}

std::string undo_model::text() const {
    std::string text = there ? "history" : "no buffers";
    for (size_t i = 0; i < steps.size(); ++i) {
        text += (i < done ? " " : " -") + steps[i].label;
    }
    return text + (open ? full ? ", one full" : ", one open" : "") + (cycle ? ", in a cycle" : "");
}

undo_model undo_model::found_with(const undo_choice &choice) const {
    undo_model found = *this;
    if (choice.volatile_buffers) {
        found.clear();
    }
    return found;
}

} // namespace crash
