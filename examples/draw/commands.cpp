// The table of commands, and the commands that show the drawing, import or export.
#include "folder.hpp"
#include "heap_check.hpp"
#include "picture.hpp"
#include "session.hpp"
#include "stopwatch.hpp"
#include "survey.hpp"
#include "topojson.hpp"
#include "words.hpp"
#include <ctime>
#include <filesystem>

namespace draw {

using demo::failure;

namespace {
constexpr size_t any_number = 100000;
}

const session::command session::commands[] = {
    {"import", "FILE", "add the layers of a TopoJSON file of countries", 1, 1, &session::import_from},
    {"layer", "add|show|hide NAME", "a new layer on top; show or hide one", 2, 2, &session::change_layer},
    {"area", "LAYER NAME X Y X Y X Y ...", "draw an area; it is selected then", 8, any_number, &session::area},
    {"line", "LAYER NAME X Y X Y ...", "draw a line; it is selected then", 6, any_number, &session::line},
    {"select", "NAME | id N ... | box X Y X Y | layer NAME | all | none", "what the next commands change", 1,
     any_number, &session::select},
    {"list", "", "what is selected", 0, 0, &session::list},
    {"move", "X Y", "by so many degrees", 2, 2, &session::move},
    {"rotate", "DEGREES", "counterclockwise, about the middle of what is selected", 1, 1, &session::rotate},
    {"scale", "FACTOR", "about the middle of what is selected", 1, 1, &session::scale},
    {"simplify", "DEGREES", "leave out points that are no further from the line", 1, 1, &session::simplify},
    {"join", "", "two lines become one", 0, 0, &session::join},
    {"recolour", "#RRGGBB", "what is selected", 1, 1, &session::recolour},
    {"delete", "", "what is selected", 0, 0, &session::remove},
    {"into", "LAYER", "put what is selected into another layer", 1, 1, &session::put_into},
    {"invert", "LAYER", "negative colours for a layer", 1, 1, &session::invert},
    {"undo", "[N]", "take the last change back, or up to N of them", 0, 1, &session::undo},
    {"redo", "[N]", "do again what was undone last, or up to N of it", 0, 1, &session::redo},
    {"history", "", "what can be undone and redone", 0, 0, &session::history},
    {"try", "", "what follows is only tried, all of it, until keep or back", 0, 0, &session::try_out},
    {"keep", "", "keep what was tried", 0, 0, &session::keep},
    {"back", "", "to the drawing and the history before the try", 0, 0, &session::back},
    {"save", "", "make the drawing durable, its history with it", 0, 0, &session::save},
    {"export", "FILE.svg | FILE.png", "a picture", 1, 1, &session::export_to},
    {"info", "", "layers, sizes, history", 0, 0, &session::info},
    {"check", "", "check every structure, and the heap", 0, 0, &session::check},
    {"fingerprint", "", "of the content, and of all bytes in memory with their addresses", 0, 0, &session::fingerprint},
    {"help", "", "this list", 0, 0, &session::help},
    {"quit", "", "save and leave; what is only tried is gone", 0, 0, &session::quit},
    {"abandon", "", "leave; what was not saved is gone", 0, 0, &session::abandon},
};

std::string session::run(const words &all) {
    for (const command &each : commands) {
        if (all[0] != each.name)
            continue;
        words arguments(all.begin() + 1, all.end());
        if (arguments.size() < each.least || arguments.size() > each.most)
            throw failure(std::string("it is used so: ") + each.name + " " + each.arguments);
        return (this->*each.run)(arguments);
    }
    throw failure("there is no command \"" + all[0] + "\"; help lists them");
}

std::string session::help(const words &) {
    std::string text;
    for (const command &each : commands) {
        std::string usage = std::string("  ") + each.name + " " + each.arguments;
        usage.resize(std::max<size_t>(usage.size() + 2, 32), ' ');
        text += usage + each.help + "\n";
    }
    return text + "Separate commands by ; and hold names together with \"quotation marks\".\n";
}

std::string session::import_from(const words &from) {
    std::vector<map_layer> layers = read_countries(from[0]);
    for (const map_layer &each : layers)
        if (find_layer(drawing_, each.name) != nullptr)
            throw failure("there is a layer \"" + each.name + "\" already");
    std::string label = "import " + std::filesystem::path(from[0]).filename().string();
    uint64_t before = drawing_->entity_count;
    edit e(heap(), label);
    for (const map_layer &each : layers) {
        layer *home = add_layer(e, drawing_, each.name);
        for (const shape &s : each.shapes)
            add_entity(e, drawing_, home, s);
    }
    e.done();
    return label + ": " + counted(drawing_->entity_count - before, "entity", "entities") + "\n";
}

std::string session::select(const words &what) {
    std::vector<entity *> found;
    auto each_visible = [&](auto &&take) {
        for (const layer *l = drawing_->first_layer; l != nullptr; l = l->next)
            for (entity *item = l->visible != 0 ? l->first : nullptr; item != nullptr; item = item->next)
                if (take(item))
                    found.push_back(item);
    };
    if (what[0] == "none" && what.size() == 1) {
    } else if (what[0] == "all" && what.size() == 1) {
        each_visible([](const entity *) { return true; });
    } else if (what[0] == "layer" && what.size() == 2) {
        const layer *home = named_layer(what[1]);
        each_visible([home](const entity *item) { return item->home == home; });
    } else if (what[0] == "box" && what.size() == 5) {
        box area;
        area.add(point{number_of(what[1]), number_of(what[2])});
        area.add(point{number_of(what[3]), number_of(what[4])});
        for (entity *item : tree_search(&drawing_->index, area))
            if (item->home->visible != 0 && area.contains(item->bounds))
                found.push_back(item);
        std::sort(found.begin(), found.end(), [](const entity *a, const entity *b) { return a->id < b->id; });
    } else if (what[0] == "id" && what.size() > 1) {
        for (size_t i = 1; i < what.size(); ++i) {
            entity *item = find_entity(drawing_, count_of(what[i]));
            if (item == nullptr)
                throw failure("there is no entity " + what[i]);
            if (std::find(found.begin(), found.end(), item) == found.end()) // it may be named twice
                found.push_back(item);
        }
    } else if (what.size() == 1) {
        each_visible([&](const entity *item) { return demo::view(item->name) == what[0]; });
        if (found.empty())
            throw failure("nothing that is visible is called \"" + what[0] + "\"");
    } else {
        throw failure(
            "it is used so: select NAME, select id N ..., select box X Y X Y, select layer NAME, select all or "
            "select none; a name of several words is put into quotation marks");
    }
    return select_all(found);
}

std::string session::list(const words &) {
    std::string text;
    for (const entity *item : selected()) {
        char where[96];
        std::snprintf(where, sizeof where, "#%06x  %.1f %.1f to %.1f %.1f", item->colour, item->bounds.low_x,
                      item->bounds.low_y, item->bounds.high_x, item->bounds.high_y);
        text += "  " + std::to_string(item->id) + "  " + std::string(demo::view(item->home->name)) + "  " +
                std::string(demo::view(item->name)) + "  " + counted(points_of(item), "point", "points") + "  " +
                where + "\n";
    }
    return text;
}

std::string session::history(const words &) {
    std::string text;
    for (const history_step &step : history_of(heap())) {
        auto seconds = static_cast<std::time_t>(step.time_unix_ns / 1000000000);
        std::tm local{};
        localtime_r(&seconds, &local);
        char when[32];
        std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
        text += std::string("  ") + when + (step.undone ? "  Redo " : "  Undo ") + step.label + "  (" +
                counted(step.bytes, "byte", "bytes") + ")\n";
    }
    return text.empty() ? "nothing was changed yet\n" : text;
}

std::string session::export_to(const words &to) {
    export_picture(drawing_, to[0]);
    return "exported " + to[0] + "\n";
}

std::string session::info(const words &) {
    survey s = survey_drawing(drawing_);
    std::string text;
    for (const layer *l = drawing_->first_layer; l != nullptr; l = l->next)
        text += "  layer " + std::string(demo::view(l->name)) + ": " + counted(l->entity_count, "entity", "entities") +
                (l->visible != 0 ? "\n" : ", hidden\n");
    ty_undo_stats undo = undo_stats_of(heap());
    return text + "  " + counted(s.points, "point", "points") + ", " + counted(s.blocks, "block", "blocks") + ", " +
           counted(s.bytes, "byte", "bytes") + "\n  " + counted(undo.undoable, "change", "changes") + " to undo, " +
           std::to_string(undo.redoable) + " to redo: " + counted(undo.undo_bytes + undo.redo_bytes, "byte", "bytes") +
           " of records, " + counted(undo.kept_bytes, "byte", "bytes") + " of blocks held for them\n";
}

std::string session::check(const words &) {
    survey s = survey_drawing(drawing_);
    std::string problem = s.problem.empty() ? demo::problem_of(heap()) : s.problem;
    if (!problem.empty())
        throw failure("the drawing is damaged: " + problem);
    return "all is sound: " + counted(s.entities, "entity", "entities") + ", " + counted(s.blocks, "block", "blocks") +
           "\n";
}

std::string session::fingerprint(const words &) {
    survey s = survey_drawing(drawing_);
    return "content " + text_of(s.content) + "\nmemory  " + text_of(s.memory) + "\n";
}

} // namespace draw
