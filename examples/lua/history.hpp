// Undo and redo of whole lines. Lua stores anywhere, so nothing is recorded while it runs: after a line, all of its
// blocks are compared with a copy from before, and the differences become an entry. Entries lie in the heap, in words
// at multiples of 8. So they are part of each snapshot; and if the program is loaded elsewhere in the next run, or was
// rebuilt, the old words in them are repointed like all others, unlike those of ty_undo. Freed blocks are kept
// allocated, so that nothing else, neither Lua's nor the library's, is in their places when they come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <taiyen/taiyen.h>
#include <unordered_set>
#include <vector>

namespace lua {

// Entries, one after the other, in one block of the heap. Unused words are zero.
struct entry_stack {
    uint64_t room; // in words
    uint64_t used;
    uint64_t lines;
    uint64_t words[1]; // of each entry: its size, whether a line begins with it, its parts, and its size again
};

// The history of all blocks of a heap except those at roots and the library's own.
class history {
public:
    // `undo` and `redo` are made by make_stack, or NULL: then there is no history.
    history(ty_heap *heap, entry_stack *undo, entry_stack *redo);

    static entry_stack *make_stack(ty_heap *heap, size_t bytes);

    // From now on the changes since the last call can be undone, and nothing redone. `begins`: a line begins with them;
    // else they continue the line before. False: they did not fit, and the history is empty.
    bool note(bool begins);

    // Undoes or redoes the last line; before that, reverts the changes since the last call of note, undo or redo.
    // False: there is nothing to undo or redo. After an exception the heap must be discarded.
    bool undo() { return walk(undo_, redo_); }
    bool redo() { return walk(redo_, undo_); }
    uint64_t undoable() const { return undo_ == nullptr ? 0 : undo_->lines; }
    uint64_t redoable() const { return redo_ == nullptr ? 0 : redo_->lines; }

    // The blocks of the state, in order of address.
    std::vector<ty_block> blocks_now() const;

private:
    void look(); // takes the copy
    std::vector<uint64_t> difference() const;
    bool walk(entry_stack *from, entry_stack *to);

    void hold(uint64_t *parts, size_t count);
    void release(uint64_t *parts, size_t count);
    void release_all(entry_stack *stack);
    void lead_back(const std::vector<uint64_t> &entry);
    void remove_first(entry_stack *stack, uint64_t words);
    bool push(entry_stack *stack, const std::vector<uint64_t> &entry, bool begins);
    bool pop(entry_stack *stack, std::vector<uint64_t> &entry);

    ty_heap *heap_;
    entry_stack *undo_;
    entry_stack *redo_;
    std::vector<const void *> apart_;       // blocks, in order of address
    std::unordered_set<const void *> held_; // of all entries
    std::vector<ty_block> blocks_;          // at the last look(), in order of address
    std::vector<uint64_t> content_;         // of one block after the other
};

} // namespace lua
