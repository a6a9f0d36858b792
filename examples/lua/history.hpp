// Undo and redo of whole lines: after each line a durable mark, to which the heap returns. Lua stores anywhere, and
// nothing is recorded while it runs; the library knows which pages have changed, and leads addresses of code in them to
// where that lies in this run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <taiyen/taiyen.h>

namespace lua {

// The line that the state is after, in the heap, and so in each mark. Lines that were undone, and then others made,
// have the numbers of these; no other line has its id.
struct line_name {
    uint64_t number;
    uint64_t id;
    uint64_t before; // id of the line before; 0: none
};
inline constexpr line_name before_all_lines{0, 1, 0};

class history {
public:
    // now: in the heap. bytes: of the file of marks that are in use at the most; 0: there is no history.
    history(ty_heap *heap, line_name *now, uint64_t bytes);

    // The state has its mark, as after a line; what a kill has left of other lines goes.
    void begin();
    // The state is now after another line.
    void next_line();
    // That is durable when this returns, and has its mark. False: the line cannot be undone, as it has changed more
    // than the history has room for.
    bool end_line();
    // Durable with the next snapshot. False: there is nothing to undo or redo.
    bool undo() { return go_to(now_->before); }
    bool redo() { return go_to(after(now_->id)); }
    uint64_t undoable() const;
    uint64_t redoable() const;

private:
    static std::string name_of(const line_name &line);
    uint64_t after(uint64_t id) const; // 0: none
    void find();
    bool mark();
    bool drop_oldest();
    void drop_others();
    bool go_to(uint64_t id);

    ty_heap *heap_;
    line_name *now_;
    uint64_t bytes_;
    std::map<uint64_t, line_name> lines_; // that have marks, by id
};

} // namespace lua
