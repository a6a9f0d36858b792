// All that the drawing needs to know of undo: an edit is one undo transaction.
//
// Structures are read through ordinary pointers, and changed only through an edit: change(x) records x as it is and
// returns it for writing; make, resize and release are recorded allocation. Code that keeps to that needs no undo of
// its own.
#pragma once

#include "heap_file.hpp"
#include <string>
#include <unordered_map>
#include <vector>

namespace draw {

class edit {
public:
    // Ends a cycle of undo and redo first, if one is in progress. The label is for the history.
    edit(ty_heap *heap, const std::string &label);
    // Cancels an edit that was not done, because something failed.
    ~edit();
    edit(const edit &) = delete;
    edit &operator=(const edit &) = delete;
    void done();

    // `count` objects from `object` on, to be written to.
    template <class T>
    T *change(const T *object, size_t count = 1) {
        record(object, count * sizeof(T));
        return const_cast<T *>(object);
    }
    // `count` objects of a plain type, all bytes zero.
    template <class T>
    T *make(size_t count = 1) {
        return static_cast<T *>(allocate(count * sizeof(T)));
    }
    // Makes a block of `count` objects larger or smaller; it may move, and the bytes it grows by are indeterminate.
    template <class T>
    T *resize(T *block, size_t count) {
        return static_cast<T *>(reallocate(block, count * sizeof(T)));
    }
    void release(void *block);
    // NULL for an empty text.
    char *copy_text(std::string_view text);

    ty_heap *heap() const { return heap_; }

private:
    void record(const void *object, size_t bytes);
    void *allocate(size_t bytes);
    void *reallocate(void *block, size_t bytes);

    ty_heap *heap_;
    std::unordered_map<const void *, size_t> recorded_; // so that no object is recorded twice
    bool done_ = false;
};

struct history_step {
    std::string label;
    uint64_t time_unix_ns;
    uint64_t bytes;
    bool undone;
};
// What can be redone (the last to be redone first), then what can be undone (the last to be undone last).
std::vector<history_step> history_of(ty_heap *heap);

// Undo the last edit, or redo the last one that was undone; return that edit's label. They throw if there is nothing to
// undo or redo.
std::string undo(ty_heap *heap);
std::string redo(ty_heap *heap);

ty_undo_stats undo_stats_of(ty_heap *heap);

} // namespace draw
