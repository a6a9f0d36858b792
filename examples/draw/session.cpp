#include "session.hpp"
#include "invert.hpp"
#include "words.hpp"
#include <ostream>

namespace draw {

using demo::failure;

session::session(const std::string &path) : file_(path, TY_OPEN_OR_CREATE), drawing_(drawing_of(file_.get())) {
    demo::check(ty_undo_attach(file_.get(), nullptr)); // with the history of earlier sessions
}

void session::execute(std::string_view text, std::ostream &out) {
    for (const words &each : split_commands(text)) {
        out << run(each);
        if (ended_)
            break;
    }
}

void session::close() {
    if (abandoned_)
        return;
    if (trying_)
        back({});
    file_.close();
}

std::vector<entity *> session::selected() const {
    std::vector<entity *> items;
    for (uint64_t id : selection_)
        if (entity *item = find_entity(drawing_, id))
            items.push_back(item);
    if (items.empty())
        throw failure("nothing is selected");
    return items;
}

// The items in a history label: their name, if they have one name, or their number.
std::string session::subject(const std::vector<entity *> &items) const {
    std::string_view name = demo::view(items[0]->name);
    bool alike = std::all_of(items.begin(), items.end(), [&](const entity *e) { return demo::view(e->name) == name; });
    return alike && !name.empty() ? std::string(name) : counted(items.size(), "entity", "entities");
}

layer *session::named_layer(const std::string &name) const {
    if (layer *found = find_layer(drawing_, name))
        return found;
    throw failure("there is no layer \"" + name + "\"");
}

std::string session::select_all(const std::vector<entity *> &items) {
    selection_.clear();
    for (const entity *item : items)
        selection_.push_back(item->id);
    return items.empty() ? "nothing is selected\n" : "selected " + subject(items) + "\n";
}

std::string session::change_selected(const std::string &verb, const std::function<void(edit &, entity *)> &change) {
    std::vector<entity *> items = selected();
    std::string label = verb + " " + subject(items);
    edit e(heap(), label);
    for (entity *item : items)
        change(e, item);
    e.done();
    return label + "\n";
}

std::string session::transform_selected(const std::string &verb, const affine &how) {
    return change_selected(verb, [&](edit &e, entity *item) { transform(e, drawing_, item, how); });
}

std::string session::move(const words &to) {
    return transform_selected("move", moved_by(number_of(to[0]), number_of(to[1])));
}

namespace {

point middle_of(const std::vector<entity *> &items) {
    box all;
    for (const entity *item : items)
        all.add(item->bounds);
    return all.middle();
}

} // namespace

std::string session::rotate(const words &by) {
    return transform_selected("rotate", rotated_about(middle_of(selected()), number_of(by[0])));
}

std::string session::scale(const words &by) {
    double factor = number_of(by[0]);
    if (factor == 0)
        throw failure("scaled by 0, nothing would be left");
    return transform_selected("scale", scaled_about(middle_of(selected()), factor));
}

std::string session::simplify(const words &by) {
    double tolerance = number_of(by[0]);
    uint64_t gone = 0;
    std::string said = change_selected(
        "simplify", [&](edit &e, entity *item) { gone += draw::simplify(e, drawing_, item, tolerance); });
    said.pop_back();
    return said + ": " + counted(gone, "point is", "points are") + " gone\n";
}

std::string session::join(const words &) {
    std::vector<entity *> items = selected();
    if (items.size() != 2 || items[0]->is_area != 0 || items[1]->is_area != 0)
        throw failure("two lines must be selected to be joined");
    std::string label = "join " + subject(items);
    edit e(heap(), label);
    join_lines(e, drawing_, items[0], items[1]);
    e.done();
    return label + "\n";
}

std::string session::recolour(const words &to) {
    uint32_t colour = colour_of(to[0]);
    return change_selected("recolour", [&](edit &e, entity *item) { draw::recolour(e, item, colour); });
}

std::string session::remove(const words &) {
    std::string said = change_selected("delete", [&](edit &e, entity *item) { remove_entity(e, drawing_, item); });
    selection_.clear();
    return said;
}

std::string session::put_into(const words &to) {
    layer *home = named_layer(to[0]);
    return change_selected("put into " + to[0], [&](edit &e, entity *item) { draw::put_into(e, item, home); });
}

std::string session::invert(const words &what) {
    const layer *l = named_layer(what[0]);
    std::string label = "invert " + what[0];
    edit e(heap(), label);
    invert_layer(e, l);
    e.done();
    return label + "\n";
}

std::string session::change_layer(const words &what) {
    const std::string &name = what[1];
    std::string label = what[0] + " layer " + name;
    if (what[0] == "add" && (name.empty() || find_layer(drawing_, name) != nullptr))
        throw failure("there is a layer \"" + name + "\" already");
    if (what[0] != "add" && what[0] != "show" && what[0] != "hide")
        throw failure("a layer can be added, shown or hidden: layer add NAME, layer show NAME, layer hide NAME");
    layer *l = what[0] == "add" ? nullptr : named_layer(name);
    edit e(heap(), label);
    if (l == nullptr)
        add_layer(e, drawing_, name);
    else
        set_visible(e, l, what[0] == "show");
    e.done();
    return label + "\n";
}

std::string session::area(const words &from) {
    return add_shape(from, true);
}

std::string session::line(const words &from) {
    return add_shape(from, false);
}

std::string session::add_shape(const words &from, bool is_area) {
    layer *home = named_layer(from[0]);
    shape s{from[1], 0x404040, is_area, {{}}};
    if (from.size() % 2 != 0)
        throw failure("a point has two numbers");
    for (size_t i = 2; i < from.size(); i += 2)
        s.parts[0].push_back({number_of(from[i]), number_of(from[i + 1])});
    std::string label = "add " + s.name;
    edit e(heap(), label);
    entity *added = add_entity(e, drawing_, home, s);
    e.done();
    selection_ = {added->id};
    return label + "\n";
}

namespace {

// As often as was asked for, and as there is something; at least once, which throws if there is nothing.
uint64_t times(const std::vector<std::string> &asked, uint64_t there_are) {
    return asked.empty() ? 1 : std::min(count_of(asked[0]), std::max<uint64_t>(there_are, 1));
}

} // namespace

std::string session::undo(const words &how_often) {
    std::string said;
    for (uint64_t left = times(how_often, undo_stats_of(heap()).undoable); left > 0; --left)
        said += "undone: " + draw::undo(heap()) + "\n";
    return said;
}

std::string session::redo(const words &how_often) {
    std::string said;
    for (uint64_t left = times(how_often, undo_stats_of(heap()).redoable); left > 0; --left)
        said += "done again: " + draw::redo(heap()) + "\n";
    return said;
}

namespace {

constexpr const char *before_try = "before the try";

void require(bool trying) {
    if (!trying)
        throw failure("nothing is being tried");
}

} // namespace

// The history of undo is in the heap, and goes back with the rest.
std::string session::try_out(const words &) {
    if (trying_)
        throw failure("something is being tried already; keep or back ends that");
    demo::check(ty_mark(heap(), before_try, nullptr));
    trying_ = true;
    return "what follows is only tried, until keep or back\n";
}

std::string session::keep(const words &) {
    require(trying_);
    demo::check(ty_drop_mark(heap(), before_try));
    trying_ = false;
    return "kept\n";
}

std::string session::back(const words &) {
    require(trying_);
    demo::check(ty_return_to(heap(), before_try, nullptr));
    keep({});
    return "as it was before the try\n";
}

std::string session::save(const words &) {
    if (trying_)
        throw failure("what is only tried is not saved; keep or back ends that");
    demo::check(ty_snapshot(heap()));
    return "saved\n";
}

std::string session::quit(const words &) {
    ended_ = true;
    return {};
}

std::string session::abandon(const words &) {
    ended_ = abandoned_ = true;
    return {};
}

} // namespace draw
