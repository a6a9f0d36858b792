// The two histories of the undo suite, with the same calls: taiyen's, and one written by hand.
//
// An editor has objects, and slots that lead to objects; an object begins with its size. The editor changes bytes of
// objects, puts objects into slots, takes them out and resizes them. All of that is recorded.
#pragma once

#include "harness.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

namespace bench {

struct history_settings {
    std::string path;   // of the heap
    size_t limit_bytes; // of the heap
    size_t undo_bytes;  // that a history keeps
    size_t kept_bytes;  // the same, in objects that were taken out
    size_t entries;     // that taiyen keeps: so many that the bytes are the limit
};

inline size_t size_of(const char *object) {
    size_t bytes = 0;
    std::memcpy(&bytes, object, sizeof bytes);
    return bytes;
}

// A snapshot heap with circular buffers in it, as an application would have.
class taiyen_history {
public:
    explicit taiyen_history(const history_settings &how) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.limit_bytes = how.limit_bytes;
        options.kind = TY_SNAPSHOT;
        check(ty_open(how.path.c_str(), &options, &heap_, nullptr), "cannot create a heap");
        ty_undo_options undo = TY_UNDO_OPTIONS_INIT;
        undo.undo_bytes = how.undo_bytes;
        undo.entries = how.entries;
        undo.kept_bytes = how.kept_bytes;
        check(ty_undo_attach(heap_, &undo), "cannot attach undo");
    }
    taiyen_history(const taiyen_history &) = delete;
    ~taiyen_history() {
        if (heap_)
            (void)ty_discard(heap_); // it is removed after the run
    }

    ty_heap *heap() const { return heap_; }
    void save() { check(ty_close(std::exchange(heap_, nullptr)), "cannot close a heap"); }
    // Without a record, zeroed.
    char *make(size_t bytes) { return made(ty_alloc_zeroed(heap_, bytes)); }

    void begin() { check(ty_undo_begin(heap_, "edit"), "begin"); }
    void end() { check(ty_undo_end(heap_), "end"); }
    // Announces a write to `bytes` of an object.
    void change(char *object, size_t, size_t offset, size_t bytes) {
        check(ty_undo_record(heap_, object + offset, bytes), "record");
    }
    void put(char **slot, size_t bytes) {
        char *object = made(ty_undo_alloc(heap_, bytes));
        std::memcpy(object, &bytes, sizeof bytes);
        set(slot, object);
    }
    void take(char **slot) {
        char *object = *slot;
        set(slot, nullptr);
        check(ty_undo_free(heap_, object), "free");
    }
    void resize(char **slot, size_t bytes) {
        change(*slot, 0, 0, sizeof bytes);
        char *object = made(ty_undo_resize(heap_, *slot, bytes));
        std::memcpy(object, &bytes, sizeof bytes);
        if (object != *slot)
            set(slot, object);
    }
    bool undo() { return moved(ty_undo(heap_)); }
    bool redo() { return moved(ty_redo(heap_)); }
    void exit() { check(ty_undo_exit(heap_), "exit"); }

private:
    static char *made(void *object) {
        if (!object)
            throw std::runtime_error(ty_error_text());
        return static_cast<char *>(object);
    }
    void set(char **slot, char *object) {
        check(ty_undo_record(heap_, slot, sizeof *slot), "record");
        *slot = object;
    }
    static bool moved(ty_status status) {
        if (status != TY_E_NOT_FOUND)
            check(status, "undo or redo");
        return status == TY_OK;
    }

    ty_heap *heap_ = nullptr;
};

// What applications do without taiyen: before an object is changed, the command keeps a copy of all of it; undo and
// redo exchange the copy and the object. An object that is taken out is not copied: the command owns it from then on.
// The history is only in memory, and ends with the process.
class copies_history {
public:
    explicit copies_history(const history_settings &how) : limit_bytes_(how.undo_bytes + how.kept_bytes) {}
    copies_history(const copies_history &) = delete;

    // The measuring process ends together with its objects.
    char *make(size_t bytes) {
        char *object = allocate(bytes).release();
        std::memset(object, 0, bytes);
        return object;
    }

    void begin() { commands_.emplace_back(); }
    void end() {
        done_ = commands_.size();
        for (bytes_ += commands_.back().bytes; bytes_ > limit_bytes_ && done_ > 1; --done_) {
            bytes_ -= commands_.front().bytes;
            commands_.pop_front();
        }
    }
    void change(char *object, size_t size, size_t, size_t) {
        block copy = allocate(size);
        std::memcpy(copy.get(), object, size);
        note({object, nullptr, size, std::move(copy)}, size);
    }
    void put(char **slot, size_t bytes) {
        block object = allocate(bytes);
        std::memcpy(object.get(), &bytes, sizeof bytes);
        exchange(slot, std::move(object), 0);
    }
    void take(char **slot) { exchange(slot, nullptr, size_of(*slot)); }
    void resize(char **slot, size_t bytes) {
        size_t old_bytes = size_of(*slot);
        block object = allocate(bytes);
        std::memcpy(object.get(), *slot, std::min(old_bytes, bytes));
        std::memcpy(object.get(), &bytes, sizeof bytes);
        exchange(slot, std::move(object), old_bytes);
    }
    bool undo() {
        if (done_ == 0)
            return false;
        std::vector<kept> &changes = commands_[--done_].changes;
        for (size_t i = changes.size(); i > 0; --i)
            turn(changes[i - 1]);
        return true;
    }
    bool redo() {
        if (done_ == commands_.size())
            return false;
        for (kept &each : commands_[done_++].changes)
            turn(each);
        return true;
    }
    void exit() {
        for (; commands_.size() > done_; commands_.pop_back())
            bytes_ -= commands_.back().bytes;
    }

private:
    struct freeing {
        void operator()(char *memory) const { std::free(memory); }
    };
    using block = std::unique_ptr<char, freeing>;
    struct kept {
        char *object;
        char **slot; // else of an object
        size_t size;
        block other;
    };
    struct command {
        std::vector<kept> changes;
        size_t bytes = 0;
    };

    static block allocate(size_t bytes) {
        auto *memory = static_cast<char *>(std::malloc(bytes));
        if (!memory)
            throw std::runtime_error("malloc has no memory");
        return block(memory);
    }
    void note(kept what, size_t bytes) {
        commands_.back().changes.push_back(std::move(what));
        commands_.back().bytes += bytes;
    }
    void exchange(char **slot, block other, size_t bytes) {
        note({nullptr, slot, 0, std::move(other)}, bytes);
        turn(commands_.back().changes.back());
    }
    static void turn(kept &what) {
        if (what.slot) {
            char *there = *what.slot;
            *what.slot = what.other.release();
            what.other.reset(there);
            return;
        }
        for (size_t at = 0; at < what.size;) { // through a buffer that stays in the processor's cache
            char piece[4096];
            size_t bytes = std::min(what.size - at, sizeof piece);
            std::memcpy(piece, what.object + at, bytes);
            std::memcpy(what.object + at, what.other.get() + at, bytes);
            std::memcpy(what.other.get() + at, piece, bytes);
            at += bytes;
        }
    }

    std::deque<command> commands_;
    size_t done_ = 0;
    size_t bytes_ = 0;
    size_t limit_bytes_;
};

} // namespace bench
