// A drawing that somebody works on: the open heap, the selection, and the commands.
#pragma once

#include "drawing.hpp"
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace draw {

class session {
public:
    // Opens a drawing, or makes a new one.
    explicit session(const std::string &path);

    // Executes commands, separated by ';' or line ends; their output goes to `out`, in lines. Words are separated by
    // spaces; "..." holds a word together; from a # at the start of a command on, a line is a comment. A command that
    // throws has changed nothing.
    void execute(std::string_view commands, std::ostream &out);

    // After the command quit or abandon.
    bool is_ended() const { return ended_; }
    // Saves and closes, unless the drawing is abandoned; what is only tried is not saved. A session that is not closed
    // leaves what was saved last.
    void close();

    ty_heap *heap() const { return file_.get(); }
    const drawing *content() const { return drawing_; }

private:
    using words = std::vector<std::string>;
    struct command {
        const char *name;
        const char *arguments;
        const char *help;
        size_t least; // number of arguments
        size_t most;
        std::string (session::*run)(const words &arguments);
    };
    static const command commands[];
    std::string run(const words &command);

    std::vector<entity *> selected() const; // throws if nothing is selected
    std::string subject(const std::vector<entity *> &items) const;
    layer *named_layer(const std::string &name) const;
    std::string select_all(const std::vector<entity *> &items);
    std::string change_selected(const std::string &verb, const std::function<void(edit &, entity *)> &change);
    std::string transform_selected(const std::string &verb, const affine &how);
    std::string add_shape(const words &arguments, bool is_area);

    std::string import_from(const words &);
    std::string area(const words &);
    std::string line(const words &);
    std::string select(const words &);
    std::string list(const words &);
    std::string move(const words &);
    std::string rotate(const words &);
    std::string scale(const words &);
    std::string simplify(const words &);
    std::string join(const words &);
    std::string recolour(const words &);
    std::string remove(const words &);
    std::string put_into(const words &);
    std::string invert(const words &);
    std::string change_layer(const words &);
    std::string undo(const words &);
    std::string redo(const words &);
    std::string history(const words &);
    std::string try_out(const words &);
    std::string keep(const words &);
    std::string back(const words &);
    std::string save(const words &);
    std::string export_to(const words &);
    std::string info(const words &);
    std::string check(const words &);
    std::string fingerprint(const words &);
    std::string help(const words &);
    std::string quit(const words &);
    std::string abandon(const words &);

    demo::heap_file file_;
    drawing *drawing_;
    std::vector<uint64_t> selection_; // ids; what undo or redo removes is no longer selected
    bool trying_ = false;             // the heap has a mark
    bool ended_ = false;
    bool abandoned_ = false;
};

} // namespace draw
