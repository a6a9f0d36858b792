// A Lua state that lives in a heap, with all that it has: variables, closures, suspended coroutines. Lua itself is
// Debian's, and allocates by a function that it is given. Between two lines nothing of the state is on the C stack, so
// a snapshot there holds all of it. The same holds within a line at a call of save(): the line runs as a coroutine, and
// yields then.
#pragma once

#include "heap_file.hpp"
#include "history.hpp"
#include <functional>
#include <lua.hpp>
#include <optional>
#include <string>

namespace lua {

// The session's data in the heap, at the root "lua".
struct home {
    char release[64]; // of the Lua that made the state: others have other structures
    lua_State *state;
    lua_State *line; // one that has called save(), and has not ended; NULL: none
    uint64_t history_bytes;
    line_name last_line;
};

struct session_options {
    size_t limit_bytes = 0; // of the heap: the most that the state may take. 0: 1 GiB for a new one, else as it is
    size_t history_bytes = size_t{64} << 20; // of a new heap, on disk, for undo and redo; 0: without
};

struct outcome {
    enum class kind { done, failed, incomplete } what = kind::done;
    std::string text; // why it failed
    bool can_be_undone = true;
};

// One at a time in a process, used by one thread.
class session {
public:
    explicit session(const std::string &path, const session_options &options = {});
    session(const session &) = delete;
    session &operator=(const session &) = delete;

    // Runs a line, or a script of many. What it has done is durable when this returns, and can be undone as a whole,
    // also if it failed. Incomplete: more input is needed; nothing has been done. Throws if it cannot be made durable,
    // as do the other functions: the session is over then.
    outcome execute(const std::string &text, const std::string &name = "=line");

    // Whether a kill has ended a line after its last save(); it continues there.
    bool is_under_way() const { return home_->line != nullptr; }
    outcome go_on();

    // False: there is nothing to undo or redo. The present state is durable then.
    bool undo() { return step(&history::undo); }
    bool redo() { return step(&history::redo); }
    uint64_t undoable() const { return history_->undoable(); }
    uint64_t redoable() const { return history_->redoable(); }

    // Called with false before something becomes durable, and with true once it is.
    void watch(std::function<void(bool)> changed) { changed_ = std::move(changed); }

    void close() { file_.close(); }
    ty_heap *heap() const { return file_.get(); }
    const ty_report &report() const { return file_.report(); }
    lua_State *state() const { return home_->state; }

private:
    void make_state(const session_options &options);
    outcome run(int arguments);
    outcome end_line(lua_State *line, int status, int results);
    bool step(bool (history::*walk)());
    void make_durable(const std::function<void()> &durably);

    demo::heap_file file_;
    home *home_;
    std::optional<history> history_;
    std::function<void(bool)> changed_;
};

// Ends the running line with a Lua error. If that does not help (the line runs in a coroutine that it resumes, or in a
// C function), a second call ends the process: the next process finds the state before the line, or at its last save().
// For a handler of SIGINT.
void interrupt(int);

} // namespace lua
