#include "random_editor.hpp"
#include <sstream>

namespace draw {

std::string random_editor::number(double low, double high) {
    return std::to_string(low + (high - low) * static_cast<double>(random_() >> 11) / 9007199254740992.0); // 2^53
}

// The first entity from a random id on.
std::string random_editor::some_id(bool only_lines) {
    const drawing *d = session_.content();
    for (uint64_t left = d->new_id, id = below(d->new_id); left > 0; --left, id = (id + 1) % d->new_id)
        if (const entity *item = find_entity(d, id); item != nullptr && (!only_lines || item->is_area == 0))
            return " " + std::to_string(id);
    throw demo::failure("the drawing is empty");
}

std::string random_editor::selection() {
    std::string text = "select id";
    for (uint64_t left = 1 + below(4); left > 0; --left)
        text += some_id(false);
    return text + "; ";
}

std::string random_editor::shape() {
    std::string text = below(2) == 0 ? "line borders" : "area countries";
    text += " \"New " + std::to_string(below(1000)) + "\"";
    for (uint64_t left = 3 + below(40); left > 0; --left)
        text += " " + number(-180, 180) + " " + number(-90, 90);
    return text;
}

std::string random_editor::next_commands() {
    constexpr uint64_t most = 200; // so that nothing is forgotten for lack of room
    ty_undo_stats stats = undo_stats_of(session_.heap());
    uint64_t undoable = stats.undoable > keep_ ? stats.undoable - keep_ : 0;
    if (undoable > most)
        return "undo " + std::to_string(most / 2);
    switch (below(20)) {
    case 0:
    case 1:
    case 2:
        return undoable > 0 ? "undo " + std::to_string(1 + below(std::min<uint64_t>(undoable, 6))) : shape();
    case 3:
    case 4:
        return stats.redoable > 0 ? "redo " + std::to_string(1 + below(std::min<uint64_t>(stats.redoable, 4)))
                                  : shape();
    case 5:
        return selection() + "delete";
    case 6:
        return selection() + "recolour #" + std::to_string(100000 + below(900000));
    case 7:
        return selection() + "rotate " + number(-180, 180);
    case 8:
        return selection() + "scale " + number(0.8, 1.25);
    case 9:
        return selection() + "simplify " + number(0, 0.3);
    case 10:
        return selection() + "into " + (below(2) == 0 ? "land" : "countries");
    case 11:
        return below(4) == 0 ? "invert countries" : "invert borders";
    case 12:
        return below(2) == 0 ? "layer hide borders" : "layer show borders";
    case 13: {
        std::string first = some_id(true);
        std::string second = some_id(true);
        return first == second ? shape() : "select id" + first + second + "; join";
    }
    case 14:
    case 15:
        return shape();
    default:
        return selection() + "move " + number(-10, 10) + " " + number(-5, 5);
    }
}

std::string random_editor::work() {
    std::string commands = next_commands();
    std::ostringstream said;
    session_.execute(commands, said);
    return commands;
}

} // namespace draw
